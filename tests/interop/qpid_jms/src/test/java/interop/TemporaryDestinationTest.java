package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueConnection;
import jakarta.jms.QueueRequestor;
import jakarta.jms.QueueSession;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import jakarta.jms.TopicConnection;
import jakarta.jms.TopicRequestor;
import jakarta.jms.TopicSession;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Temporary queues and topics")
class TemporaryDestinationTest extends BrokerTest {
    /** Answer one request on this test's queue, from another connection. */
    private void answerOne() throws JMSException {
        Session session = session();
        // --8<-- [start:answer]
        session.createConsumer(queue(session)).setMessageListener(request -> {
            try {
                TextMessage reply = session.createTextMessage("re: " + request.getBody(String.class));
                reply.setJMSCorrelationID(request.getJMSMessageID());
                session.createProducer(request.getJMSReplyTo()).send(reply);
            } catch (JMSException broken) {
                throw new IllegalStateException(broken);
            }
        });
        // --8<-- [end:answer]
    }

    private void request(Session session, Destination replyTo) throws JMSException {
        // --8<-- [start:request]
        MessageConsumer replies = session.createConsumer(replyTo);
        TextMessage request = session.createTextMessage("question");
        request.setJMSReplyTo(replyTo);
        session.createProducer(queue(session)).send(request);
        TextMessage reply = next(replies);
        // --8<-- [end:request]
        assertEquals("re: question", reply.getText());
        assertEquals(request.getJMSMessageID(), reply.getJMSCorrelationID());
        assertEquals(replyTo, reply.getJMSDestination());
    }

