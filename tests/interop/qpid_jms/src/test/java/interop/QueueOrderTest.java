package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
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

@DisplayName("Order in a queue: priorities, time to live, returned messages")
class QueueOrderTest extends BrokerTest {
    @Test
    @DisplayName("higher priorities come first, equal ones in the order sent")
    @Tag("RCV-03")
    void priorities() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        for (int round = 1; round <= 2; round++) {
            for (int priority = 0; priority <= 9; priority++) {
                producer.send(session.createTextMessage(priority + "." + round), DeliveryMode.PERSISTENT, priority, 0);
            }
        }
        MessageConsumer consumer = session.createConsumer(queue(session));
        for (int priority = 9; priority >= 0; priority--) {
            for (int round = 1; round <= 2; round++) {
                Message message = next(consumer);
                assertEquals(priority + "." + round, message.getBody(String.class));
                assertEquals(priority, message.getJMSPriority());
            }
        }
    }

    @Test
    @DisplayName("a message without a priority counts as priority 4")
    @Tag("RCV-03")
    void defaultPriority() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        producer.send(session.createTextMessage("default"), DeliveryMode.NON_PERSISTENT, Message.DEFAULT_PRIORITY, 0);
        producer.send(session.createTextMessage("three"), DeliveryMode.NON_PERSISTENT, 3, 0);
        producer.send(session.createTextMessage("five"), DeliveryMode.NON_PERSISTENT, 5, 0);
        producer.send(session.createTextMessage("four"), DeliveryMode.PERSISTENT, 4, 0);
        assertEquals(List.of("five", "default", "four", "three"), left());
    }

    @Test
    @DisplayName("an expired message is delivered to nobody, and does not hold up the next")
    @Tag("PRD-04")
    void expired() throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, "jms.localMessageExpiry=false");
        MessageProducer producer = session.createProducer(queue(session));
        producer.send(session.createTextMessage("first"), DeliveryMode.PERSISTENT, 4, 0);
        Message mortal = session.createTextMessage("mortal");
        producer.send(mortal, DeliveryMode.PERSISTENT, 4, 50);
        producer.send(session.createTextMessage("long-lived"), DeliveryMode.PERSISTENT, 4, 600_000);
        waitUntilAfter(mortal.getJMSExpiration());
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertEquals(List.of("first", "long-lived"), drain(consumer));
    }

    @Test
    @DisplayName("JMS_AMQP_TTL alone, without an absolute expiry time, ends a message's life too")
    @Tag("PRD-04")
    void expiredByTtl() throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, "jms.localMessageExpiry=false");
        MessageProducer producer = session.createProducer(queue(session));
        Message mortal = session.createTextMessage("mortal");
        mortal.setLongProperty("JMS_AMQP_TTL", 50);
        producer.send(mortal);
        long sent = System.currentTimeMillis();
        producer.send(session.createTextMessage("immortal"));
        waitUntilAfter(sent + 50);
        assertEquals(List.of("immortal"), drain(session.createConsumer(queue(session))));
    }

    @Test
    @DisplayName("an expired message is not browsed")
    @Tag("PRD-04")
    @Tag("RCV-04")
    void expiredNotBrowsed() throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, "jms.localMessageExpiry=false");
        Message mortal = session.createTextMessage("mortal");
        session.createProducer(queue(session)).send(mortal, DeliveryMode.PERSISTENT, 4, 50);
        waitUntilAfter(mortal.getJMSExpiration());
        assertTrue(!session.createBrowser(queue(session)).getEnumeration().hasMoreElements());
    }

    @Test
    @DisplayName("a message that has not expired keeps its expiration")
    @Tag("PRD-04")
    void notExpired() throws Exception {
        Session session = session();
        Message sent = session.createTextMessage("long-lived");
        session.createProducer(queue(session)).send(sent, DeliveryMode.PERSISTENT, 4, 600_000);
        assertEquals(sent.getJMSExpiration(), next(session.createConsumer(queue(session))).getJMSExpiration());
    }

    @Test
    @DisplayName("messages prefetched by a consumer that is closed return to their places")
    @Tag("RCV-02")
    @Tag("RCV-08")
    void closedConsumer() throws Exception {
        fill("a", "b", "c", "d", "e");
        Session session = session();
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertEquals(List.of("a", "b"), texts(consumer, 2));
        fill("f");
        consumer.close();
        assertEquals(List.of("c", "d", "e", "f"), left());
    }

    @Test
    @DisplayName("messages prefetched by a session that is closed return to their places")
    @Tag("RCV-02")
    @Tag("RCV-08")
    void closedSession() throws Exception {
        fill("a", "b", "c", "d");
        Session session = session();
        assertEquals("a", next(session.createConsumer(queue(session))).getText());
        fill("e");
        session.close();
        assertEquals(List.of("b", "c", "d", "e"), left());
    }

    @Test
    @DisplayName("messages prefetched by a consumer that is closed go to one that waits, in order")
    @Tag("RCV-02")
    @Tag("RCV-08")
    void waitingConsumer() throws Exception {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(queue(session));
        fill("a", "b", "c", "d");
        assertEquals("a", next(consumer).getText());
        Session other = session();
        MessageConsumer waiting = other.createConsumer(queue(other));
        assertNull(waiting.receiveNoWait());
        consumer.close();
        assertEquals(List.of("b", "c", "d"), texts(waiting, 3));
    }

    @Test
    @DisplayName("a producer that is closed leaves what it sent")
    @Tag("SUB-32")
    void closedProducer() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (int i = 0; i < 3; i++) {
            producer.send(session.createTextMessage("" + i));
        }
        producer.close();
        assertEquals(List.of("0", "1", "2"), left());
    }

    @Test
    @DisplayName("priorities hold among messages that were returned")
    @Tag("RCV-03")
    @Tag("RCV-02")
    void returnedPriorities() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        int[] priorities = {4, 9, 0, 4};
        for (int i = 0; i < priorities.length; i++) {
            producer.send(session.createTextMessage(i + "@" + priorities[i]), DeliveryMode.PERSISTENT, priorities[i], 0);
        }
        Session greedy = session();
        MessageConsumer consumer = greedy.createConsumer(queue(greedy));
        assertEquals("1@9", next(consumer).getText());
        producer.send(session.createTextMessage("4@4"), DeliveryMode.PERSISTENT, 4, 0);
        consumer.close();
        assertEquals(List.of("0@4", "3@4", "4@4", "2@0"), left());
    }
}
