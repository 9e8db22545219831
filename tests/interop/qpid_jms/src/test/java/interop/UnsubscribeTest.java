package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("unsubscribe() (JMS 2.0, 8.3): ends a durable subscription, or changes nothing")
class UnsubscribeTest extends BrokerTest {
    private Session publisher;
    private Connection client;
    private Session session;
    private Session nameless;

    @BeforeEach
    void open() throws Exception {
        publisher = session();
        client = connectAs(name());
        session = client.createSession();
        nameless = session();
    }

    private void publish(String... texts) throws JMSException {
        send(publisher, topic(publisher), texts);
    }

    private MessageConsumer unshared() throws JMSException {
        return session.createDurableConsumer(topic(session), name());
    }

    private MessageConsumer shared(Session of) throws JMSException {
        return of.createSharedDurableConsumer(topic(of), name());
    }

    private void unknown(Session to, String subscription) throws JMSException {
        assertThrows(InvalidDestinationException.class, () -> to.unsubscribe(subscription));
    }

    @Test
    @DisplayName("it ends a subscription, which begins anew without its backlog")
    @Tag("SUB-09")
    @Tag("SUB-31")
    @Tag("SUB-34")
    void unsharedEnds() throws Exception {
        unshared().close();
        publish("dropped");
        session.unsubscribe(name());
        publish("nobody's");
        MessageConsumer anew = unshared();
        assertNull(anew.receiveNoWait());
        publish("a");
        assertEquals("a", next(anew).getText());
    }

    @Test
    @DisplayName("it ends a shared one of its client, by the name that its consumers gave")
    @Tag("SUB-11")
    @Tag("SUB-31")
    @Tag("SUB-35")
    void sharedOfClientEnds() throws Exception {
        MessageConsumer first = shared(session);
        shared(session).close();
        first.close();
        publish("dropped");
        session.unsubscribe(name());
        assertNull(shared(session).receiveNoWait());
    }

    @Test
    @DisplayName("it ends a shared one of all, from a connection that never used it")
    @Tag("SUB-12")
    @Tag("SUB-31")
    @Tag("SUB-35")
    void sharedOfAllEnds() throws Exception {
        MessageConsumer first = shared(nameless);
        shared(nameless).close();
        first.close();
        publish("dropped");
        session().unsubscribe(name());
        assertNull(shared(nameless).receiveNoWait());
    }

    @Test
    @DisplayName("a name that nobody has: InvalidDestinationException, and the session goes on")
    @Tag("SUB-09")
    @Tag("SUB-12")
    @Tag("SUB-40")
    void unknownName() throws Exception {
        for (Session of : List.of(session, nameless)) {
            for (int i = 0; i < 3; i++) {
                unknown(of, name());
            }
            publish("a");
        }
        MessageConsumer subscriber = unshared();
        publish("b");
        assertEquals("b", next(subscriber).getText());
    }

    @Test
    @DisplayName("a second time: InvalidDestinationException")
    @Tag("SUB-34")
    void twice() throws Exception {
        unshared().close();
        session.unsubscribe(name());
        unknown(session, name());
        shared(nameless).close();
        nameless.unsubscribe(name());
        unknown(nameless, name());
    }

    @Test
    @DisplayName("in use by the same connection: JMSException, nothing is lost, and it can be ended later")
    @Tag("SUB-40")
    void usedByItself() throws Exception {
        MessageConsumer subscriber = unshared();
        publish("a");
        assertThrows(JMSException.class, () -> session.unsubscribe(name()));
        publish("b");
        assertEquals(List.of("a", "b"), texts(subscriber, 2));
        subscriber.close();
        session.unsubscribe(name());
    }

    @Test
    @DisplayName("in use by another connection: JMSException, nothing is lost, and it can be ended later")
    @Tag("SUB-31")
    @Tag("SUB-40")
    void usedByAnother() throws Exception {
        MessageConsumer subscriber = shared(nameless);
        publish("a");
        Session other = session();
        for (int i = 0; i < 3; i++) {
            JMSException refused = assertThrows(JMSException.class, () -> other.unsubscribe(name()));
            assertEquals(JMSException.class, refused.getClass());
        }
        publish("b");
        assertEquals(List.of("a", "b"), texts(subscriber, 2));
        subscriber.close();
        other.unsubscribe(name());
        assertNull(shared(nameless).receiveNoWait());
    }

