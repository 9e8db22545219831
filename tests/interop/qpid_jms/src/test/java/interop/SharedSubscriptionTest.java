package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Shared subscriptions, durable and not, of one client and of all (JMS 2.0, 8.3)")
class SharedSubscriptionTest extends BrokerTest {
    private static final String ONE_AT_A_TIME = "jms.prefetchPolicy.all=1";

    /** A way of subscribing, by this test's name: durable or not. */
    interface Kind {
        MessageConsumer subscribe(Session session, Topic topic, String name, String selector) throws JMSException;
    }

    private static final Kind VOLATILE = Session::createSharedConsumer;
    private static final Kind DURABLE = Session::createSharedDurableConsumer;

    private Session publisher;

    @BeforeEach
    void open() throws Exception {
        publisher = session();
    }

    private MessageConsumer subscribe(Kind kind, Session session) throws JMSException {
        return kind.subscribe(session, topic(session), name(), null);
    }

    private void publish(String... texts) throws JMSException {
        send(publisher, topic(publisher), texts);
    }


    /** A session of a client with this id, that has no more than one message for itself. */
    private Session sessionOf(String clientId) throws JMSException {
        return session(Session.AUTO_ACKNOWLEDGE, ONE_AT_A_TIME, "jms.clientID=" + clientId);
    }

    /** Ten messages come to `one` and `other`, each to one of them, and both have some. */
    private void share(MessageConsumer one, MessageConsumer other) throws JMSException {
        List<String> published = IntStream.range(10, 20).mapToObj(Integer::toString).toList();
        publish(published.toArray(String[]::new));
        List<String> received = new ArrayList<>();
        received.add(next(one).getText());
        received.add(next(other).getText());
        received.addAll(drain(one));
        received.addAll(drain(other));
        received.addAll(drain(one));
        received.sort(null);
        assertEquals(published, received);
    }

    private void sharedWithin(Kind kind, Connection connection) throws JMSException {
        Session one = connection.createSession();
        Session other = connection.createSession();
        share(subscribe(kind, one), subscribe(kind, other));
    }

    @Test
    @DisplayName("volatile, of one client: its sessions share")
    @Tag("SUB-05")
    @Tag("SUB-35")
    void volatileOfClient() throws Exception {
        sharedWithin(VOLATILE, connect(ONE_AT_A_TIME, "jms.clientID=" + name()));
    }

    @Test
    @DisplayName("durable, of one client: its sessions share")
    @Tag("SUB-06")
    @Tag("SUB-35")
    void durableOfClient() throws Exception {
        sharedWithin(DURABLE, connect(ONE_AT_A_TIME, "jms.clientID=" + name()));
    }

    @Test
    @DisplayName("volatile, of all: sessions of one connection share")
    @Tag("SUB-07")
    @Tag("SUB-35")
    void volatileWithinConnection() throws Exception {
        sharedWithin(VOLATILE, connect(ONE_AT_A_TIME));
    }

    @Test
    @DisplayName("durable, of all: sessions of one connection share")
    @Tag("SUB-08")
    @Tag("SUB-35")
    void durableWithinConnection() throws Exception {
        sharedWithin(DURABLE, connect(ONE_AT_A_TIME));
    }

    @Test
    @DisplayName("volatile, of all: connections without a client id share")
    @Tag("SUB-07")
    void volatileOfAll() throws Exception {
        share(subscribe(VOLATILE, session(Session.AUTO_ACKNOWLEDGE, ONE_AT_A_TIME)),
            subscribe(VOLATILE, session(Session.AUTO_ACKNOWLEDGE, ONE_AT_A_TIME)));
    }

    @Test
    @DisplayName("durable, of all: connections without a client id share")
    @Tag("SUB-08")
    void durableOfAll() throws Exception {
        share(subscribe(DURABLE, session(Session.AUTO_ACKNOWLEDGE, ONE_AT_A_TIME)),
            subscribe(DURABLE, session(Session.AUTO_ACKNOWLEDGE, ONE_AT_A_TIME)));
    }

