package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Several consumers of one queue (JMS 2.0, 4.1 and 8)")
class CompetingConsumersTest extends BrokerTest {
    private static final String ONE_AT_A_TIME = "jms.prefetchPolicy.all=1";

    private static List<String> numbers(int from, int to) {
        return IntStream.range(from, to).mapToObj(Integer::toString).toList();
    }

    private MessageConsumer consumer(Session session) throws JMSException {
        return session.createConsumer(queue(session));
    }

    @Test
    @DisplayName("of one session, of several sessions, of several connections: each message once, and each has its share")
    @Tag("RCV-02")
    void eachOnce() throws Exception {
        Connection connection = connect(ONE_AT_A_TIME);
        Session session = connection.createSession();
        List<MessageConsumer> consumers = new ArrayList<>();
        consumers.add(consumer(session));
        consumers.add(consumer(session));
        consumers.add(consumer(connection.createSession()));
        consumers.add(consumer(session(Session.AUTO_ACKNOWLEDGE, ONE_AT_A_TIME)));
        List<String> sent = numbers(100, 140);
        fill(sent.toArray(String[]::new));
        List<String> received = new ArrayList<>();
        for (MessageConsumer each : consumers) {
            received.add(next(each).getText());
        }
        while (received.size() < sent.size()) {
            for (MessageConsumer each : consumers) {
                received.addAll(drain(each));
            }
        }
        received.sort(null);
        assertEquals(sent, received);
    }

    @Test
    @DisplayName("what waits goes to a consumer that comes later, as long as the first has no room for it")
    @Tag("RCV-02")
    void comesLater() throws Exception {
        MessageConsumer busy = consumer(session(Session.CLIENT_ACKNOWLEDGE, "jms.prefetchPolicy.all=2"));
        fill("a", "b", "c", "d");
        assertEquals("a", next(busy).getText());
        Session second = session();
        MessageConsumer later = consumer(second);
        List<String> received = drain(later);
        assertTrue(received.equals(List.of("c", "d")) || received.equals(List.of("d")), received.toString());
    }

    @Test
    @DisplayName("what one gives back goes to the other that waits, in its order")
    @Tag("RCV-02")
    @Tag("RCV-08")
    void givenBack() throws Exception {
        Session leaving = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer first = consumer(leaving);
        fill("a", "b", "c");
        assertEquals(List.of("a", "b"), texts(first, 2));
        MessageConsumer second = consumer(session());
        assertNull(second.receiveNoWait());
        leaving.close();
        comesAgain(second, "a");
        comesAgain(second, "b");
        assertEquals("c", next(second).getText());
    }

    @Test
    @DisplayName("recover() gives nothing to the others")
    @Tag("RCV-02")
    void recovered() throws Exception {
        Session recovering = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer first = consumer(recovering);
        fill("a", "b");
        assertEquals(List.of("a", "b"), texts(first, 2));
        MessageConsumer second = consumer(session());
        recovering.recover();
        comesAgain(first, "a", 2);
        Message last = next(first);
        assertEquals("b", last.getBody(String.class));
        last.acknowledge();
        assertNull(second.receiveNoWait());
        recovering.close();
        assertNull(second.receiveNoWait());
    }

    @Test
    @DisplayName("with selectors and without: what matches nobody else's is left to the one without")
    @Tag("RCV-05")
    void selectors() throws Exception {
        Session sending = session();
        Session session = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=0");
        MessageConsumer low = session.createConsumer(queue(session), "number < 10");
        MessageConsumer high = session.createConsumer(queue(session), "number >= 20");
        MessageProducer producer = sending.createProducer(queue(sending));
        for (int i = 0; i < 30; i++) {
            Message message = sending.createTextMessage("" + i);
            message.setIntProperty("number", i);
            producer.send(message);
        }
        assertEquals(numbers(20, 30), drain(high));
        assertEquals(numbers(0, 10), drain(low));
        assertEquals(numbers(10, 20), left());
    }

    @Test
    @DisplayName("a browser beside consumers sees what waits, and takes nothing from them")
    @Tag("RCV-04")
    void browserBeside() throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=0");
        MessageConsumer consumer = consumer(session);
        fill("a", "b");
        Session browsing = session();
        assertTrue(browsing.createBrowser(queue(browsing)).getEnumeration().hasMoreElements());
        assertEquals(List.of("a", "b"), texts(consumer, 2));
    }

    @Test
    @DisplayName("two listeners with a prefetch of one share: while one is at work the other has the rest")
    @Tag("RCV-02")
    void busyListener() throws Exception {
        CountDownLatch release = new CountDownLatch(1);
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        List<Connection> connections = List.of(connect(ONE_AT_A_TIME), connect(ONE_AT_A_TIME));
        for (Connection connection : connections) {
            Session session = connection.createSession();
            consumer(session).setMessageListener(message -> {
                try {
                    String text = message.getBody(String.class);
                    heard.add(text);
                    if (text.equals("long")) {
                        release.await(SOON, TimeUnit.MILLISECONDS);
                    }
                } catch (JMSException | InterruptedException broken) {
                    heard.add(broken.toString());
                }
            });
        }
        fill("long");
        assertEquals("long", heard.poll(SOON, TimeUnit.MILLISECONDS));
        fill(numbers(0, 20).toArray(String[]::new));
        // One may wait behind the long one: its consumer asked for it before it began.
        for (int i = 0; i < 19; i++) {
            assertTrue(heard.poll(SOON, TimeUnit.MILLISECONDS) != null, "the other listener goes on");
        }
        release.countDown();
        assertTrue(heard.poll(SOON, TimeUnit.MILLISECONDS) != null, "the last one comes");
        for (Connection connection : connections) {
            connection.close();
        }
        assertEquals(List.of(), left());
    }
}
