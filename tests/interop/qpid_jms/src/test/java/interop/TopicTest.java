package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Topics with non-durable subscribers")
class TopicTest extends BrokerTest {
    @Test
    @DisplayName("every subscriber gets every message, in order")
    @Tag("SUB-01")
    void fanOut() throws Exception {
        List<MessageConsumer> subscribers = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            Session session = session();
            subscribers.add(session.createConsumer(topic(session)));
        }
        Session publishing = session();
        List<String> sent = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            sent.add("message " + i);
        }
        send(publishing, topic(publishing), sent.toArray(String[]::new));
        for (MessageConsumer subscriber : subscribers) {
            assertEquals(sent, texts(subscriber, sent.size()));
            assertNull(subscriber.receiveNoWait());
        }
    }

    @Test
    @DisplayName("two subscribers of one session each get their own copy")
    @Tag("SUB-01")
    void sameSession() throws Exception {
        Session session = session();
        MessageConsumer one = session.createConsumer(topic(session));
        MessageConsumer other = session.createConsumer(topic(session));
        send(session, topic(session), "hello");
        assertEquals("hello", next(one).getText());
        assertEquals("hello", next(other).getText());
    }

    @Test
    @DisplayName("a subscriber gets nothing from before its time")
    @Tag("SUB-01")
    void lateSubscriber() throws Exception {
        Session session = session();
        send(session, topic(session), "too early");
        MessageConsumer subscriber = session.createConsumer(topic(session));
        send(session, topic(session), "in time");
        assertEquals("in time", next(subscriber).getText());
        assertNull(subscriber.receiveNoWait());
    }

    @Test
    @DisplayName("a subscriber that leaves takes its backlog with it")
    @Tag("SUB-01")
    @Tag("SUB-33")
    void leaving() throws Exception {
        Session session = session();
        MessageConsumer subscriber = session.createConsumer(topic(session));
        send(session, topic(session), "unread");
        subscriber.close();
        send(session, topic(session), "nobody is here");
        MessageConsumer again = session.createConsumer(topic(session));
        assertNull(again.receiveNoWait());
    }

    @Test
    @DisplayName("what a subscriber leaves behind goes to no other subscriber")
    @Tag("SUB-01")
    void notShared() throws Exception {
        Session one = session(Session.CLIENT_ACKNOWLEDGE);
        Session other = session();
        MessageConsumer first = one.createConsumer(topic(one));
        MessageConsumer second = other.createConsumer(topic(other));
        send(other, topic(other), "hello");
        assertEquals("hello", next(first).getText());
        assertEquals("hello", next(second).getText());
        one.close();
        assertNull(second.receiveNoWait());
    }

    @Test
    @DisplayName("a slow subscriber does not hold up the others")
    @Tag("SUB-01")
    void slowSubscriber() throws Exception {
        Session slow = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=1");
        MessageConsumer waiting = slow.createConsumer(topic(slow));
        Session quick = session();
        MessageConsumer reading = quick.createConsumer(topic(quick));
        Session publishing = session();
        for (int i = 0; i < 100; i++) {
            send(publishing, topic(publishing), "message " + i);
            assertEquals("message " + i, next(reading).getText());
        }
        for (int i = 0; i < 100; i++) {
            assertEquals("message " + i, next(waiting).getText());
        }
    }

    @Test
    @DisplayName("a queue and a topic of one name are two nodes")
    @Tag("DST-01")
    void queueOfTheSameName() throws Exception {
        Session session = session();
        MessageConsumer onQueue = session.createConsumer(queue(session));
        MessageConsumer onTopic = session.createConsumer(topic(session));
        send(session, queue(session), "queue");
        send(session, topic(session), "topic");
        assertEquals("queue", next(onQueue).getText());
        assertEquals("topic", next(onTopic).getText());
        assertNull(onQueue.receiveNoWait());
        assertNull(onTopic.receiveNoWait());
    }
}
