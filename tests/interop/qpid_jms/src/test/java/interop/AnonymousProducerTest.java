package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.InvalidDestinationRuntimeException;
import jakarta.jms.JMSContext;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** At the strict broker nobody may create an address that begins with "closed.". */
@DisplayName("Producers without a destination of their own")
class AnonymousProducerTest extends BrokerTest {
    private Queue missing(Session session) throws Exception {
        return session.createQueue("closed." + name());
    }

    @Test
    @DisplayName("each message goes to the destination that it names")
    @Tag("PRD-01")
    void routes() throws Exception {
        Session session = session();
        // --8<-- [start:anonymous]
        MessageProducer anonymous = session.createProducer(null);
        Queue one = session.createQueue(name() + "-1");
        Queue other = session.createQueue(name() + "-2");
        for (int i = 0; i < 10; i++) {
            anonymous.send(one, session.createTextMessage("one " + i));
            anonymous.send(other, session.createTextMessage("other " + i));
        }
        // --8<-- [end:anonymous]
        MessageConsumer ones = session.createConsumer(one);
        MessageConsumer others = session.createConsumer(other);
        for (int i = 0; i < 10; i++) {
            assertEquals("one " + i, next(ones).getText());
            assertEquals("other " + i, next(others).getText());
        }
    }

    @Test
    @DisplayName("a queue and a topic of one name get what is meant for each")
    @Tag("PRD-01")
    @Tag("DST-01")
    @Tag("DST-03")
    void queueOrTopic() throws Exception {
        Session session = session();
        MessageConsumer onQueue = session.createConsumer(queue(session));
        MessageConsumer onTopic = session.createConsumer(topic(session));
        MessageProducer anonymous = session.createProducer(null);
        anonymous.send(queue(session), session.createTextMessage("queue"));
        anonymous.send(topic(session), session.createTextMessage("topic"));
        assertEquals("queue", next(onQueue).getText());
        assertEquals("topic", next(onTopic).getText());
        assertNull(onQueue.receiveNoWait());
        assertNull(onTopic.receiveNoWait());
    }

    @Test
    @DisplayName("an unroutable message is an InvalidDestinationException, and the producer goes on")
    @Tag("PRD-02")
    void unroutable() throws Exception {
        Session session = connectStrictly().createSession();
        MessageProducer anonymous = session.createProducer(null);
        for (int i = 0; i < 3; i++) {
            assertThrows(InvalidDestinationException.class,
                () -> anonymous.send(missing(session), session.createTextMessage("nowhere")));
        }
        anonymous.send(queue(session), session.createTextMessage("somewhere"));
        assertEquals("somewhere", next(session.createConsumer(queue(session))).getText());
    }

    @Test
    @DisplayName("an unroutable topic is an InvalidDestinationException")
    @Tag("PRD-02")
    void unroutableTopic() throws Exception {
        Session session = connectStrictly().createSession();
        MessageProducer anonymous = session.createProducer(null);
        assertThrows(InvalidDestinationException.class,
            () -> anonymous.send(session.createTopic("closed." + name()), session.createTextMessage("nowhere")));
    }

    @Test
    @DisplayName("the exception listener hears of an unroutable message that nobody waits for")
    @Tag("PRD-02")
    void unroutableAsynchronous() throws Exception {
        Connection connection = connectStrictly();
        BlockingQueue<Exception> failures = new LinkedBlockingQueue<>();
        connection.setExceptionListener(failures::add);
        Session session = connection.createSession();
        MessageProducer anonymous = session.createProducer(null);
        anonymous.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        anonymous.send(missing(session), session.createTextMessage("nowhere"));
        assertInstanceOf(InvalidDestinationException.class, failures.poll(SOON, TimeUnit.MILLISECONDS));
        anonymous.send(queue(session), session.createTextMessage("somewhere"));
        assertEquals("somewhere", next(session.createConsumer(queue(session))).getText());
    }

    @Test
    @DisplayName("a completion listener hears of an unroutable message")
    @Tag("PRD-02")
    void unroutableCompletion() throws Exception {
        Session session = connectStrictly().createSession();
        BlockingQueue<Object> outcomes = new LinkedBlockingQueue<>();
        CompletionListener listener = new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                outcomes.add(message);
            }

            @Override
            public void onException(Message message, Exception failure) {
                outcomes.add(failure);
            }
        };
        session.createProducer(null).send(missing(session), session.createTextMessage("nowhere"), listener);
        assertInstanceOf(InvalidDestinationException.class, outcomes.poll(SOON, TimeUnit.MILLISECONDS));
    }

    @Test
    @DisplayName("the simplified interface throws an InvalidDestinationRuntimeException")
    @Tag("PRD-02")
    void unroutableSimplified() throws Exception {
        try (JMSContext context = strictly().createContext(USER, PASSWORD)) {
            Queue missing = context.createQueue("closed." + name());
            assertThrows(InvalidDestinationRuntimeException.class, () -> context.createProducer().send(missing, "nowhere"));
        }
    }
}