    /** Wait until `destination` has gone for senders of other connections; each try is answered by the broker. */
    private void awaitGone(Session session, Destination destination) throws JMSException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(SOON);
        while (System.nanoTime() < deadline) {
            try {
                session.createProducer(destination).close();
            } catch (InvalidDestinationException gone) {
                return;
            }
        }
        throw new AssertionError(destination + " is still there");
    }

    @Test
    @DisplayName("a request is answered over a temporary queue")
    @Tag("TMP-01")
    void queueReply() throws Exception {
        answerOne();
        Session session = session();
        request(session, session.createTemporaryQueue());
    }

    @Test
    @DisplayName("a request is answered over a temporary topic")
    @Tag("TMP-01")
    void topicReply() throws Exception {
        answerOne();
        Session session = session();
        request(session, session.createTemporaryTopic());
    }

    @Test
    @DisplayName("the reply may also go through an anonymous producer")
    @Tag("TMP-01")
    @Tag("PRD-01")
    void anonymousReply() throws Exception {
        Session session = session();
        TemporaryQueue queue = session.createTemporaryQueue();
        TemporaryTopic topic = session.createTemporaryTopic();
        MessageConsumer onQueue = session.createConsumer(queue);
        MessageConsumer onTopic = session.createConsumer(topic);
        Session other = session();
        MessageProducer anonymous = other.createProducer(null);
        anonymous.send(queue, other.createTextMessage("to the queue"));
        anonymous.send(topic, other.createTextMessage("to the topic"));
        assertEquals("to the queue", next(onQueue).getText());
        assertEquals("to the topic", next(onTopic).getText());
    }

    @Test
    @DisplayName("every temporary destination has an address of its own")
    @Tag("TMP-01")
    void unique() throws Exception {
        Session session = session();
        Session other = session();
        String first = session.createTemporaryQueue().getQueueName();
        String second = session.createTemporaryQueue().getQueueName();
        String third = other.createTemporaryTopic().getTopicName();
        assertNotNull(first);
        assertNotEquals(first, second);
        assertNotEquals(first, third);
        assertNotEquals(second, third);
    }

    @Test
    @DisplayName("a temporary queue outlives the session that made it")
    @Tag("TMP-01")
    void outlivesSession() throws Exception {
        Connection connection = connect();
        Session maker = connection.createSession();
        TemporaryQueue queue = maker.createTemporaryQueue();
        maker.close();
        Session session = connection.createSession();
        send(session, queue, "still here");
        assertEquals("still here", next(session.createConsumer(queue)).getText());
    }

    @Test
    @DisplayName("delete() destroys it: others can send to it no more")
    @Tag("TMP-03")
    void deleted() throws Exception {
        Session owner = session();
        TemporaryQueue queue = owner.createTemporaryQueue();
        Session other = session();
        Destination seen = seenBy(other, owner, queue);
        // --8<-- [start:delete]
        MessageProducer attached = other.createProducer(seen);
        attached.send(other.createTextMessage("in time"));
        queue.delete();
        assertThrows(JMSException.class, () -> attached.send(other.createTextMessage("too late")));
        assertThrows(InvalidDestinationException.class, () -> other.createProducer(seen));
        MessageProducer anonymous = other.createProducer(null);
        assertThrows(InvalidDestinationException.class, () -> anonymous.send(seen, other.createTextMessage("too late")));
        // --8<-- [end:delete]
    }

    /** `destination` as another client knows it, from a message to reply to; what its owner knows is local to the owner. */
    private Destination seenBy(Session other, Session owner, Destination destination) throws JMSException {
        Message message = owner.createMessage();
        message.setJMSReplyTo(destination);
        owner.createProducer(queue(owner)).send(message);
        return other.createConsumer(queue(other)).receive(SOON).getJMSReplyTo();
    }

    @Test
    @DisplayName("a temporary topic deleted by its maker refuses publishers")
    @Tag("TMP-03")
    void deletedTopic() throws Exception {
        Session owner = session();
        TemporaryTopic topic = owner.createTemporaryTopic();
        Session other = session();
        Destination seen = seenBy(other, owner, topic);
        other.createProducer(seen).send(other.createTextMessage("nobody listens"));
        topic.delete();
        assertThrows(InvalidDestinationException.class, () -> other.createProducer(seen));
    }

    @Test
    @DisplayName("closing the connection destroys it")
    @Tag("TMP-03")
    void connectionClosed() throws Exception {
        Connection owner = connect();
        TemporaryQueue queue = owner.createSession().createTemporaryQueue();
        Session other = session();
        other.createProducer(queue).close();
        owner.close();
        awaitGone(other, queue);
    }

    @Test
    @DisplayName("losing the connection destroys it")
    @Tag("TMP-03")
    void connectionLost() throws Exception {
        try (CutProxy proxy = new CutProxy(URL)) {
            Connection owner = keep(factory(proxy.url()).createConnection());
            owner.start();
            CountDownLatch lost = new CountDownLatch(1);
            owner.setExceptionListener(failure -> lost.countDown());
            TemporaryQueue queue = owner.createSession().createTemporaryQueue();
            Session other = session();
            other.createProducer(queue).close();
            proxy.cut();
            lost.await();
            awaitGone(other, queue);
        }
    }

    @Test
    @DisplayName("the client does not let another connection consume from it")
    @Tag("TMP-01")
    void foreignConsumer() throws Exception {
        TemporaryQueue queue = session().createTemporaryQueue();
        Session other = session();
        assertThrows(InvalidDestinationException.class, () -> other.createConsumer(queue));
    }

    @Test
    @DisplayName("the broker does not let another connection consume or browse it by its plain name")
    @Tag("TMP-04")
    void foreignConsumerByName() throws Exception {
        Session owner = session();
        TemporaryQueue queue = owner.createTemporaryQueue();
        send(owner, queue, "private");
        Session other = session();
        // --8<-- [start:foreign]
        assertThrows(JMSException.class, () -> other.createConsumer(other.createQueue(queue.getQueueName())));
        assertThrows(JMSException.class, () -> other.createBrowser(other.createQueue(queue.getQueueName())).getEnumeration());
        assertEquals("private", next(owner.createConsumer(queue)).getText());
        // --8<-- [end:foreign]
    }

    @Test
    @DisplayName("messages of a temporary queue go with it, and its name is not left behind")
    @Tag("TMP-03")
    void nothingLeftBehind() throws Exception {
        Connection owner = connect();
        Session session = owner.createSession();
        TemporaryQueue queue = session.createTemporaryQueue();
        send(session, queue, "lost with it");
        queue.delete();
        TemporaryQueue another = session.createTemporaryQueue();
        assertNotEquals(queue.getQueueName(), another.getQueueName());
        assertEquals(java.util.List.of(), drain(session.createConsumer(another)));
    }

    @Test
    @DisplayName("the broker does not let another connection subscribe to a temporary topic by its plain name")
    @Tag("TMP-04")
    void foreignSubscriberByName() throws Exception {
        Session owner = session();
        TemporaryTopic topic = owner.createTemporaryTopic();
        MessageConsumer subscriber = owner.createConsumer(topic);
        Session other = session();
        Topic plain = other.createTopic(topic.getTopicName());
        assertThrows(JMSException.class, () -> other.createConsumer(plain));
        assertThrows(JMSException.class, () -> other.createSharedConsumer(plain, name()));
        assertThrows(JMSException.class, () -> other.createSharedDurableConsumer(plain, name()));
        assertThrows(InvalidDestinationException.class, () -> other.unsubscribe(name()));
        send(other, plain, "for its owner");
        assertEquals("for its owner", next(subscriber).getText());
    }

    @Test
    @DisplayName("a transacted session of another connection does not get at it either")
    @Tag("TMP-04")
    @Tag("RCV-06")
    void foreignTransaction() throws Exception {
        Session owner = session();
        TemporaryQueue queue = owner.createTemporaryQueue();
        send(owner, queue, "private");
        Session within = session(Session.SESSION_TRANSACTED);
        assertThrows(JMSException.class, () -> within.createConsumer(within.createQueue(queue.getQueueName())));
        within.commit();
        assertEquals("private", next(owner.createConsumer(queue)).getText());
    }

    @Test
    @DisplayName("other sessions of its connection consume from it, and share")
    @Tag("TMP-01")
    void ownSessions() throws Exception {
        Connection connection = connect();
        TemporaryQueue queue = connection.createSession().createTemporaryQueue();
        MessageConsumer one = connection.createSession().createConsumer(queue);
        send(connection.createSession(), queue, "a");
        assertEquals("a", next(one).getText());
        one.close();
        send(connection.createSession(), queue, "b");
        assertEquals("b", next(connection.createSession().createConsumer(queue)).getText());
    }

    @Test
    @DisplayName("it is not deleted while a consumer of its connection is there, and then it is")
    @Tag("TMP-03")
    void deletedInUse() throws Exception {
        Session session = session();
        TemporaryQueue queue = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(queue);
        assertThrows(jakarta.jms.IllegalStateException.class, queue::delete);
        send(session, queue, "still here");
        assertEquals("still here", next(consumer).getText());
        consumer.close();
        queue.delete();
        assertThrows(JMSException.class, () -> send(session, queue, "gone"));
    }

    @Test
    @DisplayName("a request and its reply, each in a transaction")
    @Tag("TMP-01")
    @Tag("RCV-06")
    void transactedReply() throws Exception {
        Session asking = session(Session.SESSION_TRANSACTED);
        TemporaryQueue replies = asking.createTemporaryQueue();
        TextMessage request = asking.createTextMessage("question");
        request.setJMSReplyTo(replies);
        asking.createProducer(queue(asking)).send(request);
        asking.commit();
        Session answering = session(Session.SESSION_TRANSACTED);
        MessageConsumer requests = answering.createConsumer(queue(answering));
        MessageProducer anonymous = answering.createProducer(null);
        // --8<-- [start:transacted_reply]
        anonymous.send(next(requests).getJMSReplyTo(), answering.createTextMessage("never"));
        answering.rollback();
        anonymous.send(next(requests).getJMSReplyTo(), answering.createTextMessage("answer"));
        answering.commit();
        // --8<-- [end:transacted_reply]
        MessageConsumer answers = asking.createConsumer(replies);
        assertEquals("answer", next(answers).getText());
        asking.commit();
        assertNull(answers.receiveNoWait());
    }

    @Test
    @DisplayName("the requestors of the specification get their answers, over and over")
    @Tag("TMP-01")
    void requestors() throws Exception {
        Session answering = session();
        MessageProducer anonymous = answering.createProducer(null);
        jakarta.jms.MessageListener answer = request -> {
            try {
                anonymous.send(request.getJMSReplyTo(), answering.createTextMessage("re: " + request.getBody(String.class)));
            } catch (JMSException broken) {
                throw new IllegalStateException(broken);
            }
        };
        answering.createConsumer(queue(answering)).setMessageListener(answer);
        answering.createConsumer(topic(answering)).setMessageListener(answer);
        // --8<-- [start:requestor]
        QueueConnection ofQueues = keep(factory(URL).createQueueConnection());
        ofQueues.start();
        QueueSession queues = ofQueues.createQueueSession(false, Session.AUTO_ACKNOWLEDGE);
        QueueRequestor asksQueue = new QueueRequestor(queues, queue(queues));
        // --8<-- [end:requestor]
        TopicConnection ofTopics = keep(factory(URL).createTopicConnection());
        ofTopics.start();
        TopicSession topics = ofTopics.createTopicSession(false, Session.AUTO_ACKNOWLEDGE);
        TopicRequestor asksTopic = new TopicRequestor(topics, topic(topics));
        for (int i = 0; i < 20; i++) {
            assertEquals("re: " + i, asksQueue.request(queues.createTextMessage("" + i)).getBody(String.class));
            assertEquals("re: " + i, asksTopic.request(topics.createTextMessage("" + i)).getBody(String.class));
        }
        asksQueue.close();
        asksTopic.close();
    }

    @Test
    @DisplayName("JMSReplyTo leads back to a queue, a topic and both temporary ones")
    @Tag("DST-03")
    @Tag("TMP-01")
    void replyTo() throws Exception {
        Session session = session();
        Destination[] ways = {
            session.createQueue(name() + "-reply"), topic(session), session.createTemporaryQueue(), session.createTemporaryTopic(),
        };
        Session other = session();
        MessageConsumer consumer = other.createConsumer(queue(other));
        for (Destination way : ways) {
            Message message = session.createMessage();
            message.setJMSReplyTo(way);
            session.createProducer(queue(session)).send(message);
            Destination back = consumer.receive(SOON).getJMSReplyTo();
            MessageConsumer replies = session.createConsumer(way);
            send(other, back, "back");
            assertEquals("back", next(replies).getText());
        }
    }
}
