package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Selectors (JMS 2.0, 3.8) and no-local")
class SelectorTest extends BrokerTest {
    private Connection connection;
    private Session session;

    @BeforeEach
    void open() throws Exception {
        connection = connect();
        session = connection.createSession();
    }

    /** One step of writing a message. */
    interface Setting {
        void on(Message message) throws JMSException;
    }

    /** Send a message to this test's queue. */
    private Message send(String text, Setting setting) throws JMSException {
        TextMessage message = session.createTextMessage(text);
        setting.on(message);
        MessageProducer producer = session.createProducer(queue(session));
        producer.send(message);
        producer.close();
        return message;
    }

    private void sendColours() throws JMSException {
        send("red 1", message -> message.setStringProperty("colour", "red"));
        send("blue", message -> message.setStringProperty("colour", "blue"));
        send("none", message -> { });
        send("red 2", message -> message.setStringProperty("colour", "red"));
    }

    /** What `selector` takes of this test's queue, which has everything else afterwards. */
    private List<String> taken(String selector) throws JMSException {
        MessageConsumer consumer = session.createConsumer(queue(session), selector);
        List<String> texts = drain(consumer);
        consumer.close();
        return texts;
    }

    /** `selector` takes a message that `setting` was made on, and its contrary does not. */
    private void takes(String selector, Setting setting) throws JMSException {
        send("it", setting);
        assertEquals(List.of(), taken("NOT (" + selector + ")"), selector);
        assertEquals(List.of("it"), taken(selector), selector);
    }

    @Test
    @DisplayName("a consumer gets what matches, in order, and leaves the rest in its place")
    @Tag("RCV-05")
    void queue() throws Exception {
        sendColours();
        // --8<-- [start:selector]
        assertEquals(List.of("red 1", "red 2"), taken("colour = 'red'"));
        assertEquals(List.of("blue", "none"), left());
        // --8<-- [end:selector]
    }

    @Test
    @DisplayName("what is not there is neither equal nor unequal")
    @Tag("RCV-05")
    void unknown() throws Exception {
        sendColours();
        assertEquals(List.of("blue"), taken("NOT (colour = 'red')"));
        assertEquals(List.of("none"), taken("colour IS NULL"));
    }

    @Test
    @DisplayName("a message that comes later is delivered at once to who wants it")
    @Tag("RCV-05")
    void later() throws Exception {
        MessageConsumer blue = session.createConsumer(queue(session), "colour = 'blue'");
        MessageConsumer red = session.createConsumer(queue(session), "colour = 'red'");
        sendColours();
        assertEquals(List.of("red 1", "red 2"), texts(red, 2));
        assertEquals(List.of("blue"), texts(blue, 1));
        assertNull(blue.receiveNoWait());
    }

    @Test
    @DisplayName("receiveNoWait ends where nothing matches among many")
    @Tag("RCV-05")
    void nothingMatches() throws Exception {
        for (int i = 0; i < 5000; i++) {
            fillOne(i);
        }
        assertEquals(List.of(), taken("number < 0"));
        assertEquals(List.of("4999"), taken("number = 4999"));
    }

    private MessageProducer filler;

    private void fillOne(int number) throws JMSException {
        if (filler == null) {
            filler = session.createProducer(queue(session));
            filler.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        }
        TextMessage message = session.createTextMessage(Integer.toString(number));
        message.setIntProperty("number", number);
        filler.send(message);
    }

    @Test
    @DisplayName("a browser sees what matches")
    @Tag("RCV-05")
    @Tag("RCV-04")
    void browser() throws Exception {
        sendColours();
        QueueBrowser browser = session.createBrowser(queue(session), "colour LIKE 'r%'");
        assertEquals(2, Collections.list(browser.getEnumeration()).size());
        assertEquals(4, left().size());
    }

    @Test
    @DisplayName("a subscriber gets what matches")
    @Tag("RCV-05")
    void topic() throws Exception {
        MessageConsumer big = session.createConsumer(topic(session), "size > 10");
        MessageConsumer all = session.createConsumer(topic(session));
        MessageProducer producer = session.createProducer(topic(session));
        for (int size : new int[] {5, 50, 10, 11}) {
            TextMessage message = session.createTextMessage(Integer.toString(size));
            message.setIntProperty("size", size);
            producer.send(message);
        }
        assertEquals(List.of("5", "50", "10", "11"), texts(all, 4));
        assertEquals(List.of("50", "11"), texts(big, 2));
        assertNull(big.receiveNoWait());
    }

    @Test
    @DisplayName("a subscriber that does not want its own messages gets those of others")
    @Tag("RCV-05")
    void noLocal() throws Exception {
        MessageConsumer others = session.createConsumer(topic(session), null, true);
        send(session, topic(session), "own");
        Session other = session();
        send(other, other.createTopic(name()), "another's");
        assertEquals(List.of("another's"), texts(others, 1));
        assertNull(others.receiveNoWait());
    }

