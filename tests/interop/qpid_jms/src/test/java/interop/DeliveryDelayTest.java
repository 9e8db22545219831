package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.DeliveryMode;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Delivery delay: nothing comes before its time, whatever it was sent to")
class DeliveryDelayTest extends BrokerTest {
    private static final long DELAY = 300;

    /** The next message, which must not come before the time that its producer was told. */
    private static Message inTime(MessageConsumer consumer, String text) throws Exception {
        Message message = next(consumer);
        long now = System.currentTimeMillis();
        assertEquals(text, message.getBody(String.class));
        assertTrue(now >= message.getJMSDeliveryTime(), () -> now + " is before " + time(message));
        return message;
    }

    private static String time(Message message) {
        try {
            return String.valueOf(message.getJMSDeliveryTime());
        } catch (Exception unreadable) {
            return unreadable.toString();
        }
    }

    private static MessageProducer delaying(MessageProducer producer, long delay) throws Exception {
        producer.setDeliveryDelay(delay);
        return producer;
    }

    @Test
    @DisplayName("a delayed message comes at its delivery time, behind those that are not delayed")
    @Tag("DLY-01")
    @Tag("DLY-02")
    void delayed() throws Exception {
        Session session = session();
        Message later = session.createTextMessage("later");
        delaying(session.createProducer(queue(session)), DELAY).send(later);
        send(session, queue(session), "now");
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertEquals("now", next(consumer).getBody(String.class));
        Message came = inTime(consumer, "later");
        assertEquals(later.getJMSDeliveryTime(), came.getJMSDeliveryTime());
        assertEquals(later.getJMSMessageID(), came.getJMSMessageID());
    }

    @Test
    @DisplayName("delayed messages come in the order of their delivery times")
    @Tag("DLY-03")
    void order() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        delaying(producer, 2 * DELAY).send(session.createTextMessage("third"));
        delaying(producer, DELAY).send(session.createTextMessage("second"));
        delaying(producer, 0).send(session.createTextMessage("first"));
        MessageConsumer consumer = session.createConsumer(queue(session));
        for (String text : List.of("first", "second", "third")) {
            inTime(consumer, text);
        }
    }

    @Test
    @DisplayName("a producer without a destination delays too")
    @Tag("DLY-03")
    void anonymousProducer() throws Exception {
        Session session = session();
        MessageProducer producer = delaying(session.createProducer(null), DELAY);
        producer.send(queue(session), session.createTextMessage("later"));
        inTime(session.createConsumer(queue(session)), "later");
    }

    @Test
    @DisplayName("a delayed message to a topic is for the subscribers of its sending")
    @Tag("DLY-03")
    void topic() throws Exception {
        Session session = session();
        MessageConsumer early = session.createConsumer(topic(session));
        delaying(session.createProducer(topic(session)), DELAY).send(session.createTextMessage("later"));
        MessageConsumer late = session.createConsumer(topic(session));
        inTime(early, "later");
        assertNull(late.receiveNoWait());
    }

    @Test
    @DisplayName("a temporary queue holds messages back as any other")
    @Tag("DLY-03")
    void temporaryQueue() throws Exception {
        Session session = session();
        var replies = session.createTemporaryQueue();
        delaying(session.createProducer(replies), DELAY).send(session.createTextMessage("later"));
        inTime(session.createConsumer(replies), "later");
    }

    @Test
    @DisplayName("a browser does not see a message before its delivery time")
    @Tag("DLY-01")
    void browser() throws Exception {
        Session session = session();
        delaying(session.createProducer(queue(session)), 3_600_000).send(session.createTextMessage("later"));
        assertFalse(session.createBrowser(queue(session)).getEnumeration().hasMoreElements());
        assertNull(session.createConsumer(queue(session)).receiveNoWait());
    }

    @Test
    @DisplayName("a message that expires before its delivery time never comes")
    @Tag("DLY-05")
    void expired() throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, "jms.localMessageExpiry=false");
        MessageProducer producer = session.createProducer(queue(session));
        delaying(producer, DELAY).send(session.createTextMessage("mortal"), DeliveryMode.PERSISTENT, 4, DELAY / 3);
        delaying(producer, 2 * DELAY).send(session.createTextMessage("other"));
        inTime(session.createConsumer(queue(session)), "other");
    }
}
