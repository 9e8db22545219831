package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionConsumer;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.ServerSession;
import jakarta.jms.ServerSessionPool;
import jakarta.jms.Session;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Connection consumers: what application servers receive with")
class ConnectionConsumerTest extends BrokerTest {
    private final BlockingQueue<String> heard = new LinkedBlockingQueue<>();
    private Connection connection;
    private ServerSessionPool pool;

    @BeforeEach
    void open() throws Exception {
        connection = connectAs(name());
        // --8<-- [start:pool]
        Session session = connection.createSession();
        session.setMessageListener(message -> {
            try {
                heard.add(message.getBody(String.class));
            } catch (JMSException broken) {
                heard.add(broken.toString());
            }
        });
        pool = () -> new OwnThread(session);
        // --8<-- [end:pool]
    }

    // --8<-- [start:server_session]
    /** The one session, which works in the thread that has a message for it. */
    private record OwnThread(Session session) implements ServerSession {
        @Override
        public Session getSession() {
            return session;
        }

        @Override
        public void start() {
            session.run();
        }
    }
    // --8<-- [end:server_session]

    private void hears(List<String> texts) throws Exception {
        for (String text : texts) {
            assertEquals(text, heard.poll(SOON, TimeUnit.MILLISECONDS));
        }
    }

    @Test
    @DisplayName("of a queue: everything in order, and what follows its end is for others")
    @Tag("RCV-02")
    void ofQueue() throws Exception {
        List<String> texts = IntStream.range(0, 50).mapToObj(Integer::toString).toList();
        // --8<-- [start:connection_consumer]
        ConnectionConsumer consumer = connection.createConnectionConsumer(connection.createSession().createQueue(name()), null, pool, 10);
        fill(texts.toArray(String[]::new));
        hears(texts);
        consumer.close();
        // --8<-- [end:connection_consumer]
        fill("after");
        assertEquals(List.of("after"), left());
    }

    @Test
    @DisplayName("of a queue with a selector")
    @Tag("RCV-05")
    void selector() throws Exception {
        connection.createConnectionConsumer(connection.createSession().createQueue(name()), "JMSType = 'it'", pool, 1);
        Session session = session();
        for (String type : new String[] {"other", "it"}) {
            var message = session.createTextMessage(type);
            message.setJMSType(type);
            session.createProducer(queue(session)).send(message);
        }
        hears(List.of("it"));
        assertEquals(List.of("other"), left());
    }

    @Test
    @DisplayName("of a durable subscription, which goes on without it until it is ended")
    @Tag("SUB-02")
    @Tag("SUB-30")
    @Tag("SUB-34")
    void durable() throws Exception {
        Session session = session();
        Session own = connection.createSession();
        // --8<-- [start:durable_connection_consumer]
        ConnectionConsumer consumer = connection.createDurableConnectionConsumer(topic(own), "subscription", null, pool, 1);
        send(session, topic(session), "a");
        hears(List.of("a"));
        consumer.close();
        // --8<-- [end:durable_connection_consumer]
        send(session, topic(session), "b");
        MessageConsumer subscriber = own.createDurableConsumer(topic(own), "subscription");
        assertEquals("b", next(subscriber).getText());
        subscriber.close();
        own.unsubscribe("subscription");
        assertThrows(InvalidDestinationException.class, () -> own.unsubscribe("subscription"));
    }

    @Test
    @DisplayName("of shared subscriptions, durable and not")
    @Tag("SUB-05")
    @Tag("SUB-06")
    @Tag("SUB-24")
    void shared() throws Exception {
        Session own = connection.createSession();
        Session session = session();
        ConnectionConsumer one = connection.createSharedConnectionConsumer(topic(own), "shared", null, pool, 1);
        ConnectionConsumer other = connection.createSharedDurableConnectionConsumer(topic(own), "shared", null, pool, 1);
        send(session, topic(session), "a");
        hears(List.of("a", "a"));
        one.close();
        other.close();
        send(session, topic(session), "b");
        assertNull(own.createSharedConsumer(topic(own), "shared").receiveNoWait());
        assertEquals("b", next(own.createSharedDurableConsumer(topic(own), "shared")).getText());
    }
}