    @Test
    @DisplayName("no-local and a selector are both in force")
    @Tag("RCV-05")
    void noLocalAndSelector() throws Exception {
        MessageConsumer others = session.createConsumer(topic(session), "JMSType = 'wanted'", true);
        Session other = session();
        for (Session each : new Session[] {session, other}) {
            MessageProducer producer = each.createProducer(each.createTopic(name()));
            for (String type : new String[] {"unwanted", "wanted"}) {
                TextMessage message = each.createTextMessage(each == other ? type : "own");
                message.setJMSType(type);
                producer.send(message);
            }
        }
        assertEquals(List.of("wanted"), texts(others, 1));
        assertNull(others.receiveNoWait());
    }

    @Test
    @DisplayName("properties of every type are seen as what they are")
    @Tag("RCV-05")
    void types() throws Exception {
        takes("p = TRUE", message -> message.setBooleanProperty("p", true));
        takes("p = -128", message -> message.setByteProperty("p", Byte.MIN_VALUE));
        takes("p = 32767", message -> message.setShortProperty("p", Short.MAX_VALUE));
        takes("p = -2147483648", message -> message.setIntProperty("p", Integer.MIN_VALUE));
        takes("p = 9223372036854775807", message -> message.setLongProperty("p", Long.MAX_VALUE));
        takes("p BETWEEN 0.24 AND 0.26", message -> message.setFloatProperty("p", 0.25f));
        takes("p = 1E-3", message -> message.setDoubleProperty("p", 0.001));
        takes("p IN ('é', 'x')", message -> message.setStringProperty("p", "é"));
        takes("p + 2 * 3 = 10 AND p / 3 = 1", message -> message.setIntProperty("p", 4));
        takes("p LIKE '!_%' ESCAPE '!'", message -> message.setStringProperty("p", "_x"));
    }

    @Test
    @DisplayName("header fields are seen as the client sees them")
    @Tag("RCV-05")
    void headers() throws Exception {
        takes("JMSType = 't'", message -> message.setJMSType("t"));
        takes("JMSCorrelationID = 'c'", message -> message.setJMSCorrelationID("c"));
        String uuid = "ID:AMQP_UUID:" + UUID.randomUUID();
        takes("JMSCorrelationID = '" + uuid + "'", message -> message.setJMSCorrelationID(uuid));
        takes("JMSXGroupID = 'g' AND JMSXGroupSeq = 3", message -> {
            message.setStringProperty("JMSXGroupID", "g");
            message.setIntProperty("JMSXGroupSeq", 3);
        });
        takes("JMSPriority = 4 AND JMSDeliveryMode = 'PERSISTENT' AND JMSXDeliveryCount = 1", message -> { });
        takes("JMSTimestamp >= " + (System.currentTimeMillis() - 1000), message -> { });
    }

    @Test
    @DisplayName("a message is found by its JMSMessageID")
    @Tag("RCV-05")
    void messageId() throws Exception {
        send("first", message -> { });
        Message second = send("second", message -> { });
        send("third", message -> { });
        assertEquals(List.of("second"), taken("JMSMessageID = '" + second.getJMSMessageID() + "'"));
    }

    @Test
    @DisplayName("a message that is not durable, of another priority, is seen so")
    @Tag("RCV-05")
    void deliveryMode() throws Exception {
        MessageProducer producer = session.createProducer(queue(session));
        producer.send(session.createTextMessage("it"), DeliveryMode.NON_PERSISTENT, 7, 0);
        producer.send(session.createTextMessage("other"));
        assertEquals(List.of("it"), taken("JMSDeliveryMode = 'NON_PERSISTENT' AND JMSPriority > 4"));
    }

    @Test
    @DisplayName("an empty selector is none")
    @Tag("RCV-05")
    void empty() throws Exception {
        sendColours();
        assertEquals(4, taken("").size());
    }

    @Test
    @DisplayName("a bad selector is refused by the client, or else by the broker, and the session goes on")
    @Tag("RCV-05")
    void invalid() throws Exception {
        String bad = "colour = = 'red'";
        assertThrows(InvalidSelectorException.class, () -> session.createConsumer(queue(session), bad));
        Session unchecked = session(Session.AUTO_ACKNOWLEDGE, "jms.validateSelector=false");
        JMSException refusal =
                assertThrows(JMSException.class, () -> unchecked.createConsumer(queue(unchecked), bad));
        assertTrue(refusal.getMessage().contains("amqp:invalid-field"), refusal.toString());
        assertTrue(refusal.getMessage().contains("character 10"), refusal.toString());
        send(unchecked, queue(unchecked), "goes on");
        assertEquals("goes on", next(unchecked.createConsumer(queue(unchecked))).getText());
    }

    @Test
    @DisplayName("a message that was rolled back by a recover comes again to who wants it, in order")
    @Tag("RCV-05")
    @Tag("RCV-01")
    void recovered() throws Exception {
        sendColours();
        Session acknowledging = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer red = acknowledging.createConsumer(queue(acknowledging), "colour = 'red'");
        assertEquals(List.of("red 1", "red 2"), texts(red, 2));
        acknowledging.recover();
        TextMessage again = next(red);
        assertEquals("red 1", again.getText());
        assertTrue(again.getJMSRedelivered());
        assertEquals("red 2", next(red).getText());
    }
}