    @Test
    @DisplayName("it looks, and takes nothing: a backlog is whole after an attempt that failed")
    @Tag("SUB-31")
    @Tag("SUB-34")
    void takesNothing() throws Exception {
        String[] texts = IntStream.range(0, 500).mapToObj(Integer::toString).toArray(String[]::new);
        shared(nameless).close();
        sendMany(publisher, topic(publisher), texts);
        Session holding = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=0");
        MessageConsumer holder = shared(holding);
        assertThrows(JMSException.class, () -> nameless.unsubscribe(name()));
        assertEquals(List.of(texts), texts(holder, texts.length));
    }

    @Test
    @DisplayName("a subscription of that name of another client, of all, or that is volatile is not meant")
    @Tag("SUB-09")
    @Tag("SUB-11")
    @Tag("SUB-24")
    void othersNotMeant() throws Exception {
        Connection second = connectAs(name() + "-second");
        Session others = second.createSession();
        MessageConsumer another = others.createDurableConsumer(topic(others), name());
        MessageConsumer ofAll = shared(nameless);
        MessageConsumer temporary = nameless.createSharedConsumer(topic(nameless), name());
        unshared().close();
        publish("a");
        session.unsubscribe(name());
        unknown(session, name());
        for (MessageConsumer subscriber : List.of(another, ofAll, temporary)) {
            assertEquals("a", next(subscriber).getText());
        }
    }

    @Test
    @DisplayName("a volatile subscription is none to it: InvalidDestinationException, and its consumer is not disturbed")
    @Tag("SUB-12")
    @Tag("SUB-34")
    void volatileOne() throws Exception {
        Session holding = session();
        MessageConsumer subscriber = holding.createSharedConsumer(topic(holding), name());
        unknown(nameless, name());
        publish("a");
        assertEquals("a", next(subscriber).getText());
    }

    @Test
    @DisplayName("a name with a subscription of the other scope: a client does not end what belongs to all, nor the reverse")
    @Tag("SUB-09")
    @Tag("SUB-10")
    @Tag("SUB-24")
    void otherScope() throws Exception {
        shared(nameless).close();
        unknown(session, name());
        nameless.unsubscribe(name());
        unshared().close();
        unknown(nameless, name());
        session.unsubscribe(name());
    }

    @Test
    @DisplayName("a hundred times subscribe and unsubscribe")
    @Tag("SUB-34")
    void again() throws Exception {
        for (int i = 0; i < 100; i++) {
            MessageConsumer subscriber = i % 2 == 0 ? unshared() : shared(session);
            publish("" + i);
            assertEquals("" + i, next(subscriber).getText());
            subscriber.close();
            session.unsubscribe(name());
        }
    }

    @Test
    @DisplayName("while a message of it is part of a transaction: JMSException, nothing is lost, and it can be ended later")
    @Tag("SUB-40")
    @Tag("RCV-06")
    void pendingTransaction() throws Exception {
        Session within = client.createSession(Session.SESSION_TRANSACTED);
        MessageConsumer subscriber = within.createDurableConsumer(topic(within), name());
        publish("a", "b");
        assertEquals("a", next(subscriber).getText());
        subscriber.close();
        assertThrows(JMSException.class, () -> session.unsubscribe(name()));
        within.rollback();
        within.close();
        MessageConsumer again = unshared();
        comesAgain(again, "a");
        assertEquals("b", next(again).getText());
        again.close();
        session.unsubscribe(name());
    }

    @Test
    @DisplayName("while a message of it is not acknowledged: JMSException, and it can be ended later")
    @Tag("SUB-40")
    @Tag("RCV-02")
    void notAcknowledged() throws Exception {
        Session patient = client.createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer subscriber = patient.createDurableConsumer(topic(patient), name());
        publish("a");
        var received = next(subscriber);
        subscriber.close();
        assertThrows(JMSException.class, () -> session.unsubscribe(name()));
        received.acknowledge();
        session.unsubscribe(name());
    }
}
