package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The strict broker's settings of addresses are in broker_process.py. */
@DisplayName("Queues with settings of their own: exclusive, expiry, redelivery delay, dead letters")
class AddressSettingsTest extends BrokerTest {
    private Session session;

    @BeforeEach
    void open() throws Exception {
        // Else the client would hide what has expired.
        Connection connection = keep(strictly("jms.localMessageExpiry=false").createConnection(USER, PASSWORD));
        connection.start();
        session = connection.createSession();
    }

    private Queue queue(String beginning) throws JMSException {
        return session.createQueue(beginning + name());
    }

    /** One delivery that is then rolled back: its delivery count, and the nanoTime between receipt and rollback. */
    private record Failed(int deliveryCount, long when) {
        long pauseSince(Failed earlier) {
            // From ahead of the earlier rollback: a client that stands still behind it must not shorten the pause.
            return when - earlier.when;
        }
    }

    /** Take the next message in a transaction and roll that back. */
    private static Failed fail(Session within, MessageConsumer consumer) throws JMSException {
        Message message = next(consumer);
        Failed failed = new Failed(deliveryCount(message), System.nanoTime());
        within.rollback();
        return failed;
    }

    private TextMessage taken(String queue, String messageId) throws JMSException {
        return next(session.createConsumer(session.createQueue(queue), "JMSMessageID = '" + messageId + "'"));
    }

    @Test
    @DisplayName("exclusive: one consumer has everything while the others stand by, in the order they came")
    @Tag("RCV-02")
    void exclusive() throws Exception {
        Queue queue = queue("exclusive.");
        MessageConsumer first = session.createConsumer(queue);
        MessageConsumer second = session.createConsumer(queue);
        MessageConsumer third = session.createConsumer(queue);
        send(session, queue, "a", "b");
        assertNull(second.receiveNoWait());
        assertEquals("a", next(first).getText());
        first.close();
        assertEquals("b", next(second).getText());
        send(session, queue, "c");
        assertNull(third.receiveNoWait());
        second.close();
        assertEquals("c", next(third).getText());
    }

    @Test
    @DisplayName("expiry: what has expired is in the queue that is named for it")
    @Tag("RCV-02")
    @Tag("PRD-04")
    void expiry() throws Exception {
        Queue queue = queue("mortal.");
        TextMessage mortal = session.createTextMessage("mortal");
        session.createProducer(queue).send(mortal, DeliveryMode.PERSISTENT, 4, 50);
        Message expired = taken("expired", mortal.getJMSMessageID());
        assertEquals("mortal", expired.getBody(String.class));
        assertTrue(System.currentTimeMillis() >= mortal.getJMSExpiration());
        assertNull(session.createConsumer(queue).receiveNoWait());
    }

    @Test
    @DisplayName("redelivery delay: a failed message waits, longer each time, while others go past; then it is a dead letter")
    @Tag("RCV-01")
    @Tag("RCV-02")
    void redeliveryDelay() throws Exception {
        Queue queue = queue("retried.");
        Session within = connectStrictly().createSession(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = within.createConsumer(queue);
        TextMessage failing = session.createTextMessage("failing");
        session.createProducer(queue).send(failing);
        Failed first = fail(within, consumer);
        send(session, queue, "goes past");
        assertEquals("goes past", next(consumer).getText());
        within.commit();
        Failed second = fail(within, consumer);
        Failed third = fail(within, consumer);
        assertEquals(List.of(1, 2, 3), List.of(first.deliveryCount, second.deliveryCount, third.deliveryCount));
        assertTrue(second.pauseSince(first) >= 140_000_000, "the first pause");
        assertTrue(third.pauseSince(second) >= 290_000_000, "the second pause is twice as long");
        assertEquals("failing", taken("retried-in-vain", failing.getJMSMessageID()).getText());
        assertNull(consumer.receiveNoWait());
    }

    @Test
    @DisplayName("no dead letter queue: a message that fails too often is dropped")
    @Tag("RCV-02")
    void dropped() throws Exception {
        Queue queue = queue("dropped.");
        Session within = connectStrictly().createSession(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = within.createConsumer(queue);
        TextMessage failing = session.createTextMessage("failing");
        session.createProducer(queue).send(failing);
        assertEquals(1, fail(within, consumer).deliveryCount);
        assertEquals(2, fail(within, consumer).deliveryCount);
        assertNull(consumer.receiveNoWait());
        var dead = session.createBrowser(session.createQueue("DLQ"), "JMSMessageID = '" + failing.getJMSMessageID() + "'");
        assertEquals(List.of(), java.util.Collections.list(dead.getEnumeration()));
    }
}