    @Test
    @DisplayName("two clients and those without an id have subscriptions of one name, durable and not: six, each gets everything")
    @Tag("SUB-05")
    @Tag("SUB-06")
    @Tag("SUB-07")
    @Tag("SUB-08")
    @Tag("SUB-24")
    void namesOfEach() throws Exception {
        List<MessageConsumer> subscribers = new ArrayList<>();
        for (Session session : List.of(sessionOf(name() + "-1"), sessionOf(name() + "-2"), session())) {
            subscribers.add(subscribe(VOLATILE, session));
            subscribers.add(subscribe(DURABLE, session));
        }
        publish("a", "b");
        for (MessageConsumer subscriber : subscribers) {
            assertEquals(List.of("a", "b"), texts(subscriber, 2));
            assertNull(subscriber.receiveNoWait());
        }
    }

    @Test
    @DisplayName("subscriptions of other names, and plain subscribers, get everything as well")
    @Tag("SUB-07")
    @Tag("SUB-01")
    void otherNames() throws Exception {
        Session session = session();
        MessageConsumer one = session.createSharedConsumer(topic(session), name() + "-1");
        MessageConsumer other = session.createSharedConsumer(topic(session), name() + "-2");
        MessageConsumer plain = session.createConsumer(topic(session));
        publish("a");
        for (MessageConsumer subscriber : List.of(one, other, plain)) {
            assertEquals("a", next(subscriber).getText());
        }
    }

    @Test
    @DisplayName("a volatile one lasts as long as any of its consumers, and takes its backlog with it")
    @Tag("SUB-33")
    void volatileEnds() throws Exception {
        Session one = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=0");
        Session other = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=0");
        MessageConsumer first = subscribe(VOLATILE, one);
        MessageConsumer last = subscribe(VOLATILE, other);
        publish("a", "b");
        first.close();
        assertEquals("a", next(last).getText());
        last.close();
        publish("c");
        assertNull(subscribe(VOLATILE, one).receiveNoWait());
    }

    private void collects(Session session, Kind kind) throws JMSException {
        publish("too early");
        subscribe(kind, session).close();
        publish("a", "b");
        MessageConsumer again = subscribe(kind, session);
        assertEquals(List.of("a", "b"), texts(again, 2));
        assertNull(again.receiveNoWait());
    }

    @Test
    @DisplayName("a durable one of a client collects while nobody is there")
    @Tag("SUB-06")
    @Tag("SUB-30")
    void durableOfClientCollects() throws Exception {
        collects(sessionOf(name()), DURABLE);
    }

    @Test
    @DisplayName("a durable one of all collects while nobody is there, for any connection")
    @Tag("SUB-08")
    @Tag("SUB-30")
    void durableOfAllCollects() throws Exception {
        Connection gone = connect();
        subscribe(DURABLE, gone.createSession());
        gone.close();
        publish("a", "b");
        assertEquals(List.of("a", "b"), texts(subscribe(DURABLE, session()), 2));
    }

    @Test
    @DisplayName("what a consumer leaves unacknowledged goes to the others, in order, and marked")
    @Tag("SUB-07")
    @Tag("RCV-02")
    void handedOn() throws Exception {
        Session leaving = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer first = subscribe(VOLATILE, leaving);
        publish("a", "b", "c");
        assertEquals(List.of("a", "b"), texts(first, 2));
        Session staying = session();
        MessageConsumer second = subscribe(VOLATILE, staying);
        leaving.close();
        comesAgain(second, "a");
        comesAgain(second, "b");
        assertEquals("c", next(second).getText());
    }

