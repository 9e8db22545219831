package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Starting, stopping and closing, with messages under way (JMS 2.0, 6.1, 6.2 and 8)")
class StartStopCloseTest extends BrokerTest {
    private Connection connection;
    private Session session;

    @BeforeEach
    void open() throws Exception {
        connection = connect();
        session = connection.createSession();
    }

    /** Whatever ends a wait for a message. */
    interface Ending {
        void end(MessageConsumer consumer) throws JMSException;
    }

    /** A receive() that waits when `ending` comes returns null; then a message waits for others. */
    private void endsReceive(Ending ending) throws Exception {
        MessageConsumer consumer = session.createConsumer(queue(session));
        CountDownLatch waits = new CountDownLatch(1);
        CompletableFuture<String> received = CompletableFuture.supplyAsync(() -> {
            try {
                waits.countDown();
                return String.valueOf(consumer.receive());
            } catch (JMSException closed) {
                return "null, for it was closed before";
            }
        });
        waits.await();
        ending.end(consumer);
        assertTrue(received.get(SOON, TimeUnit.MILLISECONDS).startsWith("null"));
        fill("for others");
        assertEquals(List.of("for others"), left());
    }

    @Test
    @DisplayName("a receive() that waits returns null when its consumer is closed")
    @Tag("SUB-32")
    void consumerCloses() throws Exception {
        endsReceive(MessageConsumer::close);
    }

    @Test
    @DisplayName("a receive() that waits returns null when its session is closed")
    void sessionCloses() throws Exception {
        endsReceive(consumer -> session.close());
    }

    @Test
    @DisplayName("a receive() that waits returns null when its connection is closed")
    void connectionCloses() throws Exception {
        endsReceive(consumer -> connection.close());
    }

    @Test
    @DisplayName("a consumer that is closed while messages pour in takes none with it")
    @Tag("RCV-02")
    void closedUnderLoad() throws Exception {
        Session sending = session();
        MessageProducer producer = sending.createProducer(queue(sending));
        List<String> received = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            producer.send(sending.createTextMessage("" + i));
            if (i % 10 == 0) {
                MessageConsumer consumer = session.createConsumer(queue(session));
                received.add(next(consumer).getText());
                consumer.close();
            }
        }
        received.addAll(left());
        assertEquals(IntStream.range(0, 200).mapToObj(Integer::toString).toList(), received);
    }

    @Test
    @DisplayName("a session that is closed with a listener at work takes nothing with it")
    @Tag("RCV-02")
    @Tag("RCV-08")
    void closedWithListener() throws Exception {
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        session.createConsumer(queue(session)).setMessageListener(message -> {
            try {
                heard.add(message.getBody(String.class));
            } catch (JMSException broken) {
                heard.add(broken.toString());
            }
        });
        List<String> sent = IntStream.range(100, 400).mapToObj(Integer::toString).toList();
        fill(sent.toArray(String[]::new));
        session.close();
        // What was at work when the session was closed may come again.
        List<String> left = left();
        int had = heard.size() + left.size() > sent.size() ? heard.size() - 1 : heard.size();
        List<String> all = new ArrayList<>(heard).subList(0, had);
        all.addAll(left);
        assertEquals(sent, all);
    }

    @Test
    @DisplayName("a stopped connection's listener hears nothing, and everything once it is started again")
    void stopped() throws Exception {
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        session.createConsumer(queue(session)).setMessageListener(message -> {
            try {
                heard.add(message.getBody(String.class));
            } catch (JMSException broken) {
                heard.add(broken.toString());
            }
        });
        fill("a");
        assertEquals("a", heard.poll(SOON, TimeUnit.MILLISECONDS));
        connection.stop();
        fill("b", "c");
        assertTrue(heard.isEmpty());
        connection.start();
        assertEquals("b", heard.poll(SOON, TimeUnit.MILLISECONDS));
        assertEquals("c", heard.poll(SOON, TimeUnit.MILLISECONDS));
    }

    @Test
    @DisplayName("a stopped connection sends, commits and browses")
    @Tag("RCV-06")
    @Tag("RCV-04")
    void stoppedSends() throws Exception {
        connection.stop();
        Session within = connection.createSession(Session.SESSION_TRANSACTED);
        send(session, queue(session), "a");
        send(within, queue(within), "b");
        within.commit();
        assertEquals(List.of("a", "b"), left());
    }

    @Test
    @DisplayName("a stopped connection is closed with what it prefetched, which goes to others in order")
    @Tag("RCV-08")
    void stoppedThenClosed() throws Exception {
        MessageConsumer consumer = session.createConsumer(queue(session));
        connection.stop();
        fill("a", "b", "c");
        assertNull(consumer.receiveNoWait());
        connection.close();
        assertEquals(List.of("a", "b", "c"), left());
    }

    @Test
    @DisplayName("closing twice does nothing, using what is closed is an IllegalStateException")
    void closed() throws Exception {
        MessageProducer producer = session.createProducer(queue(session));
        MessageConsumer consumer = session.createConsumer(queue(session));
        for (int i = 0; i < 2; i++) {
            producer.close();
            consumer.close();
        }
        assertThrows(IllegalStateException.class, () -> producer.send(session.createMessage()));
        assertThrows(IllegalStateException.class, consumer::receiveNoWait);
        for (int i = 0; i < 2; i++) {
            session.close();
        }
        assertThrows(IllegalStateException.class, session::createMessage);
        for (int i = 0; i < 2; i++) {
            connection.close();
        }
        assertThrows(IllegalStateException.class, connection::createSession);
    }

    @Test
    @DisplayName("listeners of two sessions are at work side by side")
    void concurrency() throws Exception {
        BlockingQueue<String> inside = new LinkedBlockingQueue<>();
        CountDownLatch bothInside = new CountDownLatch(2);
        for (Session each : List.of(session, connection.createSession())) {
            each.createConsumer(topic(each)).setMessageListener(message -> {
                bothInside.countDown();
                try {
                    inside.add(Boolean.toString(bothInside.await(SOON, TimeUnit.MILLISECONDS)));
                } catch (InterruptedException stopped) {
                    inside.add(stopped.toString());
                }
            });
        }
        Session sending = session();
        send(sending, topic(sending), "to both");
        assertEquals("true", inside.poll(SOON, TimeUnit.MILLISECONDS));
        assertEquals("true", inside.poll(SOON, TimeUnit.MILLISECONDS));
    }
}
