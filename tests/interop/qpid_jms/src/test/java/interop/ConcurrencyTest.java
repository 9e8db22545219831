package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Chance is seeded: it is the machine that differs from run to run. */
@DisplayName("Many threads at once: each message exactly once to each who should have it")
class ConcurrencyTest extends BrokerTest {
    private static final int SENDERS = 3;
    private static final int TRANSACTIONS = 30;
    private static final int MESSAGES = 5;

    private final ExecutorService threads = Executors.newCachedThreadPool();

    @AfterEach
    void stopThreads() {
        threads.shutdownNow();
    }

    /** Send TRANSACTIONS of MESSAGES each, of which every third is rolled back. Returns what was committed, in order. */
    private List<String> sendInTransactions(int sender, boolean toTopic) throws JMSException {
        Session session = session(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(toTopic ? topic(session) : queue(session));
        List<String> committed = new ArrayList<>();
        for (int transaction = 0; transaction < TRANSACTIONS; transaction++) {
            List<String> texts = new ArrayList<>();
            for (int i = 0; i < MESSAGES; i++) {
                texts.add(sender + "." + (transaction * MESSAGES + i));
                producer.send(session.createTextMessage(texts.get(i)));
            }
            if (transaction % 3 == 2) {
                session.rollback();
            } else {
                session.commit();
                committed.addAll(texts);
            }
        }
        return committed;
    }

    private List<Future<List<String>>> startSenders(boolean toTopic) {
        List<Future<List<String>>> senders = new ArrayList<>();
        for (int i = 0; i < SENDERS; i++) {
            int sender = i;
            senders.add(threads.submit((Callable<List<String>>) () -> sendInTransactions(sender, toTopic)));
        }
        return senders;
    }

    private static List<String> all(List<Future<List<String>>> parts) throws Exception {
        List<String> all = new ArrayList<>();
        for (Future<List<String>> part : parts) {
            all.addAll(part.get(2 * SOON, TimeUnit.MILLISECONDS));
        }
        return all;
    }

    /** Receive until `expected` messages have been had by all of `received`, with a rollback now and then. */
    private static void receive(Session session, MessageConsumer consumer, List<String> received, int expected, long seed)
            throws JMSException {
        Random random = new Random(seed);
        while (received.size() < expected) {
            List<String> texts = new ArrayList<>();
            for (int i = random.nextInt(4); i >= 0; i--) {
                Message message = consumer.receive(20);
                if (message != null) {
                    texts.add(message.getBody(String.class));
                }
            }
            if (random.nextInt(5) == 0) {
                session.rollback();
            } else {
                session.commit();
                received.addAll(texts);
            }
        }
    }

    /** One sender's messages are in order where one consumer had them all. */
    private static void inOrder(List<String> committed, List<String> received) {
        for (int sender = 0; sender < SENDERS; sender++) {
            String prefix = sender + ".";
            assertEquals(committed.stream().filter(text -> text.startsWith(prefix)).toList(),
                received.stream().filter(text -> text.startsWith(prefix)).toList());
        }
    }

    private static final int COMMITTED = SENDERS * TRANSACTIONS * 2 / 3 * MESSAGES;

    private List<Future<?>> startReceivers(List<String> received, boolean shared) throws JMSException {
        List<Future<?>> receivers = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            int seed = i;
            Session session = session(Session.SESSION_TRANSACTED, "jms.prefetchPolicy.all=10");
            MessageConsumer consumer = shared
                ? session.createSharedDurableConsumer(topic(session), name()) : session.createConsumer(queue(session));
            receivers.add(threads.submit(() -> {
                receive(session, consumer, received, COMMITTED, seed);
                return null;
            }));
        }
        return receivers;
    }

    private void eachOnce(boolean shared) throws Exception {
        List<String> received = Collections.synchronizedList(new ArrayList<>());
        List<Future<?>> receivers = startReceivers(received, shared);
        List<String> committed = all(startSenders(shared));
        for (Future<?> receiver : receivers) {
            receiver.get(2 * SOON, TimeUnit.MILLISECONDS);
        }
        assertEquals(COMMITTED, committed.size());
        assertEquals(committed.stream().sorted().toList(), received.stream().sorted().toList());
    }

