package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TransactionRolledBackException;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Transacted sessions (JMS 2.0, 6.2)")
class TransactionTest extends BrokerTest {
    private Connection connection;
    private Session session;

    @BeforeEach
    void open() throws Exception {
        connection = connect();
        session = transacted(connection);
    }

    private static Session transacted(Connection connection) throws JMSException {
        return connection.createSession(Session.SESSION_TRANSACTED);
    }

    private Queue queue(String suffix) throws JMSException {
        return session.createQueue(name() + "-" + suffix);
    }

    /** What the queue has for a newcomer, taken from it. */
    private List<String> left(Queue queue) throws JMSException {
        try (Connection other = factory(URL).createConnection()) {
            other.start();
            return drain(other.createSession().createConsumer(queue));
        }
    }

    private static String[] numbers(int count) {
        return IntStream.range(0, count).mapToObj(Integer::toString).toArray(String[]::new);
    }

    @Test
    @DisplayName("what is sent is nobody's before the commit, and then comes in order")
    @Tag("RCV-06")
    void sendAndCommit() throws Exception {
        Session other = session();
        MessageConsumer consumer = other.createConsumer(queue(other));
        send(session, queue(session), "a", "b", "c");
        assertNull(consumer.receiveNoWait());
        session.commit();
        assertEquals(List.of("a", "b", "c"), texts(consumer, 3));
        assertNull(consumer.receiveNoWait());
    }

