package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.ResourceAllocationException;
import jakarta.jms.Session;
import jakarta.jms.TransactionRolledBackException;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Asynchronous sends: a CompletionListener hears of each message once (JMS 2.0, 7.3)")
class AsynchronousSendTest extends BrokerTest {
    /** What a listener heard, in order: the text of a message, or why it was refused. It may hear after close() has returned. */
    private static final class Outcomes implements CompletionListener {
        final BlockingQueue<Object> heard = new LinkedBlockingQueue<>();

        @Override
        public void onCompletion(Message message) {
            try {
                heard.add(message.getBody(String.class));
            } catch (JMSException broken) {
                heard.add(broken);
            }
        }

        @Override
        public void onException(Message message, Exception failure) {
            heard.add(failure);
        }

        Object next() throws InterruptedException {
            return heard.poll(SOON, TimeUnit.MILLISECONDS);
        }
    }

    private final Outcomes outcomes = new Outcomes();

    private static List<String> numbers(int count) {
        return IntStream.range(0, count).mapToObj(Integer::toString).toList();
    }

    private void sendAll(Session session, MessageProducer producer, List<String> texts) throws JMSException {
        for (String text : texts) {
            producer.send(session.createTextMessage(text), outcomes);
        }
    }

    @Test
    @DisplayName("persistent and non-persistent messages complete in the order sent")
    @Tag("DST-14")
    void bothDeliveryModes() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        for (String text : numbers(100)) {
            producer.setDeliveryMode(text.endsWith("7") ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
            producer.send(session.createTextMessage(text), outcomes);
        }
        for (String text : numbers(100)) {
            assertEquals(text, outcomes.next());
        }
        assertEquals(numbers(100), left());
    }

    @Test
    @DisplayName("closing the producer leaves nothing unheard")
    void closeProducer() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        sendAll(session, producer, numbers(100));
        producer.close();
        for (String text : numbers(100)) {
            assertEquals(text, outcomes.next());
        }
    }

    @Test
    @DisplayName("closing the session leaves nothing unheard")
    void closeSession() throws Exception {
        Session session = session();
        sendAll(session, session.createProducer(queue(session)), numbers(100));
        session.close();
        for (String text : numbers(100)) {
            assertEquals(text, outcomes.next());
        }
        assertEquals(numbers(100), left());
    }

    @Test
    @DisplayName("closing the connection leaves nothing unheard: what completed is in the queue")
    void closeConnection() throws Exception {
        Connection connection = connect();
        Session session = connection.createSession();
        sendAll(session, session.createProducer(queue(session)), numbers(100));
        connection.close();
        List<String> arrived = left();
        for (String text : numbers(100)) {
            Object outcome = outcomes.next();
            assertTrue(outcome instanceof Exception || outcome.equals(text) && arrived.contains(text), () -> text + ": " + outcome);
        }
        assertTrue(outcomes.heard.isEmpty(), "one outcome for each message");
    }

    @Test
    @DisplayName("a message to a topic without subscribers completes")
    @Tag("PRD-03")
    void nobodyListens() throws Exception {
        Session session = session();
        sendAll(session, session.createProducer(topic(session)), numbers(3));
        for (String text : numbers(3)) {
            assertEquals(text, outcomes.next());
        }
    }

    @Test
    @DisplayName("a producer without a destination: refused messages are told of one by one, the others complete")
    @Tag("PRD-02")
    void refusedAmongOthers() throws Exception {
        Session session = connectStrictly().createSession();
        MessageProducer anonymous = session.createProducer(null);
        Queue small = session.createQueue("small." + name());
        for (String text : numbers(5)) {
            anonymous.send(small, session.createTextMessage(text), outcomes);
            anonymous.send(queue(session), session.createTextMessage("other " + text), outcomes);
        }
        for (String text : numbers(5)) {
            if (text.compareTo("3") < 0) {
                assertEquals(text, outcomes.next());
            } else {
                assertInstanceOf(ResourceAllocationException.class, outcomes.next());
            }
            assertEquals("other " + text, outcomes.next());
        }
        assertEquals(numbers(3), drain(session.createConsumer(small)));
    }

    @Test
    @DisplayName("in a transaction they complete, and a commit makes them everybody's")
    @Tag("RCV-06")
    void committed() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        sendAll(session, session.createProducer(queue(session)), numbers(20));
        session.commit();
        for (String text : numbers(20)) {
            assertEquals(text, outcomes.next());
        }
        assertEquals(numbers(20), left());
    }

    @Test
    @DisplayName("in a transaction that is rolled back they complete, and are nobody's")
    @Tag("RCV-06")
    void rolledBack() throws Exception {
        Session session = session(Session.SESSION_TRANSACTED);
        sendAll(session, session.createProducer(queue(session)), numbers(20));
        session.rollback();
        for (String text : numbers(20)) {
            assertEquals(text, outcomes.next());
        }
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("in a transaction a refused message is told of, and the commit fails")
    @Tag("RCV-06")
    @Tag("PRD-02")
    void refusedInTransaction() throws Exception {
        Session session = connectStrictly().createSession(Session.SESSION_TRANSACTED);
        MessageProducer anonymous = session.createProducer(null);
        anonymous.send(session.createQueue("closed." + name()), session.createTextMessage("nowhere"), outcomes);
        anonymous.send(queue(session), session.createTextMessage("never"), outcomes);
        assertThrows(TransactionRolledBackException.class, session::commit);
        assertInstanceOf(JMSException.class, outcomes.next());
    }

    @Test
    @DisplayName("asynchronous and other sends of one producer keep their order")
    void mixed() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        for (String text : numbers(30)) {
            if (text.endsWith("5")) {
                producer.send(session.createTextMessage(text));
            } else {
                producer.send(session.createTextMessage(text), outcomes);
            }
        }
        producer.close();
        for (int i = 0; i < 27; i++) {
            assertTrue(outcomes.next() instanceof String, "each completes");
        }
        assertEquals(numbers(30), left());
    }
}
