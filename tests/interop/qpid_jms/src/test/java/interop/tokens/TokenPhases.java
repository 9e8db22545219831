package interop.tokens;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.qpid.jms.JmsConnectionExtensions;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.Test;

/** Logins with tokens, which test_qpid_jms_tokens.py issues. */
class TokenPhases {
    private static final String URL = System.getProperty("broker.url");
    private static final String USER = "ada";
    private static final String ISSUER = System.getProperty("token.issuer");
    private static final long SOON_MS = 15_000;

    @Test
    void xoauth2() throws JMSException {
        works(URL + "?amqp.saslMechanisms=XOAUTH2");
    }

    @Test
    void password() throws JMSException {
        works(URL + "?amqp.saslMechanisms=PLAIN");
    }

    @Test
    void bad() {
        JmsConnectionFactory factory = new JmsConnectionFactory(URL + "?amqp.saslMechanisms=XOAUTH2");
        JMSException refused =
                assertThrows(JMSSecurityException.class, () -> factory.createConnection(USER, token("bad")).start());
        assertTrue(refused.getMessage().contains("\"status\":\"400\""), refused.getMessage());
    }

    @Test
    void failover() throws Exception {
        String url = "failover:(" + URL + "?amqp.saslMechanisms=XOAUTH2)?failover.reconnectDelay=10";
        JmsConnectionFactory factory = new JmsConnectionFactory(url);
        AtomicInteger logins = new AtomicInteger();
        factory.setExtension(
                JmsConnectionExtensions.PASSWORD_OVERRIDE.toString(),
                (connection, uri) -> token(logins.getAndIncrement() == 0 ? "short" : "good"));
        try (Connection connection = factory.createConnection(USER, "")) {
            connection.start();
            Session session = connection.createSession();
            Queue queue = session.createQueue("tokens");
            for (long until = System.currentTimeMillis() + SOON_MS; logins.get() < 2; Thread.sleep(20)) {
                assertTrue(System.currentTimeMillis() < until, "the client was not asked for another token");
            }
            session.createProducer(queue).send(session.createTextMessage("again"));
            assertEquals("again", session.createConsumer(queue).receive(SOON_MS).getBody(String.class));
        }
        assertEquals(2, logins.get());
    }

    /** Get a token of that kind, made now. */
    private static String token(String kind) {
        try (InputStream answer = URI.create(ISSUER + kind).toURL().openStream()) {
            return new String(answer.readAllBytes(), StandardCharsets.US_ASCII);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static void works(String url) throws JMSException {
        try (Connection connection = new JmsConnectionFactory(url).createConnection(USER, token("good"))) {
            connection.start();
            Session session = connection.createSession();
            Queue queue = session.createQueue("tokens");
            session.createProducer(queue).send(session.createTextMessage("once"));
            assertEquals("once", session.createConsumer(queue).receive(SOON_MS).getBody(String.class));
        }
    }
}
