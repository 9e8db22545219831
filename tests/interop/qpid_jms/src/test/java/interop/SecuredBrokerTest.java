package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.ExceptionListener;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The broker of tests/interop/secured_broker.py, with the users and the certificates of its folder. */
@DisplayName("A broker with TLS, certificates, SCRAM and rules")
class SecuredBrokerTest extends BrokerTest {
    /** A listener that asks for a certificate, and one that demands it; empty where there is no such broker. */
    static final String ASKING = System.getProperty("broker.secured.asking", "");

    static final String DEMANDING = System.getProperty("broker.secured.demanding", "");
    static final String FOLDER = System.getProperty("broker.secured.folder", "");

    /** Milliseconds after the second failed login in a row within which no further one is checked. */
    private static final long DELAY = 1_000;

    static final String[] TRUSTED = {
        "transport.trustStoreLocation=" + FOLDER + "/trusted.p12", "transport.trustStorePassword=changeit",
    };
    static final String[] SHOWN = {
        "transport.keyStoreLocation=" + FOLDER + "/shop.p12", "transport.keyStorePassword=changeit",
    };

    @BeforeEach
    void skipWithoutBroker() {
        Assumptions.assumeFalse(ASKING.isEmpty(), "broker.secured.asking names no broker");
    }

    /** A factory that trusts the broker's authority. */
    static JmsConnectionFactory trusting(String url, String... options) {
        return factory(url, Stream.of(TRUSTED, options).flatMap(Stream::of).toArray(String[]::new));
    }

    /** A connection as `user`, whose password this is. */
    Connection secured(String user, String password, String... options) throws JMSException {
        return keep(trusting(ASKING, options).createConnection(user, password));
    }

    @Test
    @DisplayName("a password opens it, by the mechanism that the client prefers")
    @Tag("SEC-01")
    @Tag("SEC-02")
    void password() throws Exception {
        works(secured("shop", "tulip"));
    }

    @Test
    @DisplayName("the client prefers SCRAM-SHA-512: a user who may use no other mechanism gets in")
    @Tag("SEC-02")
    void prefersScram() throws Exception {
        works(secured("scram512", "rose"));
        assertThrows(
            JMSSecurityException.class,
            () -> secured("scram512", "rose", "amqp.saslMechanisms=SCRAM-SHA-256").start());
    }

    @Test
    @DisplayName("SCRAM-SHA-512, SCRAM-SHA-256 and PLAIN let the same user in")
    @Tag("SEC-02")
    void eachMechanism() throws Exception {
        for (String mechanism : new String[] {"SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"}) {
            works(secured("shop", "tulip", "amqp.saslMechanisms=" + mechanism));
        }
    }

    @Test
    @DisplayName("a certificate logs in by EXTERNAL, with the rights of its user")
    @Tag("SEC-01")
    @Tag("SEC-02")
    void certificate() throws Exception {
        for (String url : new String[] {ASKING, DEMANDING}) {
            Connection connection = keep(trusting(url, SHOWN).createConnection());
            works(connection);
            Session session = connection.createSession();
            assertThrows(
                JMSSecurityException.class, () -> session.createProducer(session.createQueue("closed.orders")));
        }
    }

    @Test
    @DisplayName("a wrong password and an unknown user are a JMSSecurityException")
    @Tag("SEC-02")
    void wrongLogin() {
        assertThrows(JMSSecurityException.class, () -> secured("mistyped", "wrong").start());
        assertThrows(JMSSecurityException.class, () -> secured("unknown", "tulip").start());
    }

    @Test
    @DisplayName("nobody enters without a user, and without the certificate that is demanded")
    @Tag("SEC-01")
    @Tag("SEC-02")
    void nobody() {
        assertThrows(JMSSecurityException.class, () -> keep(trusting(ASKING).createConnection()).start());
        assertThrows(JMSException.class, () -> keep(trusting(DEMANDING).createConnection("shop", "tulip")).start());
    }

    @Test
    @DisplayName("a broker whose authority is not trusted is not spoken to")
    @Tag("SEC-01")
    void untrusted() {
        assertThrows(JMSException.class, () -> keep(factory(ASKING).createConnection("shop", "tulip")).start());
    }

    @Test
    @DisplayName("a login that comes too soon after failed ones succeeds by failover, and does not stop the client")
    @Tag("SEC-02")
    void throttled() throws Exception {
        String trusting = ASKING + "?" + String.join("&", TRUSTED);
        CompletableFuture<Exception> refusal = new CompletableFuture<>();
        assertThrows(JMSSecurityException.class, () -> secured("hasty", "wrong").start());
        long began = System.nanoTime();
        assertThrows(JMSSecurityException.class, () -> secured("hasty", "wrong").start());
        try {
            secured("hasty", "violet").start();
            long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
            assertTrue(took >= DELAY, () -> "let in after " + took + " ms");
        } catch (JMSException soon) {
            assertTrue(soon.getMessage().contains("temporary"), soon.getMessage());
        }
        String failover = "failover:(" + trusting + ")?failover.reconnectDelay=100&failover.maxReconnectDelay=500";
        Connection connection = keep(new JmsConnectionFactory(failover).createConnection("hasty", "violet"));
        ExceptionListener fail = refusal::complete;
        connection.setExceptionListener(fail);
        CompletableFuture.runAsync(() -> start(connection)).get(SOON, TimeUnit.MILLISECONDS);
        works(connection);
        assertTrue(!refusal.isDone(), () -> "the client gave up: " + refusal.join());
    }

    private static void start(Connection connection) {
        try {
            connection.start();
        } catch (JMSException refused) {
            throw new IllegalStateException(refused);
        }
    }

    @Test
    @DisplayName("a durable subscription is refused to another user, and keeps its messages")
    @Tag("SEC-04")
    void subscriptionOfAnotherUser() throws Exception {
        String clientId = name() + "-client";
        Connection owner = secured("shop", "tulip");
        owner.setClientID(clientId);
        owner.start();
        Session owning = owner.createSession();
        Topic topic = topic(owning);
        owning.createDurableConsumer(topic, "news").close();
        send(owning, topic, "kept");
        assertThrows(JMSException.class, () -> claim(secured("neighbour", "lily"), clientId), "held by its owner");
        owner.close();
        Connection other = secured("neighbour", "lily");
        claim(other, clientId);
        Session session = other.createSession();
        assertThrows(JMSSecurityException.class, () -> session.createDurableConsumer(topic, "news"));
        assertThrows(JMSException.class, () -> session.unsubscribe("news"));
        other.close();
        Connection again = secured("shop", "tulip");
        claim(again, clientId);
        assertEquals("kept", next(again.createSession().createDurableConsumer(topic, "news")).getText());
    }

    private static void claim(Connection connection, String clientId) throws JMSException {
        connection.setClientID(clientId);
        connection.start();
    }

    @Test
    @DisplayName("a user may do what the rules of its role say, and nothing else")
    @Tag("SEC-03")
    void rules() throws Exception {
        Connection connection = secured("reader", "daisy");
        connection.start();
        Session session = connection.createSession();
        String name = "read." + name();
        Session sending = secured("shop", "tulip").createSession();
        send(sending, sending.createQueue(name), "read");
        assertEquals("read", next(session.createConsumer(session.createQueue(name))).getText());
        assertThrows(JMSSecurityException.class, () -> session.createProducer(session.createQueue(name)));
        assertThrows(JMSSecurityException.class, () -> session.createConsumer(queue(session)));
        assertThrows(JMSSecurityException.class, session::createTemporaryQueue);
    }
}
