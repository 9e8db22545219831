package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Topics with binding keys and wildcards")
class TopicAddressTest extends BrokerTest {
    /** A topic below this test's name. */
    private Topic below(Session session, String rest) throws JMSException {
        return session.createTopic(name() + rest);
    }

    @Test
    @DisplayName("a consumer of a.* has one word's topics, also those that come later")
    @Tag("DST-06")
    void oneWord() throws Exception {
        Session session = session();
        send(session, below(session, ".early"), "too early");
        // --8<-- [start:one_word]
        MessageConsumer consumer = session.createConsumer(below(session, ".*"));
        send(session, below(session, ".early"), "1");
        send(session, below(session, ".late"), "2");
        send(session, below(session, ".two.words"), "not this");
        send(session, topic(session), "nor this");
        assertEquals("1", next(consumer).getText());
        assertEquals("2", next(consumer).getText());
        assertNull(consumer.receiveNoWait());
        // --8<-- [end:one_word]
    }

    @Test
    @DisplayName("a consumer of a.# has the whole tree, and the destination of each message")
    @Tag("DST-06")
    void wholeTree() throws Exception {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(below(session, ".#"));
        for (String rest : new String[] {"", ".eu", ".eu.fr"}) {
            send(session, below(session, rest), "hello");
            Message message = next(consumer);
            assertEquals(below(session, rest), message.getJMSDestination());
        }
    }

    @Test
    @DisplayName("JMSType is the binding key where the destination has none")
    @Tag("DST-05")
    void typeAsKey() throws Exception {
        Session session = session();
        // --8<-- [start:type_as_key]
        MessageConsumer sport = session.createConsumer(below(session, "/sport.*"));
        MessageConsumer all = session.createConsumer(topic(session));
        MessageProducer producer = session.createProducer(topic(session));
        for (String type : new String[] {"sport.ball", "weather", null}) {
            Message message = session.createTextMessage(String.valueOf(type));
            message.setJMSType(type);
            producer.send(message);
        }
        // --8<-- [end:type_as_key]
        assertEquals("sport.ball", next(sport).getText());
        assertNull(sport.receiveNoWait());
        assertEquals("sport.ball", next(all).getText());
        assertEquals("weather", next(all).getText());
        assertEquals("null", next(all).getText());
    }

    @Test
    @DisplayName("a destination with a key publishes with that key, through the relay as well")
    @Tag("DST-05")
    void keyInTheDestination() throws Exception {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(below(session, "/a"));
        send(session, below(session, "/a"), "1");
        send(session, below(session, "/b"), "not this");
        MessageProducer anonymous = session.createProducer(null);
        anonymous.send(below(session, "/a"), session.createTextMessage("2"));
        anonymous.send(below(session, "/b"), session.createTextMessage("nor this"));
        assertEquals("1", next(consumer).getText());
        assertEquals("2", next(consumer).getText());
        assertNull(consumer.receiveNoWait());
    }

    @Test
    @DisplayName("nobody publishes to a pattern")
    @Tag("DST-06")
    void noPublishing() throws Exception {
        Session session = session();
        assertThrows(JMSException.class, () -> session.createProducer(below(session, ".*")));
        MessageProducer anonymous = session.createProducer(null);
        assertThrows(JMSException.class, () -> anonymous.send(below(session, ".#"), session.createMessage()));
        send(session, queue(session), "the session goes on");
    }

    @Test
    @DisplayName("a queue may be called as it likes")
    @Tag("DST-05")
    @Tag("DST-06")
    void namesOfQueues() throws Exception {
        Session session = session();
        for (String rest : new String[] {".*", ".#", "/a"}) {
            MessageConsumer consumer = session.createConsumer(session.createQueue(name() + rest));
            send(session, session.createQueue(name() + rest), rest);
            assertEquals(rest, next(consumer).getText());
        }
    }
}
