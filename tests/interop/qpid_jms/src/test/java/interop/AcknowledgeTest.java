package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Acknowledging, and what becomes of messages that are not")
class AcknowledgeTest extends BrokerTest {
    /** Close `session`: what it acknowledged before has then reached the broker. */
    private static void end(Session session) throws JMSException {
        session.close();
    }

    private static void assertRedelivered(Message message, String text) throws JMSException {
        assertEquals(text, message.getBody(String.class));
        assertTrue(message.getJMSRedelivered(), text + " says that it is redelivered");
        assertTrue(deliveryCount(message) > 1, text + " counts its deliveries");
    }

    private void takenOnce(int mode) throws JMSException {
        fill("a", "b", "c");
        Session session = session(mode);
        assertEquals(List.of("a", "b", "c"), texts(session.createConsumer(queue(session)), 3));
        end(session);
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("AUTO_ACKNOWLEDGE: what was received is gone")
    @Tag("RCV-02")
    void auto() throws Exception {
        takenOnce(Session.AUTO_ACKNOWLEDGE);
    }

    @Test
    @DisplayName("DUPS_OK_ACKNOWLEDGE: what was received is gone")
    @Tag("RCV-02")
    void dupsOk() throws Exception {
        takenOnce(Session.DUPS_OK_ACKNOWLEDGE);
    }

    @Test
    @DisplayName("no-acknowledge mode: what was received is gone")
    void none() throws Exception {
        takenOnce(257);
    }

    @Test
    @DisplayName("CLIENT_ACKNOWLEDGE: acknowledge() is for everything that the session received")
    @Tag("RCV-02")
    void client() throws Exception {
        fill("a", "b", "c");
        // --8<-- [start:client_acknowledge]
        Session session = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue(session));
        next(consumer);
        next(consumer).acknowledge();
        end(session);
        assertEquals(List.of("c"), left());
        // --8<-- [end:client_acknowledge]
    }

    @Test
    @DisplayName("CLIENT_ACKNOWLEDGE: what was received but not acknowledged is redelivered, counted, in order")
    @Tag("RCV-01")
    @Tag("RCV-02")
    void clientWithout() throws Exception {
        fill("a", "b", "c");
        Session session = session(Session.CLIENT_ACKNOWLEDGE);
        assertEquals(List.of("a", "b"), texts(session.createConsumer(queue(session)), 2));
        end(session);
        Session again = session();
        MessageConsumer consumer = again.createConsumer(queue(again));
        // Twice counted where the broker delivered it again before it heard of the end of the session.
        assertRedelivered(next(consumer), "a");
        assertRedelivered(next(consumer), "b");
        assertEquals("c", next(consumer).getText());
    }

    @Test
    @DisplayName("CLIENT_ACKNOWLEDGE: a message received before its consumer was closed can still be acknowledged")
    @Tag("RCV-02")
    void clientAfterClose() throws Exception {
        fill("a", "b", "c");
        Session session = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue(session));
        Message first = next(consumer);
        consumer.close();
        assertEquals(List.of("b", "c"), left());
        first.acknowledge();
        end(session);
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("INDIVIDUAL_ACKNOWLEDGE: acknowledge() is for one message, the others return in order")
    @Tag("RCV-02")
    @Tag("RCV-08")
    void individual() throws Exception {
        fill("a", "b", "c");
        Session session = session(INDIVIDUAL);
        MessageConsumer consumer = session.createConsumer(queue(session));
        next(consumer);
        Message middle = next(consumer);
        next(consumer);
        middle.acknowledge();
        end(session);
        Session again = session();
        MessageConsumer other = again.createConsumer(queue(again));
        assertRedelivered(next(other), "a");
        assertRedelivered(next(other), "c");
        assertNull(other.receiveNoWait());
    }

    @Test
    @DisplayName("recover() brings back what was not acknowledged, in order, redelivered")
    @Tag("RCV-01")
    void recover() throws Exception {
        fill("a", "b", "c");
        Session session = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertEquals(List.of("a", "b"), texts(consumer, 2));
        // --8<-- [start:recover]
        session.recover();
        for (String text : new String[] {"a", "b"}) {
            Message message = next(consumer);
            assertRedelivered(message, text);
            assertEquals(2, deliveryCount(message));
        }
        // --8<-- [end:recover]
        TextMessage last = next(consumer);
        assertEquals("c", last.getText());
        assertFalse(last.getJMSRedelivered());
        last.acknowledge();
        end(session);
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("a recovered message that is never acknowledged returns to the queue, counted")
    @Tag("RCV-01")
    @Tag("RCV-02")
    void recoverThenClose() throws Exception {
        fill("a");
        Session session = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue(session));
        next(consumer);
        session.recover();
        assertRedelivered(next(consumer), "a");
        end(session);
        Session again = session();
        assertRedelivered(next(again.createConsumer(queue(again))), "a");
    }

