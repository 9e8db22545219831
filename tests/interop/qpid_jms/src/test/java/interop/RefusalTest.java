package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.ResourceAllocationException;
import jakarta.jms.Session;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Names and client ids that are refused are told of in SecuredConnectionTest and ClientIdTest. */
@DisplayName("What the strict broker refuses: by the right exception, and the session goes on")
class RefusalTest extends BrokerTest {
    private Session session;

    @BeforeEach
    void open() throws Exception {
        session = connectStrictly().createSession();
    }

    private void goesOn() throws Exception {
        send(session, session.createQueue("after-" + name()), "goes on");
        assertEquals("goes on", next(session.createConsumer(session.createQueue("after-" + name()))).getText());
    }

    @Test
    @DisplayName("a producer, a consumer and a browser of a node that may not be created: InvalidDestinationException")
    @Tag("DST-01")
    @Tag("DST-02")
    void missingNode() throws Exception {
        String missing = "closed." + name();
        assertThrows(InvalidDestinationException.class, () -> session.createProducer(session.createQueue(missing)));
        assertThrows(InvalidDestinationException.class, () -> session.createProducer(session.createTopic(missing)));
        assertThrows(InvalidDestinationException.class, () -> session.createConsumer(session.createQueue(missing)));
        assertThrows(InvalidDestinationException.class, () -> session.createConsumer(session.createTopic(missing)));
        assertThrows(InvalidDestinationException.class,
            () -> session.createBrowser(session.createQueue(missing)).getEnumeration());
        goesOn();
    }

    @Test
    @DisplayName("a message for a queue that is full: ResourceAllocationException")
    void full() throws Exception {
        Queue small = session.createQueue("small." + name());
        MessageProducer anonymous = session.createProducer(null);
        for (int i = 0; i < 3; i++) {
            anonymous.send(small, session.createTextMessage("" + i));
        }
        assertThrows(ResourceAllocationException.class, () -> anonymous.send(small, session.createTextMessage("no")));
        MessageConsumer consumer = session.createConsumer(small);
        assertEquals(List.of("0", "1", "2"), texts(consumer, 3));
        anonymous.send(small, session.createTextMessage("3"));
        assertEquals("3", next(consumer).getText());
        goesOn();
    }

    @Test
    @DisplayName("a message beyond the largest size: JMSException, and its producer is closed")
    void tooLarge() throws Exception {
        MessageProducer producer = session.createProducer(queue(session));
        BytesMessage large = session.createBytesMessage();
        large.writeBytes(new byte[1_000_000]);
        JMSException refused = assertThrows(JMSException.class, () -> producer.send(large));
        assertTrue(refused.getMessage().contains("amqp:link:message-size-exceeded"), refused.getMessage());
        assertThrows(jakarta.jms.IllegalStateException.class, () -> producer.send(session.createMessage()));
        goesOn();
    }
}
