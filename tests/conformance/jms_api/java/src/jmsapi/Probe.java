package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.Destination;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.JMSSecurityRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.qpid.jms.JmsConnectionFactory;

/** What a test gets: connections that are closed for it, names that no other test uses, and steps of many tests. */
final class Probe {
    /** Milliseconds within which a message that is due must arrive. */
    static final long SOON_MS = Settings.TIMEOUT_MS;

    /** Milliseconds for which nothing may happen where only waiting can show it. */
    static final long QUIET_MS = 150;

    /** Milliseconds that the client waits for replies: longer than a test may take, so that it cannot pass by that. */
    private static final int CLIENT_PATIENCE_MS = 30_000;

    /** Pauses before another login if the broker asks for one (sys-temp): it delays logins after failed ones. */
    private static final long[] LOGIN_PAUSES_MS = {200, 500, 1_000, 2_000};

    /** A started connection that outlives the tests: each login takes time. */
    private static Connection other;
    private static volatile boolean isLost = true;

    /** The mechanism to log in with: PLAIN if the broker offers it, since hashing a password takes time. */
    private static String mechanism = Settings.MECHANISM;

    private final String name;
    private final List<AutoCloseable> opened = Collections.synchronizedList(new ArrayList<>());
    private final List<Throwable> background = Collections.synchronizedList(new ArrayList<>());

    Probe(String test) {
        this.name = "jms-api-" + test + "-" + UUID.randomUUID().toString().substring(0, 8);
    }

    /** Open the connection that outlives the tests, unless it is open. */
    static void prepare() {
        if (!isLost) {
            return;
        }
        boolean choose = mechanism.isEmpty() && !Settings.USER.isEmpty();
        try {
            mechanism = choose ? "PLAIN" : mechanism;
            open();
        } catch (JMSException failure) {
            FrameLog.add("the connection for all tests: " + failure);
            if (choose) {
                mechanism = "";
                prepare();
            }
        }
    }

    private static void open() throws JMSException {
        other = factory().createConnection();
        other.setExceptionListener(failure -> isLost = true);
        other.start();
        isLost = false;
    }

    // ---- names and destinations -------------------------------------------------------------

    /** Return a name of this test alone: of a subscription, a client or a queue. */
    String name() {
        return name;
    }

    String name(String which) {
        return name + "-" + which;
    }

    Queue queue(Session session) throws JMSException {
        return session.createQueue(queueName());
    }

    String queueName() {
        return Settings.QUEUE.replace("{name}", name);
    }

    String queueName(String which) {
        return Settings.QUEUE.replace("{name}", name(which));
    }

    Topic topic(Session session) throws JMSException {
        return session.createTopic(topicName());
    }

    String topicName() {
        // some brokers refuse a topic with the name of a queue, which JMS does not forbid
        return topicName("topic");
    }

    String topicName(String which) {
        return Settings.TOPIC.replace("{name}", name(which));
    }

    // ---- connections ------------------------------------------------------------------------

    /** Return a factory for the broker, with options of Qpid JMS such as "jms.clientID=a". */
    static JmsConnectionFactory factory(String... options) {
        return factoryAt(Settings.URL, options);
    }

    /** Return a factory for another address of the broker, which a relay has. */
    static JmsConnectionFactory factoryAt(String url, String... options) {
        // the client would hide that a broker delivers expired messages
        StringBuilder full = new StringBuilder(url).append("?amqp.traceFrames=true&jms.localMessageExpiry=false");
        full.append("&amqp.drainTimeout=").append(CLIENT_PATIENCE_MS);
        for (String kind : List.of("connect", "request", "send", "close")) {
            full.append("&jms.").append(kind).append("Timeout=").append(CLIENT_PATIENCE_MS);
        }
        if (!mechanism.isEmpty()) {
            full.append("&amqp.saslMechanisms=").append(mechanism);
        }
        for (String option : options) {
            full.append('&').append(option);
        }
        JmsConnectionFactory factory = new JmsConnectionFactory(full.toString());
        factory.setUseDaemonThread(true);
        if (!Settings.USER.isEmpty()) {
            factory.setUsername(Settings.USER);
            factory.setPassword(Settings.PASSWORD);
        }
        if (!Settings.CA.isEmpty() || !Settings.CERT.isEmpty()) {
            factory.setSslContext(Certificates.context());
        }
        return factory;
    }