    @Test
    @DisplayName("a message that the listener fails on is delivered again")
    @Tag("RCV-02")
    void listenerFails() throws Exception {
        Session session = session();
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        session.createConsumer(queue(session)).setMessageListener(message -> {
            try {
                heard.add(message.getBody(String.class));
            } catch (JMSException broken) {
                heard.add(broken.toString());
            }
            if (heard.size() == 1) {
                throw new IllegalStateException("the first try fails");
            }
        });
        fill("a");
        assertEquals("a", heard.poll(SOON, TimeUnit.MILLISECONDS));
        assertEquals("a", heard.poll(SOON, TimeUnit.MILLISECONDS));
    }

    /** Receive the first of this test's messages, without asking for another, and settle it as JMS_AMQP_ACK_TYPE says. */
    private Session settleFirst(int outcome) throws JMSException {
        Session session = session(INDIVIDUAL, "jms.prefetchPolicy.all=0");
        MessageConsumer consumer = session.createConsumer(queue(session));
        TextMessage first = next(consumer);
        assertEquals("a", first.getText());
        assertEquals(1, deliveryCount(first));
        first.setIntProperty("JMS_AMQP_ACK_TYPE", outcome);
        first.acknowledge();
        return session;
    }

    @Test
    @DisplayName("outcome accepted: gone")
    @Tag("RCV-02")
    void accepted() throws Exception {
        fill("a", "b");
        end(settleFirst(1));
        assertEquals(List.of("b"), left());
    }

    @Test
    @DisplayName("outcome rejected: goes to the dead letter queue")
    @Tag("RCV-02")
    void rejected() throws Exception {
        fill("a", "b");
        Session session = session(INDIVIDUAL, "jms.prefetchPolicy.all=1");
        TextMessage first = next(session.createConsumer(queue(session)));
        // --8<-- [start:ack_type]
        first.setIntProperty("JMS_AMQP_ACK_TYPE", 2);
        first.acknowledge();
        // --8<-- [end:ack_type]
        end(session);
        assertEquals(List.of("b"), left());
        assertEquals("a", deadLetter(first.getJMSMessageID()).getText());
    }

    @Test
    @DisplayName("outcome released: back to its place, not counted")
    @Tag("RCV-02")
    @Tag("RCV-01")
    void released() throws Exception {
        fill("a", "b");
        end(settleFirst(3));
        Session again = session();
        MessageConsumer consumer = again.createConsumer(queue(again));
        Message first = next(consumer);
        assertEquals("a", first.getBody(String.class));
        assertEquals(1, deliveryCount(first));
        assertFalse(first.getJMSRedelivered());
        assertEquals("b", next(consumer).getText());
    }

    @Test
    @DisplayName("outcome modified with delivery-failed: back to its place, counted")
    @Tag("RCV-02")
    @Tag("RCV-01")
    void failed() throws Exception {
        fill("a", "b");
        end(settleFirst(4));
        Session again = session();
        MessageConsumer consumer = again.createConsumer(queue(again));
        Message first = next(consumer);
        assertRedelivered(first, "a");
        assertEquals(2, deliveryCount(first));
        assertEquals("b", next(consumer).getText());
    }

    @Test
    @DisplayName("outcome modified with undeliverable-here: never to this consumer again, but to another, counted")
    @Tag("RCV-02")
    @Tag("RCV-01")
    void undeliverableHere() throws Exception {
        fill("a");
        Session session = session(INDIVIDUAL);
        MessageConsumer consumer = session.createConsumer(queue(session));
        Message first = next(consumer);
        first.setIntProperty("JMS_AMQP_ACK_TYPE", 5);
        first.acknowledge();
        assertNull(consumer.receiveNoWait());
        Session other = session();
        Message again = next(other.createConsumer(queue(other)));
        assertRedelivered(again, "a");
        assertEquals(2, deliveryCount(again));
        assertNull(consumer.receiveNoWait());
    }

