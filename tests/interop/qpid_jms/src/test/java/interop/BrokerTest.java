package interop;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;

/** What every test has: the broker's address, connections that are closed for it, and a name nobody else uses. */
abstract class BrokerTest {
    static final String URL = System.getProperty("broker.url", "amqp://127.0.0.1:5672");

    /** How the tests log in at URL, as options such as "jms.username=shop". Empty where the broker lets everybody in. */
    static final String LOGIN = System.getProperty("broker.login", "");

    /** A broker that refuses much: broker_process.py's STRICT says what. Empty where there is none. */
    static final String STRICT_URL = System.getProperty("broker.strict.url", "");

    static final String USER = System.getProperty("broker.user", "alice");
    static final String PASSWORD = System.getProperty("broker.password", "sesame");

    /** Long enough for a loaded machine; a message that is due comes at once. Half of what a test has for all. */
    static final long SOON = 12_000;

    /**
     * How long the client waits for the broker's replies, and to drain: longer than any test may take
     * (junit-platform.properties), so that none can pass by what its client does when it gives up.
     */
    static final int CLIENT_PATIENCE = 30_000;

    /** How long an idle connection must survive: longer than any time-out that the tests ask for. */
    static final long IDLE_MS = 5_000;

    /** Session mode of Qpid JMS: acknowledge() is for one message. */
    static final int INDIVIDUAL = 101;

    private final List<Connection> opened = Collections.synchronizedList(new ArrayList<>());
    private String name;

    @BeforeEach
    void chooseName(TestInfo test) {
        name = test.getTestMethod().orElseThrow().getName() + "-" + UUID.randomUUID().toString().substring(0, 8);
    }

    @AfterEach
    void closeConnections() {
        for (Connection connection : opened) {
            try {
                connection.close();
            } catch (JMSException alreadyGone) {
                // the test has said what it thinks of that
            }
        }
    }

    /** An address of this test alone. */
    String name() {
        return name;
    }

    /** A factory for `url` that gives up instead of waiting for ever; options such as "jms.prefetchPolicy.all=0". */
    static JmsConnectionFactory factory(String url, String... options) {
        StringBuilder full = new StringBuilder(url).append("?amqp.drainTimeout=").append(CLIENT_PATIENCE);
        for (String kind : new String[] {"connect", "request", "send", "close"}) {
            full.append("&jms.").append(kind).append("Timeout=").append(CLIENT_PATIENCE);
        }
        for (String option : options) {
            full.append('&').append(option);
        }
        return new JmsConnectionFactory(withLogin(full.toString()));
    }

    /** `url`, which may have options, with the options of LOGIN. */
    static String withLogin(String url) {
        return LOGIN.isEmpty() ? url : url + (url.contains("?") ? '&' : '?') + LOGIN;
    }

    /** A factory for the strict broker; the test is skipped where there is none. */
    static JmsConnectionFactory strictly(String... options) {
        Assumptions.assumeFalse(STRICT_URL.isEmpty(), "broker.strict.url names no broker");
        return factory(STRICT_URL, options);
    }

    /** Have `connection` closed when the test is over. */
    <C extends Connection> C keep(C connection) {
        opened.add(connection);
        return connection;
    }

    /** A started connection to the broker. */
    Connection connect(String... options) throws JMSException {
        Connection connection = keep(factory(URL, options).createConnection());
        connection.start();
        return connection;
    }

    /** A started connection to the strict broker. */
    Connection connectStrictly() throws JMSException {
        Connection connection = keep(strictly().createConnection(USER, PASSWORD));
        connection.start();
        return connection;
    }

    /** A started connection of the client `clientId`. */
    Connection connectAs(String clientId) throws JMSException {
        Connection connection = keep(factory(URL).createConnection());
        connection.setClientID(clientId);
        connection.start();
        return connection;
    }

    /** A session of its own connection. */
    Session session(int acknowledgeMode, String... options) throws JMSException {
        return connect(options).createSession(acknowledgeMode);
    }

