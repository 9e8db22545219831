package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The client would hide what has expired: here it shows whatever the broker sends. Queues are QueueOrderTest's. */
@DisplayName("Time to live, wherever a message waits (JMS 2.0, 3.4 and 7)")
class ExpiryTest extends BrokerTest {
    private static final long LIFE = 40;

    private Session session;

    @BeforeEach
    void open() throws Exception {
        session = credulous(Session.AUTO_ACKNOWLEDGE);
    }

    /** A session that asks for messages one by one, and believes the broker. */
    private Session credulous(int mode) throws JMSException {
        return session(mode, "jms.localMessageExpiry=false", "jms.prefetchPolicy.all=0");
    }

    /** Send a message that expires, and one that does not; return once the first has expired. */
    private void sendBoth(Session sending, Destination destination) throws JMSException {
        MessageProducer producer = sending.createProducer(destination);
        TextMessage mortal = sending.createTextMessage("mortal");
        producer.send(mortal, DeliveryMode.PERSISTENT, 4, LIFE);
        producer.send(sending.createTextMessage("immortal"));
        producer.close();
        waitUntilAfter(mortal.getJMSExpiration());
    }

    private static void onlyImmortal(MessageConsumer consumer) throws JMSException {
        assertEquals("immortal", next(consumer).getText());
        assertNull(consumer.receiveNoWait());
    }

    @Test
    @DisplayName("with a subscriber of a topic that has not asked for it yet")
    @Tag("PRD-04")
    @Tag("SUB-01")
    void topicSubscriber() throws Exception {
        MessageConsumer subscriber = session.createConsumer(topic(session));
        sendBoth(session, topic(session));
        onlyImmortal(subscriber);
    }

    @Test
    @DisplayName("in a durable subscription whose subscriber is away")
    @Tag("PRD-04")
    @Tag("SUB-02")
    void durable() throws Exception {
        Session named = session(Session.AUTO_ACKNOWLEDGE, "jms.localMessageExpiry=false", "jms.clientID=" + name());
        named.createDurableConsumer(topic(named), "subscription").close();
        sendBoth(session, topic(session));
        onlyImmortal(named.createDurableConsumer(topic(named), "subscription"));
    }

    @Test
    @DisplayName("in a shared durable subscription that nobody uses")
    @Tag("PRD-04")
    @Tag("SUB-08")
    void sharedDurable() throws Exception {
        session.createSharedDurableConsumer(topic(session), name()).close();
        sendBoth(session, topic(session));
        onlyImmortal(session.createSharedDurableConsumer(topic(session), name()));
    }

    @Test
    @DisplayName("in a temporary queue")
    @Tag("PRD-04")
    @Tag("TMP-01")
    void temporaryQueue() throws Exception {
        Destination temporary = session.createTemporaryQueue();
        sendBoth(session, temporary);
        onlyImmortal(session.createConsumer(temporary));
    }

    @Test
    @DisplayName("behind others that wait for a consumer which does not ask")
    @Tag("PRD-04")
    void behindOthers() throws Exception {
        fill("first");
        MessageConsumer consumer = session.createConsumer(queue(session));
        sendBoth(session, queue(session));
        assertEquals("first", next(consumer).getText());
        onlyImmortal(consumer);
    }

    @Test
    @DisplayName("for a consumer with a selector")
    @Tag("PRD-04")
    @Tag("RCV-05")
    void selector() throws Exception {
        MessageConsumer consumer = session.createConsumer(queue(session), "JMSPriority = 4");
        sendBoth(session, queue(session));
        onlyImmortal(consumer);
    }

    @Test
    @DisplayName("after it was received and rolled back: it does not come again")
    @Tag("PRD-04")
    @Tag("RCV-06")
    void rolledBack() throws Exception {
        Session within = credulous(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = within.createConsumer(queue(within));
        MessageProducer producer = session.createProducer(queue(session));
        producer.send(session.createTextMessage("mortal"), DeliveryMode.PERSISTENT, 4, 500);
        producer.send(session.createTextMessage("immortal"));
        TextMessage mortal = next(consumer);
        assertEquals("mortal", mortal.getText());
        waitUntilAfter(mortal.getJMSExpiration());
        within.rollback();
        onlyImmortal(consumer);
        within.commit();
    }

    @Test
    @DisplayName("before its transaction is committed")
    @Tag("PRD-04")
    @Tag("RCV-06")
    void beforeCommit() throws Exception {
        Session within = session(Session.SESSION_TRANSACTED);
        sendBoth(within, queue(within));
        within.commit();
        onlyImmortal(session.createConsumer(queue(session)));
    }

    @Test
    @DisplayName("a message received in time is acknowledged after its time, and is gone")
    @Tag("PRD-04")
    @Tag("RCV-02")
    void acknowledgedLate() throws Exception {
        Session patient = credulous(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = patient.createConsumer(queue(patient));
        session.createProducer(queue(session)).send(session.createTextMessage("mortal"), DeliveryMode.PERSISTENT, 4, 500);
        Message mortal = next(consumer);
        waitUntilAfter(mortal.getJMSExpiration());
        mortal.acknowledge();
        patient.close();
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("a time to live of 0 is for ever, one of fifty days is kept to the millisecond")
    @Tag("PRD-04")
    void longLives() throws Exception {
        // --8<-- [start:time_to_live]
        long fiftyDays = 50L * 24 * 3600 * 1000;
        MessageProducer producer = session.createProducer(queue(session));
        producer.send(session.createTextMessage("for ever"), DeliveryMode.PERSISTENT, 4, 0);
        TextMessage sent = session.createTextMessage("fifty days");
        producer.send(sent, DeliveryMode.PERSISTENT, 4, fiftyDays);
        // --8<-- [end:time_to_live]
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertEquals(0, next(consumer).getJMSExpiration());
        TextMessage received = next(consumer);
        assertEquals(sent.getJMSTimestamp() + fiftyDays, received.getJMSExpiration());
        assertTrue(received.getJMSExpiration() > 0);
    }
}
