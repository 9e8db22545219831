package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Message groups (JMSXGroupID, JMSXGroupSeq)")
class MessageGroupTest extends BrokerTest {
    private Session sending;
    private MessageProducer producer;

    @BeforeEach
    void open() throws Exception {
        sending = session();
        producer = sending.createProducer(queue(sending));
    }

    private void send(String group, String text, int sequence) throws JMSException {
        // --8<-- [start:group]
        TextMessage message = sending.createTextMessage(text);
        if (!group.isEmpty()) {
            message.setStringProperty("JMSXGroupID", group);
            message.setIntProperty("JMSXGroupSeq", sequence);
        }
        producer.send(message);
        // --8<-- [end:group]
    }

    /** Messages such as "red 1", whose first word is their group. */
    private void sendAll(String... texts) throws JMSException {
        for (String text : texts) {
            send(text.split(" ")[0], text, 1);
        }
    }

    private MessageConsumer consumer(int mode, int prefetch) throws JMSException {
        Session session = session(mode, "jms.prefetchPolicy.all=" + prefetch);
        MessageConsumer consumer = session.createConsumer(queue(session));
        awaitCredit(session);
        return consumer;
    }

    /** Waits until the broker has the credit of the session's consumers: Qpid JMS may write it after it returned. */
    private static void awaitCredit(Session session) throws JMSException {
        session.createTemporaryQueue().delete();
    }

    private MessageConsumer consumer(int prefetch) throws JMSException {
        return consumer(Session.AUTO_ACKNOWLEDGE, prefetch);
    }

    @Test
    @DisplayName("a group goes to one consumer, in order, while another has messages of other groups")
    @Tag("RCV-07")
    void oneConsumer() throws Exception {
        MessageConsumer one = consumer(1);
        MessageConsumer other = consumer(1);
        sendAll("red 1", "blue 1", "red 2", "blue 2", "red 3", "blue 3");
        TextMessage first = next(one);
        String group = first.getText().split(" ")[0];
        String rest = group.equals("red") ? "blue" : "red";
        assertEquals(group + " 1", first.getText());
        assertEquals(group, first.getStringProperty("JMSXGroupID"));
        assertEquals(List.of(rest + " 1", rest + " 2", rest + " 3"), texts(other, 3));
        assertEquals(List.of(group + " 2", group + " 3"), texts(one, 2));
        assertNull(one.receiveNoWait());
        assertNull(other.receiveNoWait());
    }

    @Test
    @DisplayName("an idle consumer gets nothing of another's group, and at once what has no group")
    @Tag("RCV-07")
    void idleConsumer() throws Exception {
        MessageConsumer owner = consumer(0);
        sendAll("red 1", "red 2");
        assertEquals("red 1", next(owner).getText());
        MessageConsumer idle = consumer(0);
        assertNull(idle.receiveNoWait());
        send("", "no group", 0);
        assertEquals("no group", next(idle).getText());
        assertEquals("red 2", next(owner).getText());
    }

    @Test
    @DisplayName("when its consumer is closed a group moves to another, in order")
    @Tag("RCV-07")
    void consumerCloses() throws Exception {
        MessageConsumer owner = consumer(100);
        sendAll("red 1", "red 2", "red 3");
        assertEquals("red 1", next(owner).getText());
        MessageConsumer successor = consumer(100);
        assertNull(successor.receiveNoWait());
        owner.close();
        assertEquals(List.of("red 2", "red 3"), texts(successor, 2));
        sendAll("red 4");
        assertEquals("red 4", next(successor).getText());
    }

    @Test
    @DisplayName("what a consumer left unacknowledged of a group is first for the one that has it then")
    @Tag("RCV-07")
    @Tag("RCV-02")
    void unacknowledged() throws Exception {
        Session leaving = session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer owner = leaving.createConsumer(queue(leaving));
        sendAll("red 1", "red 2", "red 3");
        assertEquals(List.of("red 1", "red 2"), texts(owner, 2));
        MessageConsumer successor = consumer(100);
        assertNull(successor.receiveNoWait());
        leaving.close();
        comesAgain(successor, "red 1");
        comesAgain(successor, "red 2");
        assertEquals("red 3", next(successor).getText());
    }

