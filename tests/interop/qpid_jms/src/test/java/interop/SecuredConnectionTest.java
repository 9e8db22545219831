package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Session;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("A broker that knows one user and has short time-outs")
class SecuredConnectionTest extends BrokerTest {
    @BeforeEach
    void skipWithoutBroker() {
        strictly();
    }

    @Test
    @DisplayName("the right password opens it")
    void rightPassword() throws Exception {
        works(keep(strictly().createConnection(USER, PASSWORD)));
    }

    @Test
    @DisplayName("a wrong password is a JMSSecurityException")
    void wrongPassword() {
        assertThrows(JMSSecurityException.class, () -> strictly().createConnection(USER, "wrong").start());
    }

    @Test
    @DisplayName("an unknown user is a JMSSecurityException")
    void unknownUser() {
        assertThrows(JMSSecurityException.class, () -> strictly().createConnection("mallory", PASSWORD).start());
    }

    @Test
    @DisplayName("nobody enters without a name")
    void nameless() {
        assertThrows(JMSSecurityException.class, () -> strictly().createConnection().start());
        assertThrows(JMSSecurityException.class, () -> strictly().createConnection(USER, "").start());
    }

    @Test
    @DisplayName("nobody enters without a SASL layer")
    void withoutSasl() {
        assertThrows(JMSException.class, () -> strictly("amqp.saslLayer=false").createConnection().start());
    }

    @Test
    @DisplayName("the client's heartbeats keep an idle connection open")
    void clientHeartbeats() throws Exception {
        survivesIdleness(keep(strictly().createConnection(USER, PASSWORD)));
    }

    @Test
    @DisplayName("a client may wait between SASL and open for longer than the handshake may take")
    void lateOpen() throws Exception {
        Connection connection = keep(strictly().createConnection(USER, PASSWORD));
        CountDownLatch failed = new CountDownLatch(1);
        connection.setExceptionListener(failure -> failed.countDown());
        assertFalse(failed.await(IDLE_MS, TimeUnit.MILLISECONDS), "the broker did not wait for the open");
        works(connection);
    }

    @Test
    @DisplayName("the user name goes with a message that says who sent it")
    @Tag("PRD-05")
    void userId() throws Exception {
        Connection connection = keep(strictly("jms.populateJMSXUserID=true").createConnection(USER, PASSWORD));
        connection.start();
        Session session = connection.createSession();
        send(session, queue(session), "signed");
        assertEquals(USER, next(session.createConsumer(queue(session))).getStringProperty("JMSXUserID"));
    }
}