    /** Return a connection that is not started yet. */
    Connection stopped(String... options) throws JMSException {
        return stopped(factory(options));
    }

    Connection stopped(ConnectionFactory factory) throws JMSException {
        for (long pause : LOGIN_PAUSES_MS) {
            try {
                return keep(factory.createConnection());
            } catch (JMSSecurityException refused) {
                awaitNextLogin(refused, pause);
            }
        }
        return keep(factory.createConnection());
    }

    /** Return a started connection. */
    Connection connect(String... options) throws JMSException {
        Connection connection = stopped(options);
        connection.start();
        return connection;
    }

    /** Return a started connection with this client identifier. */
    Connection connectAs(String clientId) throws JMSException {
        Connection connection = stopped();
        connection.setClientID(clientId);
        connection.start();
        return connection;
    }

    JMSContext context(int mode, String... options) {
        for (long pause : LOGIN_PAUSES_MS) {
            try {
                return keep(factory(options).createContext(mode));
            } catch (JMSSecurityRuntimeException refused) {
                awaitNextLogin(refused, pause);
            }
        }
        return keep(factory(options).createContext(mode));
    }

    private static <E extends Exception> void awaitNextLogin(E refused, long pause) throws E {
        // the client says only in words that the outcome was sys-temp (core 5.3.3.6)
        if (!String.valueOf(refused.getMessage()).contains("temporary system error")) {
            throw refused;
        }
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(pause));
    }

    JMSContext context() {
        return context(JMSContext.AUTO_ACKNOWLEDGE);
    }

    /** Return a session on a started connection of its own. */
    Session session(int mode, String... options) throws JMSException {
        return connect(options).createSession(mode);
    }

    Session session() throws JMSException {
        return session(Session.AUTO_ACKNOWLEDGE);
    }

    /** Have `held` closed when the test is over. */
    <C extends AutoCloseable> C keep(C held) {
        opened.add(held);
        return held;
    }

    /** Close the connections of the test, without waiting for those that hang. */
    void closeAll() {
        Thread closing = new Thread(() -> {
            for (AutoCloseable each : opened) {
                try {
                    each.close();
                } catch (Exception gone) {
                    FrameLog.add("closing at the end: " + gone);
                }
            }
        });
        closing.setDaemon(true);
        closing.start();
        try {
            closing.join(SOON_MS);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    // ---- threads ----------------------------------------------------------------------------

    /** Run `action` in another thread; if it throws, the test fails at its end. */
    Thread start(Check.Action action) {
        Thread thread = new Thread(() -> {
            try {
                action.run();
            } catch (Throwable thrown) {
                background.add(thrown);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** Run `action` within a listener, which may not throw; if it throws, the test fails at its end. */
    void within(Check.Action action) {
        try {
            action.run();
        } catch (Throwable thrown) {
            background.add(thrown);
        }
    }

    /** Return the failure of another thread of the test, null if there is none. */
    Failed inBackground() {
        if (background.isEmpty()) {
            return null;
        }
        Throwable first = background.get(0);
        return first instanceof Failed ? (Failed) first
                : new Failed("no exception in a listener or thread", first.toString());
    }

    /** Fail if another thread of the test has failed. */
    void checkBackground() {
        Failed failed = inBackground();
        if (failed != null) {
            throw failed;
        }
    }

    /** Fail unless `thread` ends soon. */
    static void ends(Thread thread, String what) throws InterruptedException {
        thread.join(SOON_MS);
        Check.that(!thread.isAlive(), what + " to return", "it still waits");
    }

    /** Return once `thread` waits, or fail: it is then within the call that blocks. */
    static void waits(Thread thread, String what) {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(SOON_MS);
        while (System.nanoTime() < end) {
            Thread.State state = thread.getState();
            if (state == Thread.State.WAITING || state == Thread.State.TIMED_WAITING) {
                return;
            }
            Check.that(state != Thread.State.TERMINATED, what + " to wait", "it returned");
            LockSupport.parkNanos(1_000_000);
        }
        throw new Failed(what + " to wait", "it runs");
    }

    // ---- steps of many tests ----------------------------------------------------------------

    /** Send a text message for each of `texts`; the broker has them all when this returns. */
    static void send(Session session, Destination destination, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(destination);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    /** Put messages into this test's queue, by a connection that is none of the test's. */
    void fill(String... texts) throws JMSException {
        try (Session session = other.createSession()) {
            send(session, queue(session), texts);
        }
    }

    /** Publish messages to this test's topic, by a connection that is none of the test's. */
    void publish(String... texts) throws JMSException {
        try (Session session = other.createSession()) {
            send(session, topic(session), texts);
        }
    }

    /** Return the next message, or fail if none arrives soon. */
    static Message next(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(SOON_MS);
        if (message == null) {
            throw new Failed("a message", "none within " + SOON_MS + " ms");
        }
        return message;
    }

    static String text(Message message) throws JMSException {
        Check.that(message instanceof TextMessage, "a TextMessage", message);
        return ((TextMessage) message).getText();
    }

    static String nextText(MessageConsumer consumer) throws JMSException {
        return text(next(consumer));
    }

    /** Fail unless the next messages are these, in this order; return the last of them. */
    static Message expect(MessageConsumer consumer, String... texts) throws JMSException {
        Message last = null;
        for (String text : texts) {
            last = next(consumer);
            Check.equal("the next text", text, text(last));
        }
        return last;
    }

    /** Fail unless the next message is `text` and says that it was delivered before. */
    static Message expectAgain(MessageConsumer consumer, String text) throws JMSException {
        Message message = expect(consumer, text);
        Check.equal("JMSRedelivered of " + text, true, message.getJMSRedelivered());
        Check.that(deliveryCount(message) >= 2, "JMSXDeliveryCount of 2 or more", deliveryCount(message));
        return message;
    }

    static int deliveryCount(Message message) throws JMSException {
        return message.getIntProperty("JMSXDeliveryCount");
    }

    /** Take everything that `consumer` gets now. */
    static List<String> drain(MessageConsumer consumer) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (Message message = consumer.receiveNoWait(); message != null; message = consumer.receiveNoWait()) {
            texts.add(text(message));
        }
        return texts;
    }

    /** Fail unless these messages, in this order, are all that a new consumer gets from this test's queue. */
    void left(String... texts) throws JMSException {
        try (Session session = other.createSession()) {
            Check.equal("the messages left in the queue", List.of(texts), drain(session.createConsumer(queue(session))));
        }
    }

    /** Return the texts that a browser of this test's queue shows. */
    static List<String> browsed(QueueBrowser browser) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (Enumeration<?> each = browser.getEnumeration(); each.hasMoreElements();) {
            texts.add(text((Message) each.nextElement()));
        }
        return texts;
    }

    /** Return what an enumeration of JMS has, whose type has no parameter. */
    static List<Object> listed(Enumeration<?> elements) {
        return new ArrayList<>(Collections.list(elements));
    }

    /** Return the next of what listeners have put into `heard`, or fail if there is nothing soon. */
    static <T> T heard(BlockingQueue<T> heard) throws InterruptedException {
        T next = heard.poll(SOON_MS, TimeUnit.MILLISECONDS);
        if (next == null) {
            throw new Failed("a call of the listener", "none within " + SOON_MS + " ms");
        }
        return next;
    }

    /** Fail if listeners put anything into `heard` for QUIET_MS. */
    static <T> void quiet(BlockingQueue<T> heard, String why) throws InterruptedException {
        T next = heard.poll(QUIET_MS, TimeUnit.MILLISECONDS);
        Check.that(next == null, "no call of the listener: " + why, next);
    }

    /** Return once the clock is past that moment. */
    static void waitUntilAfter(long epochMillis) {
        while (System.currentTimeMillis() <= epochMillis) {
            LockSupport.parkUntil(epochMillis + 1);
        }
    }

    static String described(Message message) {
        try {
            String body = message instanceof TextMessage ? " \"" + ((TextMessage) message).getText() + "\"" : "";
            return "a message" + body + " to " + message.getJMSDestination();
        } catch (JMSException | JMSRuntimeException unreadable) {
            return "a message that cannot be read: " + unreadable;
        }
    }
}