    @Test
    @DisplayName("a rollback keeps the order of a group, and its consumer")
    @Tag("RCV-07")
    @Tag("RCV-06")
    void rollback() throws Exception {
        Session within = session(Session.SESSION_TRANSACTED);
        MessageConsumer owner = within.createConsumer(queue(within));
        sendAll("red 1", "red 2", "red 3");
        assertEquals(List.of("red 1", "red 2"), texts(owner, 2));
        MessageConsumer other = consumer(100);
        within.rollback();
        comesAgain(owner, "red 1", 2);
        comesAgain(owner, "red 2", 2);
        assertEquals("red 3", next(owner).getText());
        within.commit();
        assertNull(other.receiveNoWait());
    }

    @Test
    @DisplayName("JMSXGroupSeq -1 closes a group: the next message of that name may go to anybody")
    @Tag("RCV-07")
    void closed() throws Exception {
        MessageConsumer owner = consumer(0);
        send("red", "red 1", 1);
        assertEquals("red 1", next(owner).getText());
        MessageConsumer other = consumer(0);
        send("red", "red 2", 2);
        assertNull(other.receiveNoWait());
        send("red", "last", -1);
        assertEquals("red 2", next(owner).getText());
        TextMessage last = next(owner);
        assertEquals("last", last.getText());
        assertEquals(-1, last.getIntProperty("JMSXGroupSeq"));
        assertNull(owner.receiveNoWait());
        send("red", "anew", 1);
        assertEquals("anew", next(other).getText());
        assertNull(owner.receiveNoWait());
    }

    @Test
    @DisplayName("twenty groups and three consumers: each group in order, each with one of them")
    @Tag("RCV-07")
    void many() throws Exception {
        List<MessageConsumer> consumers = List.of(consumer(5), consumer(5), consumer(5));
        for (int i = 0; i < 10; i++) {
            for (int group = 0; group < 20; group++) {
                sendAll("g" + group + " " + i);
            }
        }
        List<List<String>> received = List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        for (int round = 0, total = 0; total < 200; round++) {
            assertTrue(round < 200, () -> "stuck with " + received);
            for (int i = 0; i < consumers.size(); i++) {
                List<String> texts = drain(consumers.get(i));
                received.get(i).addAll(texts);
                total += texts.size();
            }
        }
        for (int group = 0; group < 20; group++) {
            String prefix = "g" + group + " ";
            List<String> expected = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                expected.add(prefix + i);
            }
            List<List<String>> shares = received.stream()
                .map(texts -> texts.stream().filter(text -> text.startsWith(prefix)).toList())
                .filter(texts -> !texts.isEmpty()).toList();
            assertEquals(List.of(expected), shares);
        }
    }

    @Test
    @DisplayName("consumers of a shared subscription have groups as those of a queue do")
    @Tag("RCV-07")
    @Tag("SUB-07")
    void sharedSubscription() throws Exception {
        Session first = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=1");
        Session second = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=1");
        MessageConsumer one = first.createSharedConsumer(topic(first), name());
        MessageConsumer other = second.createSharedConsumer(topic(second), name());
        awaitCredit(first);
        awaitCredit(second);
        producer = sending.createProducer(topic(sending));
        sendAll("red 1", "blue 1", "red 2", "blue 2");
        List<String> ones = texts(one, 2);
        List<String> others = texts(other, 2);
        String group = ones.get(0).split(" ")[0];
        String rest = group.equals("red") ? "blue" : "red";
        assertEquals(List.of(group + " 1", group + " 2"), ones);
        assertEquals(List.of(rest + " 1", rest + " 2"), others);
    }
}