    @Test
    @DisplayName("what the consumer of a lost connection had goes to the others")
    @Tag("SUB-08")
    @Tag("RCV-08")
    void connectionLost() throws Exception {
        try (CutProxy proxy = new CutProxy(URL)) {
            Connection frail = keep(factory(proxy.url()).createConnection());
            CountDownLatch lost = new CountDownLatch(1);
            frail.setExceptionListener(failure -> lost.countDown());
            frail.start();
            Session cut = frail.createSession(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer first = subscribe(DURABLE, cut);
            publish("a");
            assertEquals("a", next(first).getText());
            MessageConsumer second = subscribe(DURABLE, session());
            proxy.cut();
            comesAgain(second, "a");
            lost.await();
        }
    }

    @Test
    @DisplayName("a transaction that is rolled back gives its messages back to all")
    @Tag("SUB-08")
    @Tag("RCV-06")
    void rolledBack() throws Exception {
        Session within = session(Session.SESSION_TRANSACTED);
        MessageConsumer first = subscribe(DURABLE, within);
        publish("a", "b");
        assertEquals(List.of("a", "b"), texts(first, 2));
        MessageConsumer second = subscribe(DURABLE, session());
        assertNull(second.receiveNoWait());
        within.close();
        comesAgain(second, "a");
        comesAgain(second, "b");
    }

    private void refusesOtherTopic(Kind kind) throws JMSException {
        Session session = session();
        MessageConsumer holder = subscribe(kind, session);
        Session other = session();
        Topic elsewhere = other.createTopic(name() + "-elsewhere");
        assertThrows(JMSException.class, () -> kind.subscribe(other, elsewhere, name(), null));
        assertThrows(JMSException.class, () -> kind.subscribe(other, topic(other), name(), "colour = 'red'"));
        publish("a", "b");
        assertEquals("a", next(holder).getText());
        MessageConsumer same = subscribe(kind, other);
        assertNotNull(same);
        assertEquals("b", next(holder).getText());
    }

    @Test
    @DisplayName("volatile: with another topic or selector refused while it is in use; its holder is not disturbed")
    @Tag("SUB-21")
    void volatileDiffers() throws Exception {
        refusesOtherTopic(VOLATILE);
    }

    @Test
    @DisplayName("durable: with another topic or selector refused while it is in use; its holder is not disturbed")
    @Tag("SUB-21")
    void durableDiffers() throws Exception {
        refusesOtherTopic(DURABLE);
    }

    @Test
    @DisplayName("durable: another topic or selector begins it anew once nobody uses it, and drops its backlog")
    @Tag("SUB-21")
    void durableBeginsAnew() throws Exception {
        Session session = session();
        // --8<-- [start:begins_anew]
        subscribe(DURABLE, session).close();
        publish("old");
        MessageConsumer changed = session.createSharedDurableConsumer(topic(session), name(), "colour = 'red'");
        assertNull(changed.receiveNoWait());
        // --8<-- [end:begins_anew]
        publish("none");
        assertNull(changed.receiveNoWait());
        changed.close();
        Topic elsewhere = session.createTopic(name() + "-elsewhere");
        MessageConsumer moved = session.createSharedDurableConsumer(elsewhere, name());
        publish("old");
        send(publisher, elsewhere, "new");
        assertEquals("new", next(moved).getText());
        assertNull(moved.receiveNoWait());
    }

    @Test
    @DisplayName("its selector counts while nobody is there, and its consumers agree on it")
    @Tag("SUB-08")
    @Tag("RCV-05")
    void selector() throws Exception {
        String red = "colour = 'red'";
        Session one = session();
        one.createSharedDurableConsumer(topic(one), name(), red).close();
        MessageProducer producer = publisher.createProducer(topic(publisher));
        for (String colour : new String[] {"red", "blue", "red"}) {
            TextMessage message = publisher.createTextMessage(colour);
            message.setStringProperty("colour", colour);
            producer.send(message);
        }
        Session other = session();
        MessageConsumer first = one.createSharedDurableConsumer(topic(one), name(), red);
        // before there is another, which would share them
        assertEquals(List.of("red", "red"), texts(first, 2));
        MessageConsumer second = other.createSharedDurableConsumer(topic(other), name(), red);
        assertNull(first.receiveNoWait());
        assertNull(second.receiveNoWait());
    }

    @Test
    @DisplayName("while an unshared durable one of its client has the name, a shared durable one is refused, in use or not")
    @Tag("SUB-22")
    void takenByUnshared() throws Exception {
        Connection client = connectAs(name());
        Session session = client.createSession();
        session.createDurableConsumer(topic(session), name());
        client.close();
        publish("kept");
        Session again = connectAs(name()).createSession();
        assertThrows(JMSException.class, () -> subscribe(DURABLE, again));
        MessageConsumer volatileOne = subscribe(VOLATILE, again);
        assertNull(volatileOne.receiveNoWait());
        assertEquals("kept", next(again.createDurableConsumer(topic(again), name())).getText());
    }

    @Test
    @DisplayName("eight connections that subscribe at the same moment have one subscription")
    @Tag("SUB-39")
    @Tag("SUB-08")
    void atTheSameMoment() throws Exception {
        List<Session> sessions = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            sessions.add(session(Session.AUTO_ACKNOWLEDGE, ONE_AT_A_TIME));
        }
        ExecutorService threads = Executors.newFixedThreadPool(sessions.size());
        try {
            CountDownLatch start = new CountDownLatch(1);
            List<Future<MessageConsumer>> made = new ArrayList<>();
            for (Session session : sessions) {
                Callable<MessageConsumer> subscribing = () -> {
                    start.await();
                    return subscribe(DURABLE, session);
                };
                made.add(threads.submit(subscribing));
            }
            start.countDown();
            List<MessageConsumer> subscribers = new ArrayList<>();
            for (Future<MessageConsumer> one : made) {
                subscribers.add(one.get());
            }
            List<String> published = IntStream.range(100, 140).mapToObj(Integer::toString).toList();
            publish(published.toArray(String[]::new));
            List<String> received = new ArrayList<>();
            for (MessageConsumer subscriber : subscribers) {
                received.add(next(subscriber).getText());
            }
            for (MessageConsumer subscriber : subscribers) {
                received.addAll(drain(subscriber));
                subscriber.close();
            }
            received.sort(null);
            assertEquals(published, received);
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    @DisplayName("consumers come and go while messages are published: each message once")
    @Tag("SUB-08")
    @Tag("SUB-30")
    void comeAndGo() throws Exception {
        Session session = session();
        List<String> received = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            MessageConsumer subscriber = subscribe(DURABLE, session);
            publish(2 * i + "", 2 * i + 1 + "");
            received.add(next(subscriber).getText());
            subscriber.close();
        }
        received.addAll(drain(subscribe(DURABLE, session)));
        assertEquals(IntStream.range(0, 60).mapToObj(Integer::toString).toList(), received);
    }

    @Test
    @DisplayName("a listener on each of two consumers: all messages, each once")
    @Tag("SUB-07")
    void listeners() throws Exception {
        List<String> heard = new ArrayList<>();
        CountDownLatch all = new CountDownLatch(50);
        for (int i = 0; i < 2; i++) {
            subscribe(VOLATILE, session(Session.AUTO_ACKNOWLEDGE, ONE_AT_A_TIME)).setMessageListener(message -> {
                synchronized (heard) {
                    heard.add(text(message));
                }
                all.countDown();
            });
        }
        List<String> published = IntStream.range(100, 150).mapToObj(Integer::toString).toList();
        publish(published.toArray(String[]::new));
        all.await();
        synchronized (heard) {
            heard.sort(null);
            assertEquals(published, heard);
        }
    }

    private static String text(Message message) {
        try {
            return message.getBody(String.class);
        } catch (JMSException broken) {
            return broken.toString();
        }
    }
}
