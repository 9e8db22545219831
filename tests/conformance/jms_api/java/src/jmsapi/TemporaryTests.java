package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import java.util.HashSet;
import java.util.Set;

/** Temporary destinations, request and reply (6.2.2, 4.1.5, 4.2.7, 3.4.6). */
final class TemporaryTests {
    @Rule(clause = "6.2.2",
            says = "Each temporary destination has a name of its own.")
    void temporaryDestinationsAreUnique(Probe probe) throws Exception {
        Set<String> names = new HashSet<>();
        for (int round = 0; round < 2; round++) {
            Session session = probe.session();
            for (int count = 0; count < 3; count++) {
                names.add(session.createTemporaryQueue().getQueueName());
                names.add(session.createTemporaryTopic().getTopicName());
            }
        }
        Check.equal("the number of names", 12, names.size());
    }

    @Rule(clause = "6.2.2",
            says = "Any session of its connection may consume from a temporary destination.")
    void temporaryDestinationBelongsToItsConnection(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session creating = connection.createSession();
        TemporaryQueue queue = creating.createTemporaryQueue();
        TemporaryTopic topic = creating.createTemporaryTopic();
        creating.close();
        Session other = connection.createSession();
        MessageConsumer consumer = other.createConsumer(queue);
        MessageConsumer subscriber = other.createConsumer(topic);
        Probe.send(other, queue, "to the queue");
        Probe.send(other, topic, "to the topic");
        Probe.expect(consumer, "to the queue");
        Probe.expect(subscriber, "to the topic");
    }

    @Rule(clause = "4.1.5",
            says = "Another connection may send to a temporary queue, and not consume from it.")
    void temporaryQueueIsConsumedByItsConnectionOnly(Probe probe) throws Exception {
        Session owner = probe.session();
        TemporaryQueue queue = owner.createTemporaryQueue();
        Session other = probe.session();
        Check.raises(JMSException.class, "createConsumer() by another connection", () -> other.createConsumer(queue));
        Session named = probe.session();
        Check.raises(JMSException.class, "createConsumer() of a queue of that name",
                () -> named.createConsumer(named.createQueue(queue.getQueueName())));
        Session sending = probe.session();
        Probe.send(sending, queue, "a");
        Probe.expect(owner.createConsumer(queue), "a");
    }

    @Rule(clause = "4.2.7",
            says = "Another connection may publish to a temporary topic, and not subscribe to it.")
    void temporaryTopicIsConsumedByItsConnectionOnly(Probe probe) throws Exception {
        Session owner = probe.session();
        TemporaryTopic topic = owner.createTemporaryTopic();
        MessageConsumer subscriber = owner.createConsumer(topic);
        Session other = probe.session();
        Check.raises(JMSException.class, "createConsumer() by another connection", () -> other.createConsumer(topic));
        Session sending = probe.session();
        Probe.send(sending, topic, "a");
        Probe.expect(subscriber, "a");
    }

    @Rule(clause = "6.2.2",
            says = "A temporary destination with a consumer cannot be deleted; without one it can, once.")
    void temporaryDestinationInUseCannotBeDeleted(Probe probe) throws Exception {
        Session session = probe.session();
        TemporaryQueue queue = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(queue);
        Check.raises(JMSException.class, "delete() with a consumer", queue::delete);
        Probe.send(session, queue, "a");
        Probe.expect(consumer, "a");
        consumer.close();
        queue.delete();
        Check.raises(JMSException.class, "createConsumer() of a deleted queue", () -> session.createConsumer(queue));
    }

    @Rule(clause = "10.3",
            says = "A deleted temporary destination takes no messages any more.")
    void deletedTemporaryDestinationTakesNothing(Probe probe) throws Exception {
        Session session = probe.session();
        TemporaryQueue queue = session.createTemporaryQueue();
        TemporaryTopic topic = session.createTemporaryTopic();
        Session other = probe.session();
        MessageProducer producer = other.createProducer(queue);
        MessageConsumer consumer = session.createConsumer(queue);
        producer.send(other.createTextMessage("before"));
        Probe.expect(consumer, "before");
        consumer.close();
        queue.delete();
        topic.delete();
        for (Destination deleted : new Destination[] {queue, topic}) {
            Check.raises(JMSException.class, "send() to " + deleted, () -> Probe.send(session, deleted, "a"));
        }
        Check.raises(JMSException.class, "send() of an open producer",
                () -> producer.send(other.createTextMessage("a")));
    }

    @Rule(clause = "6.2.2",
            says = "A temporary destination ends with its connection.")
    void temporaryDestinationEndsWithItsConnection(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        TemporaryQueue queue = session.createTemporaryQueue();
        Session other = probe.session();
        MessageConsumer consumer = session.createConsumer(queue);
        Probe.send(other, queue, "a");
        Probe.expect(consumer, "a");
        connection.close();
        Check.raises(JMSException.class, "send() after the close", () -> Probe.send(other, queue, "b"));
    }

    @Rule(clause = "6.2.2",
            says = "A temporary destination outlives the session that created it.")
    void temporaryDestinationOutlivesItsSession(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session creating = connection.createSession();
        TemporaryQueue queue = creating.createTemporaryQueue();
        Probe.send(creating, queue, "a");
        creating.close();
        Session later = connection.createSession();
        MessageConsumer consumer = later.createConsumer(queue);
        Probe.expect(consumer, "a");
        consumer.close();
        queue.delete();
    }

    @Rule(clause = "3.4.6",
            says = "A request with a temporary JMSReplyTo is answered by another connection, with a correlation.")
    void requestIsAnswered(Probe probe) throws Exception {
        Session service = probe.session();
        service.createConsumer(probe.queue(service)).setMessageListener(request -> probe.within(() -> {
            TextMessage answer = service.createTextMessage("answer to " + Probe.text(request));
            answer.setJMSCorrelationID(request.getJMSMessageID());
            MessageProducer answers = service.createProducer(null);
            answers.send(request.getJMSReplyTo(), answer);
            answers.close();
        }));
        Session client = probe.session();
        for (Destination replies : new Destination[] {client.createTemporaryQueue(), client.createTemporaryTopic()}) {
            MessageConsumer consumer = client.createConsumer(replies);
            TextMessage request = client.createTextMessage("request");
            request.setJMSReplyTo(replies);
            client.createProducer(probe.queue(client)).send(request);
            Message answer = Probe.expect(consumer, "answer to request");
            Check.equal("JMSCorrelationID", request.getJMSMessageID(), answer.getJMSCorrelationID());
            Check.equal("JMSDestination", replies, answer.getJMSDestination());
        }
    }

    @Rule(clause = "3.4.6",
            says = "JMSReplyTo arrives as what it was: queue, topic, temporary queue or temporary topic.")
    void replyToKeepsItsKind(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        MessageProducer producer = session.createProducer(probe.queue(session));
        Destination[] kinds = {session.createQueue("replies"), session.createTopic("replies"),
                session.createTemporaryQueue(), session.createTemporaryTopic(), null};
        for (Destination replies : kinds) {
            Message message = session.createTextMessage("a");
            message.setJMSReplyTo(replies);
            producer.send(message);
            Destination received = Probe.expect(consumer, "a").getJMSReplyTo();
            Check.equal("JMSReplyTo", replies, received);
            if (replies != null) {
                Check.equal("its class", replies.getClass(), received.getClass());
            }
        }
    }
}
