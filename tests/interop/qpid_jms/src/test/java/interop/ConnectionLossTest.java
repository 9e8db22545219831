package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.apache.qpid.jms.exceptions.JmsConnectionFailedException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("A connection whose socket is cut")
class ConnectionLossTest extends BrokerTest {
    private CutProxy proxy;

    @BeforeEach
    void openProxy() throws Exception {
        proxy = new CutProxy(URL);
    }

    @AfterEach
    void closeProxy() throws Exception {
        proxy.close();
    }

    /** A started connection through the proxy, and the failure that its client will hear of. */
    private Connection proxied(CompletableFuture<JMSException> failure) throws JMSException {
        Connection connection = keep(factory(proxy.url()).createConnection());
        connection.setExceptionListener(failure::complete);
        connection.start();
        return connection;
    }

    private void cut(CompletableFuture<JMSException> failure) throws Exception {
        proxy.cut();
        failure.get(SOON, TimeUnit.MILLISECONDS);
    }

    @Test
    @DisplayName("messages received but not acknowledged, and messages prefetched, are redelivered in order")
    @Tag("RCV-08")
    @Tag("RCV-01")
    void redelivered() throws Exception {
        fill("a", "b", "c", "d");
        CompletableFuture<JMSException> failure = new CompletableFuture<>();
        Session session = proxied(failure).createSession(Session.CLIENT_ACKNOWLEDGE);
        assertEquals(List.of("a", "b"), texts(session.createConsumer(queue(session)), 2));
        cut(failure);
        Session other = session();
        MessageConsumer consumer = other.createConsumer(queue(other));
        for (String text : new String[] {"a", "b", "c", "d"}) {
            Message message = next(consumer);
            assertEquals(text, message.getBody(String.class));
            if (text.compareTo("c") < 0) {
                assertTrue(message.getJMSRedelivered(), text + " had been received before");
                assertEquals(2, deliveryCount(message));
            }
        }
    }

    @Test
    @DisplayName("a socket that is closed without a close frame is a JmsConnectionFailedException; messages return")
    @Tag("RCV-08")
    void hungUp() throws Exception {
        fill("a", "b");
        CompletableFuture<JMSException> failure = new CompletableFuture<>();
        Session session = proxied(failure).createSession(Session.CLIENT_ACKNOWLEDGE);
        next(session.createConsumer(queue(session)));
        proxy.hangUp();
        assertInstanceOf(JmsConnectionFailedException.class, failure.get(SOON, TimeUnit.MILLISECONDS));
        Session other = session();
        assertEquals(List.of("a", "b"), texts(other.createConsumer(queue(other)), 2));
    }

    @Test
    @DisplayName("messages return to a consumer that waits already")
    @Tag("RCV-08")
    void toWaitingConsumer() throws Exception {
        fill("a", "b", "c");
        CompletableFuture<JMSException> failure = new CompletableFuture<>();
        Session session = proxied(failure).createSession(Session.CLIENT_ACKNOWLEDGE);
        next(session.createConsumer(queue(session)));
        Session other = session();
        MessageConsumer waiting = other.createConsumer(queue(other));
        cut(failure);
        assertEquals(List.of("a", "b", "c"), texts(waiting, 3));
    }

    @Test
    @DisplayName("what was acknowledged before stays gone")
    @Tag("RCV-02")
    void acknowledged() throws Exception {
        fill("a", "b", "c");
        CompletableFuture<JMSException> failure = new CompletableFuture<>();
        Connection connection = proxied(failure);
        Session session = connection.createSession(INDIVIDUAL);
        next(session.createConsumer(queue(session))).acknowledge();
        // The answer to another begin comes behind the acknowledgement: the broker has it now.
        connection.createSession();
        cut(failure);
        Session other = session();
        assertEquals(List.of("b", "c"), texts(other.createConsumer(queue(other)), 2));
    }

    @Test
    @DisplayName("many returns by lost connections are not held against the redelivery limit")
    @Tag("RCV-08")
    void notHeldAgainstTheLimit() throws Exception {
        fill("survivor");
        int losses = Integer.getInteger("broker.max.delivery.count", 20) + 5;
        for (int i = 0; i < losses; i++) {
            CompletableFuture<JMSException> failure = new CompletableFuture<>();
            Session session = proxied(failure).createSession(Session.CLIENT_ACKNOWLEDGE);
            assertEquals("survivor", next(session.createConsumer(queue(session))).getText());
            cut(failure);
        }
        assertEquals(List.of("survivor"), left());
    }

    @Test
    @DisplayName("every send that returned before the cut is in the queue, in order")
    void sends() throws Exception {
        CompletableFuture<JMSException> failure = new CompletableFuture<>();
        Session session = proxied(failure).createSession();
        MessageProducer producer = session.createProducer(queue(session));
        for (int i = 0; i < 20; i++) {
            producer.send(session.createTextMessage("" + i), DeliveryMode.PERSISTENT, 4, 0);
        }
        cut(failure);
        assertThrows(JMSException.class, () -> producer.send(session.createTextMessage("too late")));
        Session other = session();
        MessageConsumer consumer = other.createConsumer(queue(other));
        for (int i = 0; i < 20; i++) {
            assertEquals("" + i, next(consumer).getText());
        }
    }

    @Test
    @DisplayName("a message that was cut off half way is not in the queue")
    void halfMessage() throws Exception {
        CompletableFuture<JMSException> failure = new CompletableFuture<>();
        Session session = proxied(failure).createSession();
        MessageProducer producer = session.createProducer(queue(session));
        BytesMessage large = session.createBytesMessage();
        large.writeBytes(new byte[40 << 20]);
        proxy.allow(4 << 20);
        CompletableFuture<Void> sent = CompletableFuture.runAsync(
            () -> assertThrows(JMSException.class, () -> producer.send(large)));
        proxy.awaitMore();
        cut(failure);
        sent.get(SOON, TimeUnit.MILLISECONDS);
        fill("whole");
        assertEquals(List.of("whole"), left());
    }

    @Test
    @DisplayName("a failover client reconnects under its own id and goes on")
    @Tag("CON-04")
    @Tag("RCV-08")
    void failover() throws Exception {
        JmsConnectionFactory factory = new JmsConnectionFactory(withLogin(
            "failover:(" + proxy.url() + ")?jms.clientID=" + name() + "&failover.reconnectDelay=10&failover.maxReconnectDelay=100"));
        Connection connection = keep(factory.createConnection());
        connection.start();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(queue(session));
        MessageProducer producer = session.createProducer(queue(session));
        for (int i = 0; i < 5; i++) {
            producer.send(session.createTextMessage("" + i));
            assertEquals("" + i, nextNew(consumer));
            proxy.cut();
        }
        producer.send(session.createTextMessage("still here"));
        assertEquals("still here", nextNew(consumer));
    }

    /** The next text that is not redelivered: an acknowledgement may have been lost with its connection. */
    private static String nextNew(MessageConsumer consumer) throws JMSException {
        Message message = next(consumer);
        while (message.getJMSRedelivered()) {
            message = next(consumer);
        }
        return message.getBody(String.class);
    }
}
