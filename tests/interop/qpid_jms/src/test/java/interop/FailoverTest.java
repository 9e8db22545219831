package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TransactionRolledBackException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.apache.qpid.jms.JmsConnection;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("A client that reconnects by itself, and finds its subscriptions, transactions and temporary queues")
class FailoverTest extends BrokerTest {
    private CutProxy proxy;
    private Connection connection;
    private CountDownLatch restored;

    @BeforeEach
    void open() throws Exception {
        proxy = new CutProxy(URL);
        connection = reconnecting(name());
    }

    @AfterEach
    void closeProxy() throws Exception {
        connection.close();
        proxy.close();
    }

    /** A started connection through the proxy, of the client `clientId`, or of nobody where that is empty. */
    private Connection reconnecting(String clientId) throws JMSException {
        String options = "failover.reconnectDelay=5&failover.initialReconnectDelay=0&jms.requestTimeout=" + CLIENT_PATIENCE;
        JmsConnectionFactory factory = new JmsConnectionFactory(withLogin("failover:(" + proxy.url() + ")?" + options));
        Connection made = factory.createConnection();
        if (!clientId.isEmpty()) {
            made.setClientID(clientId);
        }
        restored = new CountDownLatch(1);
        ((JmsConnection) made).addConnectionListener(new RestoredListener(restored));
        made.start();
        return made;
    }

    private void cut() throws Exception {
        proxy.cut();
        restored.await();
    }

    private void publish(String... texts) throws JMSException {
        Session session = session();
        send(session, topic(session), texts);
    }

    @Test
    @DisplayName("a durable subscriber misses nothing")
    @Tag("SUB-02")
    @Tag("SUB-36")
    void durableSubscriber() throws Exception {
        Session session = connection.createSession();
        MessageConsumer subscriber = session.createDurableConsumer(topic(session), "subscription");
        publish("a");
        assertEquals("a", next(subscriber).getText());
        proxy.cut();
        publish("b", "c");
        restored.await();
        // "a" may come again: its acknowledgement may have been lost with the socket.
        List<String> texts = texts(subscriber, 2);
        if (texts.get(0).equals("a")) {
            texts.add(next(subscriber).getText());
            texts.remove(0);
        }
        assertEquals(List.of("b", "c"), texts);
        publish("d");
        assertEquals("d", next(subscriber).getText());
    }

    @Test
    @DisplayName("a shared durable subscriber and a volatile one are there again")
    @Tag("SUB-08")
    @Tag("SUB-07")
    @Tag("SUB-36")
    void sharedSubscribers() throws Exception {
        connection.close();
        connection = reconnecting("");
        Session session = connection.createSession();
        MessageConsumer durable = session.createSharedDurableConsumer(topic(session), name());
        MessageConsumer temporary = session.createSharedConsumer(topic(session), name());
        cut();
        publish("a");
        assertEquals("a", next(durable).getText());
        assertEquals("a", next(temporary).getText());
    }

    @Test
    @DisplayName("a transaction that was cut is rolled back: its commit says so, and the next one works")
    @Tag("RCV-06")
    @Tag("RCV-08")
    void transaction() throws Exception {
        fill("a");
        Session within = connection.createSession(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = within.createConsumer(queue(within));
        MessageProducer producer = within.createProducer(within.createQueue(name() + "-onward"));
        producer.send(next(consumer));
        cut();
        assertThrows(TransactionRolledBackException.class, within::commit);
        producer.send(next(consumer));
        within.commit();
        Session other = session();
        MessageConsumer onward = other.createConsumer(other.createQueue(name() + "-onward"));
        assertEquals("a", next(onward).getText());
        assertNull(onward.receiveNoWait());
        connection.close();
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("a temporary queue is made anew, and requests find their way back")
    @Tag("TMP-01")
    @Tag("TMP-03")
    void temporaryQueue() throws Exception {
        Session session = connection.createSession();
        TemporaryQueue replies = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(replies);
        cut();
        var request = session.createTextMessage("question");
        request.setJMSReplyTo(replies);
        session.createProducer(queue(session)).send(request);
        Session answering = session();
        var back = next(answering.createConsumer(queue(answering))).getJMSReplyTo();
        send(answering, back, "answer");
        assertEquals("answer", next(consumer).getText());
    }

    @Test
    @DisplayName("cuts while messages are sent: none is missing, those that come twice are the same")
    @Tag("RCV-08")
    void sending() throws Exception {
        Session session = connection.createSession();
        MessageProducer producer = session.createProducer(queue(session));
        List<String> sent = IntStream.range(100, 200).mapToObj(Integer::toString).toList();
        for (String text : sent) {
            producer.send(session.createTextMessage(text));
            if (text.endsWith("50") || text.endsWith("99")) {
                proxy.cut();
            }
        }
        Set<String> received = new LinkedHashSet<>(left());
        assertEquals(new ArrayList<>(sent), new ArrayList<>(received));
    }

    @Test
    @DisplayName("a consumer gets everything, in order, through cuts")
    @Tag("RCV-08")
    void receiving() throws Exception {
        List<String> sent = IntStream.range(100, 200).mapToObj(Integer::toString).toList();
        fill(sent.toArray(String[]::new));
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue(session));
        Set<String> received = new LinkedHashSet<>();
        for (int i = 0; received.size() < sent.size(); i++) {
            assertTrue(i < 1000, "it ends");
            var message = next(consumer);
            received.add(message.getText());
            if (i == 30 || i == 70) {
                proxy.cut();
            } else {
                acknowledge(message);
            }
        }
        assertEquals(sent, new ArrayList<>(received));
    }

    /** Acknowledge, unless the connection has gone with the message. */
    private static void acknowledge(jakarta.jms.Message message) {
        try {
            message.acknowledge();
        } catch (JMSException lost) {
            // it comes again
        }
    }
}