    @Test
    @DisplayName("three senders and three receivers of a queue, all with transactions, some rolled back")
    @Tag("RCV-06")
    void queue() throws Exception {
        eachOnce(false);
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("three publishers, and three consumers of one shared durable subscription, some rolled back")
    @Tag("RCV-06")
    @Tag("SUB-08")
    void sharedSubscription() throws Exception {
        eachOnce(true);
    }

    @Test
    @DisplayName("three publishers and three subscribers, plain and durable: each gets all that was committed, in order")
    @Tag("RCV-06")
    @Tag("SUB-01")
    @Tag("SUB-02")
    void subscribers() throws Exception {
        Session session = connectAs(name()).createSession();
        List<MessageConsumer> subscribers = List.of(session.createConsumer(topic(session)), session.createConsumer(topic(session)),
            session.createDurableConsumer(topic(session), "subscription"));
        List<Future<List<String>>> senders = startSenders(true);
        for (MessageConsumer subscriber : subscribers) {
            List<String> received = texts(subscriber, COMMITTED);
            inOrder(all(senders), received);
        }
    }

    @Test
    @DisplayName("one consumer that rolls back now and then keeps each sender's order")
    @Tag("RCV-06")
    @Tag("RCV-01")
    void orderKept() throws Exception {
        List<Future<List<String>>> senders = startSenders(false);
        Session session = session(Session.SESSION_TRANSACTED);
        List<String> received = new ArrayList<>();
        receive(session, session.createConsumer(queue(session)), received, COMMITTED, 1);
        inOrder(all(senders), received);
    }

    @Test
    @DisplayName("consumers of a queue come and go while messages pour in: none is lost, none comes twice")
    @Tag("RCV-02")
    void comeAndGo() throws Exception {
        List<Future<List<String>>> senders = startSenders(false);
        List<String> received = Collections.synchronizedList(new ArrayList<>());
        List<Future<?>> receivers = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            Session session = session();
            receivers.add(threads.submit(() -> {
                while (received.size() < COMMITTED) {
                    MessageConsumer consumer = session.createConsumer(queue(session));
                    Message message = consumer.receive(20);
                    for (int had = 1; message != null; had++) {
                        received.add(message.getBody(String.class));
                        message = had < 5 ? consumer.receiveNoWait() : null;
                    }
                    consumer.close();
                }
                return null;
            }));
        }
        for (Future<?> receiver : receivers) {
            receiver.get(2 * SOON, TimeUnit.MILLISECONDS);
        }
        List<String> committed = all(senders);
        assertTrue(received.size() == committed.size(), () -> received.size() + " of " + committed.size());
        assertEquals(committed.stream().sorted().toList(), received.stream().sorted().toList());
    }

    /** Have `work` done by each of `count` threads, with a number from 0. */
    private void atOnce(int count, Work work) throws Exception {
        List<Future<?>> parts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int number = i;
            parts.add(threads.submit(() -> {
                work.done(number);
                return null;
            }));
        }
        for (Future<?> part : parts) {
            part.get(2 * SOON, TimeUnit.MILLISECONDS);
        }
    }

    /** What one of several threads does. */
    interface Work {
        void done(int number) throws Exception;
    }

    @Test
    @DisplayName("five clients with twenty temporary queues each, one after the other: every request has its own answer")
    @Tag("TMP-01")
    @Tag("TMP-03")
    void requests() throws Exception {
        Session answering = session();
        MessageProducer anonymous = answering.createProducer(null);
        answering.createConsumer(queue(answering)).setMessageListener(request -> {
            try {
                anonymous.send(request.getJMSReplyTo(), answering.createTextMessage("re: " + request.getBody(String.class)));
            } catch (JMSException broken) {
                throw new IllegalStateException(broken);
            }
        });
        atOnce(5, client -> {
            Session session = session();
            MessageProducer producer = session.createProducer(queue(session));
            for (int i = 0; i < 20; i++) {
                var replies = session.createTemporaryQueue();
                try (MessageConsumer consumer = session.createConsumer(replies)) {
                    Message request = session.createTextMessage(client + "." + i);
                    request.setJMSReplyTo(replies);
                    producer.send(request);
                    assertEquals("re: " + client + "." + i, next(consumer).getText());
                }
                replies.delete();
            }
        });
    }

    @Test
    @DisplayName("six connections subscribe to and unsubscribe from one shared subscription: each call is answered, the last one ends it")
    @Tag("SUB-31")
    @Tag("SUB-39")
    @Tag("SUB-40")
    void subscribeAndUnsubscribe() throws Exception {
        atOnce(6, number -> {
            Session session = session();
            for (int i = 0; i < 20; i++) {
                try (MessageConsumer consumer = session.createSharedDurableConsumer(topic(session), name())) {
                    send(session, topic(session), "x");
                    consumer.receiveNoWait();
                }
                unsubscribe(session);
            }
        });
        Session session = session();
        unsubscribe(session);
        assertThrows(InvalidDestinationException.class, () -> session.unsubscribe(name()));
        assertNull(session.createSharedDurableConsumer(topic(session), name()).receiveNoWait());
    }

    /** Unsubscribe, unless others consume or have done so before. */
    private void unsubscribe(Session session) {
        try {
            session.unsubscribe(name());
        } catch (JMSException inUseOrUnknown) {
            String told = inUseOrUnknown.getMessage();
            assertTrue(told.contains("amqp:resource-locked") || told.contains("amqp:not-found"), told);
        }
    }

    @Test
    @DisplayName("plain subscribers come and go while messages are published: those that stay get everything, in order")
    @Tag("SUB-01")
    void subscribersComeAndGo() throws Exception {
        Session session = session();
        MessageConsumer staying = session.createConsumer(topic(session));
        List<Future<List<String>>> senders = startSenders(true);
        atOnce(4, number -> {
            Session own = session();
            for (int i = 0; i < 20; i++) {
                try (MessageConsumer passing = own.createConsumer(topic(own), i % 2 == 0 ? null : "JMSPriority = 4")) {
                    passing.receiveNoWait();
                }
            }
        });
        inOrder(all(senders), texts(staying, COMMITTED));
        assertNull(staying.receiveNoWait());
    }
}
