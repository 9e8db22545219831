package interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.Random;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Large messages")
class LargeMessageTest extends BrokerTest {
    private static final int MEBIBYTE = 1 << 20;

    private static byte[] noise(int size) {
        byte[] bytes = new byte[size];
        new Random(size).nextBytes(bytes);
        return bytes;
    }

    private void roundTrip(int size, int count, int deliveryMode, String... options) throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, options);
        MessageProducer producer = session.createProducer(queue(session));
        producer.setDeliveryMode(deliveryMode);
        byte[] sent = noise(size);
        for (int i = 0; i < count; i++) {
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(sent);
            message.setIntProperty("number", i);
            producer.send(message);
        }
        MessageConsumer consumer = session.createConsumer(queue(session));
        for (int i = 0; i < count; i++) {
            BytesMessage received = (BytesMessage) consumer.receive(SOON);
            assertEquals(i, received.getIntProperty("number"));
            assertEquals(size, received.getBodyLength());
            byte[] body = new byte[size];
            received.readBytes(body);
            assertArrayEquals(sent, body);
        }
        assertNull(consumer.receiveNoWait());
    }

    @Test
    @DisplayName("20 messages of 1 MiB arrive whole, in order")
    @Tag("PRD-05")
    void mebibyte() throws Exception {
        roundTrip(MEBIBYTE, 20, DeliveryMode.PERSISTENT);
    }

    @Test
    @DisplayName("non-persistent messages of 1 MiB arrive whole, in order")
    @Tag("PRD-05")
    void mebibyteNonPersistent() throws Exception {
        roundTrip(MEBIBYTE, 20, DeliveryMode.NON_PERSISTENT);
    }

    @Test
    @DisplayName("a message of 50 MiB arrives whole")
    @Tag("PRD-05")
    void fiftyMebibytes() throws Exception {
        roundTrip(50 * MEBIBYTE, 1, DeliveryMode.PERSISTENT);
    }

    @Test
    @DisplayName("a message of 5 MiB arrives whole in frames of 4 KiB: more frames than the client's window")
    @Tag("PRD-05")
    void manyFrames() throws Exception {
        roundTrip(5 * MEBIBYTE, 2, DeliveryMode.PERSISTENT, "amqp.maxFrameSize=4096");
    }

    @Test
    @DisplayName("a text of 1 MiB arrives whole")
    @Tag("PRD-05")
    void text() throws Exception {
        String text = "0123456789abcdef".repeat(MEBIBYTE / 16);
        Session session = session();
        send(session, queue(session), text);
        assertEquals(text, next(session.createConsumer(queue(session))).getText());
    }

    @Test
    @DisplayName("large and small messages of two producers do not disturb each other")
    @Tag("PRD-05")
    void mixed() throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, "amqp.maxFrameSize=16384");
        MessageConsumer small = session.createConsumer(session.createQueue(name() + "-small"));
        MessageConsumer large = session.createConsumer(session.createQueue(name() + "-large"));
        String text = "x".repeat(MEBIBYTE);
        for (int i = 0; i < 10; i++) {
            send(session, session.createQueue(name() + "-large"), text + i);
            send(session, session.createQueue(name() + "-small"), "" + i);
        }
        for (int i = 0; i < 10; i++) {
            assertEquals("" + i, next(small).getText());
            assertEquals(text + i, next(large).getText());
        }
    }

    @Test
    @DisplayName("messages of 2 MiB in transactions: rolled back and committed, sent and received, for a queue and a durable subscription")
    @Tag("PRD-05")
    @Tag("RCV-06")
    void transactions() throws Exception {
        Session within = session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = within.createConsumer(queue(within));
        MessageConsumer subscriber = within.createSharedDurableConsumer(topic(within), name());
        MessageProducer anonymous = within.createProducer(null);
        byte[] content = new byte[2 << 20];
        for (int round = 0; round < 2; round++) {
            content[content.length - 1] = (byte) round;
            for (Destination destination : new Destination[] {queue(within), topic(within)}) {
                BytesMessage message = within.createBytesMessage();
                message.writeBytes(content);
                anonymous.send(destination, message);
            }
            if (round == 0) {
                within.rollback();
            } else {
                within.commit();
            }
        }
        for (int attempt = 1; attempt <= 3; attempt++) {
            for (MessageConsumer each : new MessageConsumer[] {consumer, subscriber}) {
                Message received = each.receive(SOON);
                assertEquals(attempt, deliveryCount(received));
                assertArrayEquals(content, received.getBody(byte[].class));
            }
            if (attempt < 3) {
                within.rollback();
            }
        }
        within.commit();
        assertNull(consumer.receiveNoWait());
        assertNull(subscriber.receiveNoWait());
        subscriber.close();
        within.unsubscribe(name());
    }
}
