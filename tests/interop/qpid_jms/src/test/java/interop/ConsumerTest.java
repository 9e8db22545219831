package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Ways of receiving: drain, prefetch, start and stop")
class ConsumerTest extends BrokerTest {
    private static final String NO_PREFETCH = "jms.prefetchPolicy.all=0";

    @Test
    @DisplayName("receiveNoWait() sees a message whose send has returned, and null after it")
    void receiveNoWait() throws Exception {
        Session session = session();
        Session sending = session();
        MessageConsumer consumer = session.createConsumer(queue(session));
        MessageProducer producer = sending.createProducer(queue(sending));
        for (int i = 0; i < 200; i++) {
            assertNull(consumer.receiveNoWait());
            producer.send(sending.createTextMessage("" + i));
            assertEquals("" + i, ((jakarta.jms.TextMessage) consumer.receiveNoWait()).getText());
        }
    }

    @Test
    @DisplayName("receive(timeout) on an empty queue returns null, and the consumer goes on")
    void receiveTimeout() throws Exception {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(queue(session));
        for (int i = 0; i < 3; i++) {
            assertNull(consumer.receive(20));
        }
        send(session, queue(session), "after all");
        assertEquals("after all", next(consumer).getText());
    }

    @Test
    @DisplayName("a receive() that waits gets the message that comes")
    void blockedReceive() throws Exception {
        Session receiving = session();
        MessageConsumer consumer = receiving.createConsumer(queue(receiving));
        CompletableFuture<String> received = CompletableFuture.supplyAsync(() -> {
            try {
                return consumer.receive().getBody(String.class);
            } catch (jakarta.jms.JMSException broken) {
                throw new IllegalStateException(broken);
            }
        });
        fill("at last");
        assertEquals("at last", received.get(SOON, TimeUnit.MILLISECONDS));
    }

    @Test
    @DisplayName("prefetch 0: receive(), receive(timeout) and receiveNoWait() fetch one message each")
    void prefetchZero() throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, NO_PREFETCH);
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertNull(consumer.receiveNoWait());
        assertNull(consumer.receive(20));
        fill("a", "b", "c", "d");
        assertEquals("a", ((jakarta.jms.TextMessage) consumer.receiveNoWait()).getText());
        assertEquals("b", ((jakarta.jms.TextMessage) consumer.receive()).getText());
        assertEquals("c", next(consumer).getText());
        assertEquals(List.of("d"), left());
        assertNull(consumer.receiveNoWait());
    }

    @Test
    @DisplayName("prefetch 0: a listener gets one message after the other")
    void prefetchZeroListener() throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, NO_PREFETCH);
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        session.createConsumer(queue(session)).setMessageListener(message -> {
            try {
                heard.add(message.getBody(String.class));
            } catch (jakarta.jms.JMSException broken) {
                heard.add(broken.toString());
            }
        });
        fill("a", "b", "c");
        for (String text : new String[] {"a", "b", "c"}) {
            assertEquals(text, heard.poll(SOON, TimeUnit.MILLISECONDS));
        }
    }

    @Test
    @DisplayName("prefetch 0: a consumer that does not ask leaves everything to the others")
    @Tag("DST-01")
    void prefetchZeroHoardsNothing() throws Exception {
        // --8<-- [start:prefetch_zero]
        Session idle = session(Session.AUTO_ACKNOWLEDGE, NO_PREFETCH);
        MessageConsumer modest = idle.createConsumer(queue(idle));
        fill("a", "b", "c");
        assertEquals("a", next(modest).getText());
        assertEquals(List.of("b", "c"), left());
        // --8<-- [end:prefetch_zero]
    }

    @Test
    @DisplayName("a small prefetch is refilled as messages are consumed")
    void smallPrefetch() throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=3");
        MessageConsumer consumer = session.createConsumer(queue(session));
        String[] sent = new String[100];
        for (int i = 0; i < sent.length; i++) {
            sent[i] = "" + i;
        }
        fill(sent);
        assertEquals(List.of(sent), texts(consumer, sent.length));
    }

    @Test
    @DisplayName("a connection that is not started delivers nothing, then everything")
    void notStarted() throws Exception {
        fill("a", "b");
        Connection connection = keep(factory(URL).createConnection());
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertNull(consumer.receiveNoWait());
        connection.start();
        assertEquals(List.of("a", "b"), texts(consumer, 2));
        connection.stop();
        send(session, queue(session), "c");
        assertNull(consumer.receiveNoWait());
        connection.start();
        assertEquals("c", next(consumer).getText());
    }

    @Test
    @DisplayName("a blocked receive() ends when its consumer is closed")
    void closedWhileWaiting() throws Exception {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(queue(session));
        CompletableFuture<Object> received = CompletableFuture.supplyAsync(() -> {
            try {
                return List.of(consumer.receive() == null);
            } catch (jakarta.jms.JMSException broken) {
                return broken;
            }
        });
        consumer.close();
        assertNotNull(received.get(SOON, TimeUnit.MILLISECONDS));
    }

    @Test
    @DisplayName("opening and closing consumers and producers again and again loses nothing")
    @Tag("SUB-32")
    void openAndClose() throws Exception {
        Session session = session();
        for (int i = 0; i < 100; i++) {
            send(session, queue(session), "" + i);
            MessageConsumer consumer = session.createConsumer(queue(session));
            assertEquals("" + i, next(consumer).getText());
            consumer.close();
        }
        assertTrue(left().isEmpty());
    }
}
