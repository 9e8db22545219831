package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TransactionRolledBackException;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The strict broker's transactions have room for 500 operations, and 4 s. */
@DisplayName("Transactions beyond their limits: TransactionRolledBackException, and the session begins anew")
class TransactionLimitsTest extends BrokerTest {
    private static final int OPERATIONS = 500;

    private Session within;
    private Session plain;

    @BeforeEach
    void open() throws Exception {
        Connection connection = connectStrictly();
        within = connection.createSession(Session.SESSION_TRANSACTED);
        plain = connectStrictly().createSession();
    }

    @Test
    @DisplayName("too many messages sent: none is there")
    @Tag("RCV-06")
    void tooManySends() throws Exception {
        MessageProducer producer = within.createProducer(queue(within));
        for (int i = 0; i <= OPERATIONS; i++) {
            producer.send(within.createTextMessage("never"));
        }
        assertThrows(TransactionRolledBackException.class, within::commit);
        producer.send(within.createTextMessage("after"));
        within.commit();
        assertEquals(List.of("after"), drain(plain.createConsumer(queue(plain))));
    }

    @Test
    @DisplayName("as many as there is room for: they are there")
    @Tag("RCV-06")
    void justEnough() throws Exception {
        MessageProducer producer = within.createProducer(queue(within));
        for (int i = 0; i < OPERATIONS; i++) {
            producer.send(within.createTextMessage("" + i));
        }
        within.commit();
        assertEquals(OPERATIONS, texts(plain.createConsumer(queue(plain)), OPERATIONS).size());
    }

    @Test
    @DisplayName("too many messages received: all come again, in order")
    @Tag("RCV-06")
    @Tag("RCV-01")
    void tooManyReceived() throws Exception {
        MessageProducer producer = plain.createProducer(queue(plain));
        for (int i = 0; i <= OPERATIONS; i++) {
            producer.send(plain.createTextMessage("" + i));
        }
        MessageConsumer consumer = within.createConsumer(queue(within));
        texts(consumer, OPERATIONS + 1);
        assertThrows(TransactionRolledBackException.class, within::commit);
        for (int i = 0; i < 10; i++) {
            comesAgain(consumer, "" + i, 2);
        }
        within.commit();
        within.close();
        assertEquals("10", next(plain.createConsumer(queue(plain))).getText());
    }

    @Test
    @DisplayName("too late: what it received goes to others when its time is over, and its commit says so")
    @Tag("RCV-06")
    @Tag("RCV-01")
    void tooLate() throws Exception {
        send(plain, queue(plain), "a");
        MessageConsumer consumer = within.createConsumer(queue(within));
        assertEquals("a", next(consumer).getText());
        within.createProducer(within.createQueue(name() + "-sent")).send(within.createTextMessage("never"));
        consumer.close();
        MessageConsumer other = plain.createConsumer(queue(plain));
        comesAgain(other, "a", 2);
        assertThrows(TransactionRolledBackException.class, within::commit);
        assertNull(plain.createConsumer(plain.createQueue(name() + "-sent")).receiveNoWait());
        send(within, queue(within), "after");
        within.commit();
        assertEquals("after", next(other).getText());
    }

    @Test
    @DisplayName("a session that does nothing for long is not too late: its time runs from its first operation")
    @Tag("RCV-06")
    void idle() throws Exception {
        Session busy = connectStrictly().createSession(Session.SESSION_TRANSACTED);
        send(busy, queue(busy), "makes time pass");
        MessageConsumer consumer = plain.createConsumer(queue(plain));
        assertNull(consumer.receive(4300));
        assertThrows(TransactionRolledBackException.class, busy::commit);
        send(within, queue(within), "in time");
        within.commit();
        assertEquals("in time", next(consumer).getText());
    }
}
