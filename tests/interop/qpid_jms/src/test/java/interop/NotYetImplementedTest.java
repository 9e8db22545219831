package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Session;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** A test moves out of here with the feature that it waits for. */
@DisplayName("What is refused: at once, by the right exception, and the connection goes on")
class NotYetImplementedTest extends BrokerTest {
    private Connection connection;
    private Session session;

    @BeforeEach
    void open() throws Exception {
        connection = keep(factory(URL).createConnection());
        connection.setClientID(name());
        connection.start();
        session = connection.createSession();
    }

    private void refused(Executable attempt) throws JMSException {
        refused("amqp:not-implemented", attempt);
    }

    private void refused(String told, Executable attempt) throws JMSException {
        JMSException refusal = assertThrows(JMSException.class, attempt);
        assertTrue(refusal.getMessage().contains(told), refusal.toString());
        goesOn();
    }

    private void goesOn() throws JMSException {
        send(session, queue(session), "goes on");
        assertEquals("goes on", next(session.createConsumer(queue(session))).getText());
    }

    @Test
    @DisplayName("a durable subscriber")
    void durableSubscriber() throws Exception {
        refused(() -> session.createDurableConsumer(topic(session), "subscription"));
    }

    @Test
    @DisplayName("a shared subscriber")
    void sharedSubscriber() throws Exception {
        refused(() -> session.createSharedConsumer(topic(session), "subscription"));
    }

    @Test
    @DisplayName("a shared durable subscriber")
    void sharedDurableSubscriber() throws Exception {
        refused(() -> session.createSharedDurableConsumer(topic(session), "subscription"));
    }

    @Test
    @DisplayName("a transacted session")
    void transactedSession() throws Exception {
        refused(() -> connection.createSession(true, Session.SESSION_TRANSACTED));
    }

    @Test
    @DisplayName("unsubscribing from a subscription that nobody has")
    void unsubscribe() throws Exception {
        assertThrows(JMSException.class, () -> session.unsubscribe("nobody's"));
        goesOn();
    }
}