    @Test
    @DisplayName("each failed delivery is counted, up to the limit, then the message goes to the dead letter queue")
    @Tag("RCV-01")
    @Tag("RCV-02")
    void redeliveryLimit() throws Exception {
        int limit = Integer.getInteger("broker.max.delivery.count", 20);
        fill("poison");
        Session session = session(INDIVIDUAL, "jms.prefetchPolicy.all=1");
        MessageConsumer consumer = session.createConsumer(queue(session));
        String id = null;
        for (int delivery = 1; delivery <= limit; delivery++) {
            Message message = next(consumer);
            assertEquals(delivery, deliveryCount(message));
            assertEquals(delivery > 1, message.getJMSRedelivered());
            id = message.getJMSMessageID();
            message.setIntProperty("JMS_AMQP_ACK_TYPE", 4);
            message.acknowledge();
        }
        assertNull(consumer.receiveNoWait());
        assertEquals("poison", deadLetter(id).getText());
    }

    @Test
    @DisplayName("CLIENT_ACKNOWLEDGE: acknowledge() is for what all consumers of the session received, of queues and topics")
    @Tag("RCV-02")
    void clientAllConsumers() throws Exception {
        Session session = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue(session));
        MessageConsumer subscriber = session.createSharedDurableConsumer(topic(session), name());
        fill("a");
        Session sending = session();
        send(sending, topic(sending), "x");
        next(consumer);
        next(subscriber).acknowledge();
        end(session);
        assertEquals(List.of(), left());
        assertNull(sending.createSharedDurableConsumer(topic(sending), name()).receiveNoWait());
    }

    @Test
    @DisplayName("a transaction's messages are not acknowledged by acknowledge()")
    @Tag("RCV-02")
    @Tag("RCV-06")
    void transacted() throws Exception {
        fill("a");
        Session session = session(Session.SESSION_TRANSACTED);
        next(session.createConsumer(queue(session))).acknowledge();
        end(session);
        Session again = session();
        comesAgain(again.createConsumer(queue(again)), "a");
    }

    @Test
    @DisplayName("a listener that recovers its session hears the message again, marked and counted")
    @Tag("RCV-01")
    void listenerRecovers() throws Exception {
        Session session = session(Session.CLIENT_ACKNOWLEDGE);
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        session.createConsumer(queue(session)).setMessageListener(message -> {
            try {
                heard.add(message.getBody(String.class) + " " + deliveryCount(message) + " " + message.getJMSRedelivered());
                if (deliveryCount(message) < 3) {
                    session.recover();
                } else {
                    message.acknowledge();
                    heard.add("acknowledged");
                }
            } catch (JMSException broken) {
                heard.add(broken.toString());
            }
        });
        fill("a", "b");
        for (String expected : List.of("a 1 false", "a 2 true", "a 3 true", "acknowledged",
                "b 1 false", "b 2 true", "b 3 true", "acknowledged")) {
            assertEquals(expected, heard.poll(SOON, TimeUnit.MILLISECONDS));
        }
        end(session);
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("DUPS_OK_ACKNOWLEDGE: what was prefetched but not received is there for others, once")
    @Tag("RCV-02")
    @Tag("RCV-08")
    void dupsOkPrefetched() throws Exception {
        fill("a", "b", "c");
        Session session = session(Session.DUPS_OK_ACKNOWLEDGE);
        next(session.createConsumer(queue(session)));
        end(session);
        assertEquals(List.of("b", "c"), left());
    }

    @Test
    @DisplayName("a message that its listener fails on again and again does not keep the others from it, nor itself for ever busy")
    @Tag("RCV-08")
    void listenerFailsAlways() throws Exception {
        Session session = session();
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        session.createConsumer(queue(session)).setMessageListener(message -> {
            try {
                heard.add(message.getBody(String.class));
            } catch (JMSException broken) {
                heard.add(broken.toString());
            }
            if (heard.contains("poison")) {
                heard.remove("poison");
                heard.add("failed");
                throw new IllegalStateException("it fails each time");
            }
        });
        fill("poison");
        fill("a", "b", "c");
        int failures = 0;
        for (String expected : List.of("a", "b", "c")) {
            String text = heard.poll(SOON, TimeUnit.MILLISECONDS);
            while ("failed".equals(text)) {
                failures++;
                text = heard.poll(SOON, TimeUnit.MILLISECONDS);
            }
            assertEquals(expected, text);
        }
        assertTrue(failures < 100, failures + " attempts");
        session.close();
        Session again = session();
        assertEquals("poison", next(again.createConsumer(queue(again))).getText());
    }
}
