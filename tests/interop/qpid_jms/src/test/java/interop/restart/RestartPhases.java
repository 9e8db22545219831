package interop.restart;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What is done before a broker is killed, and what must be there when it runs again: test_qpid_jms_restart.py. */
class RestartPhases {
    private static final int MANY = 1_000;
    private static final int SEEN = 10;
    private static final long DELAY_MS = 15_000;
    private static final long SOON_MS = 5_000;
    private static final String NUMBER = "number";
    private static final String DUE = "due";

    private Connection connection;
    private Session session;

    @BeforeEach
    void connect() throws JMSException {
        connection = new JmsConnectionFactory(System.getProperty("broker.url")).createConnection();
        connection.setClientID("restarted");
        connection.start();
        session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
    }

    @AfterEach
    void close() throws JMSException {
        connection.close();
    }

    @Test
    void before() throws JMSException {
        session.createDurableConsumer(session.createTopic("restart.topic"), "letters").close();
        send(session.createProducer(session.createQueue("restart.queue")));
        send(session.createProducer(session.createTopic("restart.topic")));
        MessageProducer later = session.createProducer(session.createQueue("restart.later"));
        later.setDeliveryDelay(DELAY_MS);
        Message scheduled = session.createMessage();
        scheduled.setLongProperty(DUE, System.currentTimeMillis() + DELAY_MS);
        later.send(scheduled);
        MessageConsumer consumer = session.createConsumer(session.createQueue("restart.queue"));
        for (int number = 0; number < SEEN; number++) {
            assertEquals(number, next(consumer, SOON_MS).getIntProperty(NUMBER));
        }
    }

    @Test
    void after() throws JMSException {
        checkAll(session.createConsumer(session.createQueue("restart.queue")), SEEN);
        checkAll(session.createDurableConsumer(session.createTopic("restart.topic"), "letters"), 0);
        Message scheduled = next(session.createConsumer(session.createQueue("restart.later")), DELAY_MS + SOON_MS);
        assertTrue(System.currentTimeMillis() >= scheduled.getLongProperty(DUE));
        scheduled.acknowledge();
    }

    private void send(MessageProducer producer) throws JMSException {
        for (int number = 0; number < MANY; number++) {
            Message message = session.createTextMessage("x".repeat(1_000));
            message.setIntProperty(NUMBER, number);
            producer.send(message);
        }
    }

    /** All are there, in their order and once; those that were seen before say so. */
    private void checkAll(MessageConsumer consumer, int seen) throws JMSException {
        Message last = null;
        for (int number = 0; number < MANY; number++) {
            last = next(consumer, SOON_MS);
            assertEquals(number, last.getIntProperty(NUMBER));
            assertTrue(number >= seen || last.getJMSRedelivered(), "message " + number + " was seen before");
        }
        assertNotNull(last);
        last.acknowledge();
        assertNull(consumer.receiveNoWait());
    }

    private static Message next(MessageConsumer consumer, long patienceMs) throws JMSException {
        Message message = consumer.receive(patienceMs);
        assertNotNull(message, "nothing came");
        return message;
    }
}