    @Test
    @DisplayName("what is sent is not for a consumer of the same session before the commit, nor for a browser")
    @Tag("RCV-06")
    void notForItself() throws Exception {
        MessageConsumer consumer = session.createConsumer(queue(session));
        send(session, queue(session), "a");
        assertNull(consumer.receiveNoWait());
        try (QueueBrowser browser = session.createBrowser(queue(session))) {
            assertFalse(browser.getEnumeration().hasMoreElements());
        }
        session.commit();
        assertEquals("a", next(consumer).getText());
        session.commit();
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("what is sent and rolled back never comes, and the next transaction is a new one")
    @Tag("RCV-06")
    void sendAndRollback() throws Exception {
        send(session, queue(session), "a", "b");
        session.rollback();
        send(session, queue(session), "c");
        session.commit();
        assertEquals(List.of("c"), left());
    }

    @Test
    @DisplayName("what is received is nobody else's before the commit, and gone after it")
    @Tag("RCV-06")
    void receiveAndCommit() throws Exception {
        fill("a", "b");
        assertEquals(List.of("a", "b"), texts(session.createConsumer(queue(session)), 2));
        assertEquals(List.of(), left());
        session.commit();
        session.close();
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("what is received and rolled back comes again in order, counted, before what was not yet received")
    @Tag("RCV-06")
    @Tag("RCV-01")
    void receiveAndRollback() throws Exception {
        fill("a", "b", "c", "d");
        MessageConsumer consumer = session.createConsumer(queue(session));
        // --8<-- [start:redelivered]
        assertEquals(List.of("a", "b"), texts(consumer, 2));
        session.rollback();
        comesAgain(consumer, "a", 2);
        comesAgain(consumer, "b", 2);
        comesAgain(consumer, "c", 1);
        // --8<-- [end:redelivered]
        session.rollback();
        comesAgain(consumer, "a", 3);
        comesAgain(consumer, "b", 3);
        comesAgain(consumer, "c", 2);
        comesAgain(consumer, "d", 1);
        session.commit();
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("with prefetch 0, too, what is rolled back comes again in order")
    @Tag("RCV-06")
    @Tag("RCV-01")
    void rollbackWithoutPrefetch() throws Exception {
        fill("a", "b", "c");
        Session modest = session(Session.SESSION_TRANSACTED, "jms.prefetchPolicy.all=0");
        MessageConsumer consumer = modest.createConsumer(queue(modest));
        assertEquals(List.of("a", "b"), texts(consumer, 2));
        modest.rollback();
        comesAgain(consumer, "a", 2);
        comesAgain(consumer, "b", 2);
        comesAgain(consumer, "c", 1);
        modest.commit();
    }

    @Test
    @DisplayName("a rollback is for all consumers of the session, each gets its own queue's order again")
    @Tag("RCV-06")
    void severalConsumers() throws Exception {
        Session plain = session();
        send(plain, queue("one"), "1", "2");
        send(plain, queue("other"), "x", "y");
        MessageConsumer one = session.createConsumer(queue("one"));
        MessageConsumer other = session.createConsumer(queue("other"));
        assertEquals("1", next(one).getText());
        assertEquals("x", next(other).getText());
        assertEquals("2", next(one).getText());
        session.rollback();
        comesAgain(other, "x", 2);
        comesAgain(other, "y", 1);
        comesAgain(one, "1", 2);
        comesAgain(one, "2", 2);
        session.commit();
    }

    @Test
    @DisplayName("a consumer that was closed within the transaction has its messages rolled back as well")
    @Tag("RCV-06")
    void consumerClosedWithin() throws Exception {
        fill("a", "b");
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertEquals("a", next(consumer).getText());
        consumer.close();
        session.rollback();
        MessageConsumer again = session.createConsumer(queue(session));
        comesAgain(again, "a", 2);
        comesAgain(again, "b", 1);
        session.commit();
    }

    @Test
    @DisplayName("a consumer that was closed within the transaction has its messages committed as well")
    @Tag("RCV-06")
    void consumerClosedThenCommit() throws Exception {
        fill("a", "b");
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertEquals("a", next(consumer).getText());
        consumer.close();
        session.commit();
        assertEquals(List.of("b"), left());
    }

    @Test
    @DisplayName("a producer that was closed within the transaction has its messages committed")
    @Tag("RCV-06")
    void producerClosedWithin() throws Exception {
        MessageProducer producer = session.createProducer(queue(session));
        producer.send(session.createTextMessage("a"));
        producer.close();
        session.commit();
        assertEquals(List.of("a"), left());
    }

    @Test
    @DisplayName("a session that is closed without a commit rolls back: what it sent, and what it received")
    @Tag("RCV-06")
    void sessionClosed() throws Exception {
        fill("a", "b");
        Queue sent = queue("sent");
        send(session, sent, "never");
        assertEquals("a", next(session.createConsumer(queue(session))).getText());
        session.close();
        assertEquals(List.of(), left(sent));
        Session again = session();
        MessageConsumer consumer = again.createConsumer(queue(again));
        comesAgain(consumer, "a");
        assertEquals("b", next(consumer).getText());
    }

    @Test
    @DisplayName("a connection that is closed without a commit rolls back")
    @Tag("RCV-06")
    void connectionClosed() throws Exception {
        fill("a");
        Queue sent = queue("sent");
        send(session, sent, "never");
        assertEquals("a", next(session.createConsumer(queue(session))).getText());
        connection.close();
        assertEquals(List.of(), left(sent));
        Session again = session();
        comesAgain(again.createConsumer(queue(again)), "a");
    }

    @Test
    @DisplayName("a connection that is lost rolls back")
    @Tag("RCV-06")
    @Tag("RCV-08")
    void connectionLost() throws Exception {
        fill("a");
        Queue sent = queue("sent");
        try (CutProxy proxy = new CutProxy(URL)) {
            Connection frail = keep(factory(proxy.url()).createConnection());
            CountDownLatch lost = new CountDownLatch(1);
            frail.setExceptionListener(failure -> lost.countDown());
            frail.start();
            Session within = transacted(frail);
            send(within, sent, "never");
            assertEquals("a", next(within.createConsumer(queue(within))).getText());
            proxy.cut();
            lost.await();
        }
        Session again = session();
        comesAgain(again.createConsumer(queue(again)), "a");
        assertEquals(List.of(), left(sent));
    }

    @Test
    @DisplayName("a message that is passed on is in one of the two queues, whatever becomes of the transaction")
    @Tag("RCV-06")
    void passedOn() throws Exception {
        fill("a");
        Queue onward = queue("onward");
        // --8<-- [start:passed_on]
        MessageConsumer consumer = session.createConsumer(queue(session));
        MessageProducer producer = session.createProducer(onward);
        producer.send(next(consumer));
        session.rollback();
        assertEquals(List.of(), left(onward));
        Message again = next(consumer);
        assertEquals(2, deliveryCount(again));
        producer.send(again);
        session.commit();
        assertEquals(List.of("a"), left(onward));
        // --8<-- [end:passed_on]
        session.close();
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("sessions of one connection have transactions of their own")
    @Tag("RCV-06")
    void severalSessions() throws Exception {
        Session other = transacted(connection);
        Session plain = connection.createSession();
        send(session, queue(session), "rolled back");
        send(other, queue(other), "committed");
        send(plain, queue(plain), "at once");
        assertEquals(List.of("at once"), left());
        session.rollback();
        assertEquals(List.of(), left());
        other.commit();
        assertEquals(List.of("committed"), left());
    }

    @Test
    @DisplayName("a producer without a destination sends to several queues and a topic, all or nothing")
    @Tag("RCV-06")
    @Tag("PRD-01")
    void allOrNothing() throws Exception {
        Session other = session();
        MessageConsumer subscriber = other.createConsumer(topic(other));
        MessageProducer anonymous = session.createProducer(null);
        for (String round : new String[] {"rolled back", "committed"}) {
            anonymous.send(queue("one"), session.createTextMessage(round));
            anonymous.send(queue("other"), session.createTextMessage(round));
            anonymous.send(topic(session), session.createTextMessage(round));
            if (round.equals("committed")) {
                session.commit();
            } else {
                session.rollback();
            }
        }
        assertEquals(List.of("committed"), left(queue("one")));
        assertEquals(List.of("committed"), left(queue("other")));
        assertEquals("committed", next(subscriber).getText());
        assertNull(subscriber.receiveNoWait());
    }

    @Test
    @DisplayName("a publication meets the subscribers of the moment of its commit")
    @Tag("DLY-03")
    @Tag("RCV-06")
    void subscribersOfTheCommit() throws Exception {
        send(session, topic(session), "a");
        Session other = session();
        MessageConsumer late = other.createConsumer(topic(other));
        session.commit();
        assertEquals("a", next(late).getText());
    }

    @Test
    @DisplayName("a subscriber that rolls back gets it again, the other subscribers do not")
    @Tag("RCV-06")
    @Tag("SUB-01")
    void subscriberRollsBack() throws Exception {
        Session other = session();
        MessageConsumer subscriber = session.createConsumer(topic(session));
        MessageConsumer undisturbed = other.createConsumer(topic(other));
        send(other, topic(other), "a");
        assertEquals("a", next(subscriber).getText());
        assertEquals("a", next(undisturbed).getText());
        session.rollback();
        comesAgain(subscriber, "a", 2);
        session.commit();
        assertNull(undisturbed.receiveNoWait());
    }

    @Test
    @DisplayName("a durable subscriber that rolls back and leaves finds its messages when it returns")
    @Tag("RCV-06")
    @Tag("SUB-02")
    void durableSubscriberRollsBack() throws Exception {
        Connection client = connectAs(name());
        Session within = transacted(client);
        MessageConsumer subscriber = within.createDurableConsumer(topic(within), "subscription");
        Session other = session();
        send(other, topic(other), "a", "b");
        assertEquals("a", next(subscriber).getText());
        client.close();
        Session again = transacted(connectAs(name()));
        MessageConsumer returned = again.createDurableConsumer(topic(again), "subscription");
        comesAgain(returned, "a");
        assertEquals("b", next(returned).getText());
        again.commit();
        returned.close();
        again.unsubscribe("subscription");
    }

    @Test
    @DisplayName("a message that is rolled back too often goes to the dead letter queue")
    @Tag("RCV-06")
    @Tag("RCV-02")
    void redeliveryLimit() throws Exception {
        int limit = Integer.getInteger("broker.max.delivery.count", 20);
        fill("poison", "next");
        MessageConsumer consumer = session.createConsumer(queue(session));
        String id = null;
        for (int delivery = 1; delivery <= limit; delivery++) {
            Message message = next(consumer);
            assertEquals(delivery, deliveryCount(message));
            id = message.getJMSMessageID();
            session.rollback();
        }
        comesAgain(consumer, "next", 1);
        session.commit();
        assertEquals("poison", deadLetter(id).getText());
    }

    @Test
    @DisplayName("a delayed message waits for its commit and for its time")
    @Tag("DLY-03")
    void delayed() throws Exception {
        MessageProducer producer = session.createProducer(queue(session));
        producer.setDeliveryDelay(300);
        producer.send(session.createTextMessage("rolled back"));
        session.rollback();
        producer.send(session.createTextMessage("later"));
        Session other = session();
        MessageConsumer consumer = other.createConsumer(queue(other));
        session.commit();
        Message came = next(consumer);
        assertTrue(System.currentTimeMillis() >= came.getJMSDeliveryTime(), "not before its time");
        assertEquals("later", came.getBody(String.class));
    }

    @Test
    @DisplayName("a listener's session commits and rolls back within onMessage")
    @Tag("RCV-06")
    void listener() throws Exception {
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        session.createConsumer(queue(session)).setMessageListener(message -> {
            try {
                heard.add(message.getBody(String.class) + " " + deliveryCount(message));
                if (deliveryCount(message) == 1) {
                    session.rollback();
                } else {
                    session.commit();
                }
            } catch (JMSException broken) {
                heard.add(broken.toString());
            }
        });
        fill("a");
        assertEquals("a 1", heard.poll(SOON, TimeUnit.MILLISECONDS));
        assertEquals("a 2", heard.poll(SOON, TimeUnit.MILLISECONDS));
        fill("b");
        assertEquals("b 1", heard.poll(SOON, TimeUnit.MILLISECONDS));
        assertEquals("b 2", heard.poll(SOON, TimeUnit.MILLISECONDS));
    }

    @Test
    @DisplayName("empty transactions commit and roll back, again and again")
    @Tag("RCV-06")
    void empty() throws Exception {
        for (int i = 0; i < 50; i++) {
            session.commit();
            session.rollback();
        }
        send(session, queue(session), "a");
        session.commit();
        assertEquals(List.of("a"), left());
    }

    @Test
    @DisplayName("2,000 messages, persistent and not, come in order by one commit and leave by another")
    @Tag("RCV-06")
    @Tag("DST-14")
    void large() throws Exception {
        MessageProducer producer = session.createProducer(queue(session));
        String[] texts = numbers(2000);
        for (int i = 0; i < texts.length; i++) {
            producer.setDeliveryMode(i % 2 == 0 ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
            producer.send(session.createTextMessage(texts[i]));
        }
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue(session));
        assertEquals(List.of(texts), texts(consumer, texts.length));
        session.commit();
        session.close();
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("a hundred transactions, every other one rolled back, leave the committed ones in order")
    @Tag("RCV-06")
    void manyTransactions() throws Exception {
        for (int i = 0; i < 100; i++) {
            send(session, queue(session), "" + i);
            if (i % 2 == 0) {
                session.commit();
            } else {
                session.rollback();
            }
        }
        List<String> committed = IntStream.range(0, 50).mapToObj(i -> "" + 2 * i).toList();
        assertEquals(committed, left());
    }

    @Test
    @DisplayName("settled sends and settled deliveries: what is settled is sent with the commit all the same")
    @Tag("RCV-06")
    void settledSends() throws Exception {
        Session settling = session(Session.SESSION_TRANSACTED, "jms.presettlePolicy.presettleTransactedProducers=true");
        send(settling, queue(settling), "never");
        settling.rollback();
        send(settling, queue(settling), "a");
        assertEquals(List.of(), left());
        settling.commit();
        assertEquals(List.of("a"), left());
    }

    @Test
    @DisplayName("a commit of a message for a full queue: TransactionRolledBackException, and nothing was done")
    @Tag("RCV-06")
    void fullQueue() throws Exception {
        Connection strict = connectStrictly();
        Session within = transacted(strict);
        Session plain = strict.createSession();
        Queue small = within.createQueue("small." + name());
        Queue source = within.createQueue(name());
        send(plain, source, "passed on");
        MessageConsumer consumer = within.createConsumer(source);
        MessageProducer anonymous = within.createProducer(null);
        assertEquals("passed on", next(consumer).getText());
        for (int i = 0; i < 4; i++) {
            anonymous.send(small, within.createTextMessage("" + i));
        }
        // --8<-- [start:full_queue]
        assertThrows(TransactionRolledBackException.class, within::commit);
        comesAgain(consumer, "passed on", 2);
        anonymous.send(small, within.createTextMessage("fits"));
        within.commit();
        // --8<-- [end:full_queue]
        assertEquals(List.of("fits"), drain(plain.createConsumer(small)));
    }

    @Test
    @DisplayName("a commit of a message for an unknown queue: TransactionRolledBackException, and nothing was done")
    @Tag("RCV-06")
    @Tag("PRD-02")
    void unknownQueue() throws Exception {
        Connection strict = connectStrictly();
        Session within = transacted(strict);
        Session plain = strict.createSession();
        Queue known = within.createQueue(name());
        MessageProducer anonymous = within.createProducer(null);
        anonymous.send(known, within.createTextMessage("never"));
        anonymous.send(within.createQueue("closed." + name()), within.createTextMessage("nowhere"));
        assertThrows(TransactionRolledBackException.class, within::commit);
        anonymous.send(known, within.createTextMessage("after"));
        within.commit();
        assertEquals(List.of("after"), drain(plain.createConsumer(known)));
    }

    @Test
    @DisplayName("a message for a queue that was deleted before the commit: TransactionRolledBackException")
    @Tag("RCV-06")
    @Tag("TMP-03")
    void deletedQueue() throws Exception {
        Connection owner = connect();
        var temporary = owner.createSession().createTemporaryQueue();
        MessageProducer anonymous = session.createProducer(null);
        anonymous.send(queue(session), session.createTextMessage("never"));
        anonymous.send(session.createQueue(temporary.getQueueName()), session.createTextMessage("too late"));
        owner.close();
        assertThrows(TransactionRolledBackException.class, session::commit);
        assertEquals(List.of(), left());
        send(session, queue(session), "after");
        session.commit();
        assertEquals(List.of("after"), left());
    }

    @Test
    @DisplayName("a browser of a transacted session is no part of its transaction")
    @Tag("RCV-06")
    @Tag("RCV-04")
    void browser() throws Exception {
        fill("a");
        try (QueueBrowser browser = session.createBrowser(queue(session))) {
            assertTrue(browser.getEnumeration().hasMoreElements());
        }
        session.rollback();
        comesAgain(session.createConsumer(queue(session)), "a", 1);
        session.commit();
    }

    /** Roll back "a" again and again, then have it, and "b" to "e" behind it. */
    private void rollsBackManyTimes(Destination destination, MessageConsumer consumer) throws JMSException {
        Session plain = session();
        MessageProducer producer = plain.createProducer(destination);
        for (String text : new String[] {"a", "b", "c", "d"}) {
            producer.send(grouped(plain, text));
        }
        for (int i = 1; i <= 15; i++) {
            comesAgain(consumer, "a", i);
            session.rollback();
        }
        assertEquals("a", next(consumer).getText());
        session.commit();
        producer.send(grouped(plain, "e"));
        for (String text : new String[] {"b", "c", "d", "e"}) {
            comesAgain(consumer, text, 1);
        }
        session.commit();
    }

    private static Message grouped(Session session, String text) throws JMSException {
        Message message = session.createTextMessage(text);
        message.setStringProperty("JMSXGroupID", "group");
        return message;
    }

    @Test
    @DisplayName("many rollbacks do not disturb the order of what was prefetched meanwhile, nor hold it up")
    @Tag("RCV-06")
    @Tag("RCV-07")
    @Tag("RCV-08")
    void manyRollbacks() throws Exception {
        rollsBackManyTimes(queue(session), session.createConsumer(queue(session)));
    }

    @Test
    @DisplayName("nor with a selector, though it passes others over")
    @Tag("RCV-06")
    @Tag("RCV-05")
    @Tag("RCV-08")
    void manyRollbacksWithSelector() throws Exception {
        fill("not wanted");
        rollsBackManyTimes(queue(session), session.createConsumer(queue(session), "JMSXGroupID = 'group'"));
        session.close();
        assertEquals(List.of("not wanted"), left());
    }

    @Test
    @DisplayName("nor of a shared subscription")
    @Tag("RCV-06")
    @Tag("SUB-08")
    @Tag("RCV-08")
    void manyRollbacksOfSubscription() throws Exception {
        rollsBackManyTimes(topic(session), session.createSharedDurableConsumer(topic(session), name()));
    }
}