    Session session() throws JMSException {
        return session(Session.AUTO_ACKNOWLEDGE);
    }

    Queue queue(Session session) throws JMSException {
        return session.createQueue(name);
    }

    Topic topic(Session session) throws JMSException {
        return session.createTopic(name);
    }

    /** Send one text message for each of `texts`; the broker has them all when this returns. */
    static void send(Session session, Destination destination, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(destination);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    /** Fill this test's queue from a connection that is closed again. */
    void fill(String... texts) throws JMSException {
        try (Connection connection = factory(URL).createConnection()) {
            Session session = connection.createSession();
            send(session, queue(session), texts);
        }
    }

    /** Send many messages, non-persistent, without waiting for each; the broker has them all when this returns. */
    static void sendMany(Session session, Destination destination, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(destination);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    /** The next message, which must be there soon. */
    static TextMessage next(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(SOON);
        if (message == null) {
            throw new AssertionError("no message came");
        }
        return (TextMessage) message;
    }

    /** The texts of the next `count` messages. */
    static List<String> texts(MessageConsumer consumer, int count) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            texts.add(next(consumer).getText());
        }
        return texts;
    }

    /** The texts of everything that the queue has for a new consumer, taken from it. */
    static List<String> drain(MessageConsumer consumer) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (Message message = consumer.receiveNoWait(); message != null; message = consumer.receiveNoWait()) {
            texts.add(((TextMessage) message).getText());
        }
        return texts;
    }

    /** What is left in this test's queue for a newcomer. */
    List<String> left() throws JMSException {
        try (Connection connection = factory(URL).createConnection()) {
            connection.start();
            Session session = connection.createSession();
            return drain(session.createConsumer(queue(session)));
        }
    }

    /** Return once the clock, which is the broker's, too, is past that moment. */
    static void waitUntilAfter(long epochMillis) {
        while (System.currentTimeMillis() <= epochMillis) {
            LockSupport.parkUntil(epochMillis + 1);
        }
    }

    /** The message that the broker gave up on, taken from the dead letter queue, which all tests share. */
    TextMessage deadLetter(String messageId) throws JMSException {
        Session session = session();
        return next(session.createConsumer(session.createQueue("DLQ"), "JMSMessageID = '" + messageId + "'"));
    }

    /** `connection` carries a message to this test's queue and back. */
    void works(Connection connection) throws JMSException {
        connection.start();
        Session session = connection.createSession();
        send(session, queue(session), "works");
        Assertions.assertEquals("works", next(session.createConsumer(queue(session))).getText());
        session.close();
    }

    /** `connection` stays whole for IDLE_MS without a frame from the application, and works then. */
    void survivesIdleness(Connection connection) throws Exception {
        CountDownLatch failed = new CountDownLatch(1);
        connection.setExceptionListener(failure -> failed.countDown());
        connection.start();
        connection.createSession();
        Assertions.assertFalse(failed.await(IDLE_MS, TimeUnit.MILLISECONDS), "the connection was lost while idle");
        works(connection);
    }

    /** The next message says that it has been delivered before, `count` times with this one. */
    static void comesAgain(MessageConsumer consumer, String text, int count) throws JMSException {
        TextMessage message = next(consumer);
        Assertions.assertEquals(text, message.getText());
        Assertions.assertEquals(count, deliveryCount(message), text);
        Assertions.assertEquals(count > 1, message.getJMSRedelivered(), text);
    }

    /**
     * The next message says that it has been delivered before. Counted more than once where the broker delivered it
     * again before it heard of the end of the session, for what ends without an outcome counts (RCV-08).
     */
    static void comesAgain(MessageConsumer consumer, String text) throws JMSException {
        TextMessage message = next(consumer);
        Assertions.assertEquals(text, message.getText());
        Assertions.assertTrue(message.getJMSRedelivered(), text + " says that it is redelivered");
        Assertions.assertTrue(deliveryCount(message) > 1, text + " counts its deliveries");
    }

    static int deliveryCount(Message message) throws JMSException {
        return message.getIntProperty("JMSXDeliveryCount");
    }
}
