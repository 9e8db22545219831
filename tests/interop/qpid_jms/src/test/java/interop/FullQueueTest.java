package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.ResourceAllocationException;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Queues of the strict broker: `blocking.*` and `small.*` hold three messages. */
@DisplayName("Full queues: who sends to them waits or is refused, and nobody else")
class FullQueueTest extends BrokerTest {
    private static final int ROOM = 3;

    private Connection connection;
    private Session session;

    @BeforeEach
    void open() throws Exception {
        connection = connectStrictly();
        session = connection.createSession();
    }

    private static List<String> numbers(int count) {
        return IntStream.range(0, count).mapToObj(Integer::toString).toList();
    }

    /** Send to `destination` in the background, over a session of its own; `sent` counts the sends that have returned. */
    private CompletableFuture<Void> sending(Destination destination, int count, AtomicInteger sent) throws JMSException {
        Session own = connection.createSession();
        MessageProducer producer = own.createProducer(destination);
        return CompletableFuture.runAsync(() -> {
            try {
                for (String text : numbers(count)) {
                    producer.send(own.createTextMessage(text));
                    sent.incrementAndGet();
                }
            } catch (JMSException broken) {
                throw new IllegalStateException(broken);
            }
        });
    }

    private void blocks(Destination destination, MessageConsumer consumer) throws Exception {
        AtomicInteger sent = new AtomicInteger();
        CompletableFuture<Void> sending = sending(destination, 20, sent);
        for (int i = 0; i < 20; i++) {
            assertTrue(sent.get() <= ROOM + i, "no more is taken than there is room for");
            assertEquals("" + i, next(consumer).getText());
        }
        sending.get(SOON, TimeUnit.MILLISECONDS);
        assertNull(consumer.receiveNoWait());
    }

    private MessageConsumer unhurried(Destination destination) throws JMSException {
        Connection slow = keep(strictly("jms.prefetchPolicy.all=0").createConnection(USER, PASSWORD));
        slow.start();
        return slow.createSession().createConsumer(destination);
    }

    @Test
    @DisplayName("a queue that blocks: its producer goes on as fast as its consumer, and loses nothing")
    void blocked() throws Exception {
        Queue queue = session.createQueue("blocking." + name());
        blocks(queue, unhurried(queue));
    }

    @Test
    @DisplayName("a topic whose subscriber has no room blocks its publisher")
    void blockedTopic() throws Exception {
        Topic topic = session.createTopic("blocking." + name());
        blocks(topic, unhurried(topic));
    }

    @Test
    @DisplayName("while one producer waits, others of its connection and their consumers go on")
    void othersGoOn() throws Exception {
        Queue full = session.createQueue("blocking." + name());
        AtomicInteger sent = new AtomicInteger();
        CompletableFuture<Void> sending = sending(full, 10, sent);
        MessageConsumer consumer = session.createConsumer(queue(session));
        for (String text : numbers(100)) {
            send(session, queue(session), text);
            assertEquals(text, next(consumer).getText());
        }
        assertTrue(sent.get() <= ROOM);
        assertEquals(numbers(10), texts(session.createConsumer(full), 10));
        sending.get(SOON, TimeUnit.MILLISECONDS);
    }

    @Test
    @DisplayName("two producers share what room there is, and both end")
    void twoProducers() throws Exception {
        Queue queue = session.createQueue("blocking." + name());
        CompletableFuture<Void> one = sending(queue, 15, new AtomicInteger());
        CompletableFuture<Void> other = sending(queue, 15, new AtomicInteger());
        List<String> received = texts(session.createConsumer(queue), 30).stream().sorted().toList();
        List<String> twice = IntStream.range(0, 30).mapToObj(i -> "" + i / 2).sorted().toList();
        assertEquals(twice, received);
        one.get(SOON, TimeUnit.MILLISECONDS);
        other.get(SOON, TimeUnit.MILLISECONDS);
    }

    @Test
    @DisplayName("a producer that waits is closed with its connection")
    void closedWhileWaiting() throws Exception {
        Queue full = session.createQueue("blocking." + name());
        Connection second = connectStrictly();
        Session own = second.createSession();
        MessageProducer producer = own.createProducer(full);
        AtomicInteger sent = new AtomicInteger();
        CompletableFuture<Object> outcome = CompletableFuture.supplyAsync(() -> {
            try {
                while (true) {
                    producer.send(own.createTextMessage("" + sent.get()));
                    sent.incrementAndGet();
                }
            } catch (JMSException closed) {
                return closed;
            }
        });
        MessageConsumer consumer = session.createConsumer(full);
        assertEquals("0", next(consumer).getText());
        second.close();
        assertTrue(outcome.get(SOON, TimeUnit.MILLISECONDS) instanceof JMSException);
        List<String> rest = drain(consumer);
        assertTrue(rest.size() + 1 >= sent.get(), "what was accepted is there");
    }

    @Test
    @DisplayName("an unacknowledged message keeps its room; acknowledging it makes room")
    @Tag("RCV-02")
    void unacknowledged() throws Exception {
        Session patient = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue small = session.createQueue("small." + name());
        MessageProducer anonymous = session.createProducer(null);
        for (String text : numbers(ROOM)) {
            anonymous.send(small, session.createTextMessage(text));
        }
        MessageConsumer consumer = patient.createConsumer(small);
        assertEquals("0", next(consumer).getText());
        var second = next(consumer);
        assertThrows(ResourceAllocationException.class, () -> anonymous.send(small, session.createTextMessage("no")));
        second.acknowledge();
        patient.createConsumer(queue(patient)).receiveNoWait();
        anonymous.send(small, session.createTextMessage("3"));
        assertEquals(List.of("2", "3"), texts(consumer, 2));
    }

    @Test
    @DisplayName("a message for a full subscription goes to no subscriber of its topic")
    void fullSubscription() throws Exception {
        Topic topic = session.createTopic("small." + name());
        session.createSharedDurableConsumer(topic, name()).close();
        MessageConsumer subscriber = session.createConsumer(topic);
        MessageProducer anonymous = session.createProducer(null);
        for (String text : numbers(ROOM)) {
            anonymous.send(topic, session.createTextMessage(text));
            assertEquals(text, next(subscriber).getText());
        }
        assertThrows(ResourceAllocationException.class, () -> anonymous.send(topic, session.createTextMessage("no")));
        assertNull(subscriber.receiveNoWait());
        session.unsubscribe(name());
        anonymous.send(topic, session.createTextMessage("yes"));
        assertEquals("yes", next(subscriber).getText());
    }
}
