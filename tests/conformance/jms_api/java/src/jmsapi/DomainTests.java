package jmsapi;

import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.QueueConnection;
import jakarta.jms.QueueReceiver;
import jakarta.jms.QueueRequestor;
import jakarta.jms.QueueSender;
import jakarta.jms.QueueSession;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import jakarta.jms.TopicConnection;
import jakarta.jms.TopicPublisher;
import jakarta.jms.TopicRequestor;
import jakarta.jms.TopicSession;
import jakarta.jms.TopicSubscriber;

/** The interfaces for queues alone and for topics alone (4.1.7, 4.2.10, 7.2, 9.2). */
final class DomainTests {
    private static QueueSession queueSession(Probe probe) throws JMSException {
        QueueConnection connection = probe.keep(Probe.factory().createQueueConnection());
        connection.start();
        return connection.createQueueSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private static TopicSession topicSession(Probe probe) throws JMSException {
        TopicConnection connection = probe.keep(Probe.factory().createTopicConnection());
        connection.start();
        return connection.createTopicSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    @Rule(clause = "7.2",
            says = "A QueueSender sends and a QueueReceiver receives, and each returns its queue.")
    void queueSenderAndReceiverWork(Probe probe) throws Exception {
        QueueSession session = queueSession(probe);
        Queue queue = session.createQueue(probe.queueName());
        QueueSender sender = session.createSender(queue);
        QueueReceiver receiver = session.createReceiver(queue);
        Check.equal("getQueue() of the sender", queue, sender.getQueue());
        Check.equal("getQueue() of the receiver", queue, receiver.getQueue());
        sender.send(session.createTextMessage("a"));
        Probe.expect(receiver, "a");
        session.createSender(null).send(queue, session.createTextMessage("b"));
        Probe.expect(receiver, "b");
    }

    @Rule(clause = "7.2",
            says = "A TopicPublisher publishes and a TopicSubscriber receives, and each returns its topic.")
    void topicPublisherAndSubscriberWork(Probe probe) throws Exception {
        TopicSession session = topicSession(probe);
        Topic topic = session.createTopic(probe.topicName());
        TopicSubscriber subscriber = session.createSubscriber(topic);
        TopicSubscriber remote = session.createSubscriber(topic, null, true);
        Check.equal("getTopic()", topic, subscriber.getTopic());
        Check.equal("getNoLocal()", false, subscriber.getNoLocal());
        Check.equal("getNoLocal() of the other", true, remote.getNoLocal());
        TopicPublisher publisher = session.createPublisher(topic);
        Check.equal("getTopic() of the publisher", topic, publisher.getTopic());
        publisher.publish(session.createTextMessage("a"));
        session.createPublisher(null).publish(topic, session.createTextMessage("b"));
        Probe.expect(subscriber, "a", "b");
        Check.nothing(remote, "its own connection published it");
    }

    @Rule(clause = "9.2",
            says = "A QueueSession refuses what topics alone have: an IllegalStateException.")
    void queueSessionRefusesTopics(Probe probe) throws Exception {
        QueueSession session = queueSession(probe);
        Session other = probe.session();
        Topic topic = probe.topic(other);
        String name = probe.name();
        Check.raises(IllegalStateException.class, "createTopic()", () -> session.createTopic(name));
        Check.raises(IllegalStateException.class, "createTemporaryTopic()", session::createTemporaryTopic);
        Check.raises(IllegalStateException.class, "createDurableSubscriber()",
                () -> session.createDurableSubscriber(topic, name));
        Check.raises(IllegalStateException.class, "createDurableConsumer()",
                () -> session.createDurableConsumer(topic, name));
        Check.raises(IllegalStateException.class, "createSharedConsumer()",
                () -> session.createSharedConsumer(topic, name));
        Check.raises(IllegalStateException.class, "createSharedDurableConsumer()",
                () -> session.createSharedDurableConsumer(topic, name));
        Check.raises(IllegalStateException.class, "unsubscribe()", () -> session.unsubscribe(name));
    }

    @Rule(clause = "9.2",
            says = "A TopicSession refuses what queues alone have: an IllegalStateException.")
    void topicSessionRefusesQueues(Probe probe) throws Exception {
        TopicSession session = topicSession(probe);
        Session other = probe.session();
        Queue queue = probe.queue(other);
        Check.raises(IllegalStateException.class, "createQueue()", () -> session.createQueue(probe.name()));
        Check.raises(IllegalStateException.class, "createTemporaryQueue()", session::createTemporaryQueue);
        Check.raises(IllegalStateException.class, "createBrowser()", () -> session.createBrowser(queue));
    }

    @Rule(clause = "9.2",
            says = "A QueueConnection refuses connection consumers of durable subscriptions: an IllegalStateException.")
    void queueConnectionRefusesSubscriptions(Probe probe) throws Exception {
        QueueConnection connection = probe.keep(Probe.factory().createQueueConnection());
        connection.start();
        Session other = probe.session();
        Topic topic = probe.topic(other);
        String name = probe.name();
        Check.raises(IllegalStateException.class, "createDurableConnectionConsumer()",
                () -> connection.createDurableConnectionConsumer(topic, name, null, () -> null, 1));
    }

    @Rule(clause = "9.2",
            says = "A QueueConnection refuses connection consumers of shared subscriptions: an IllegalStateException.",
            clientBreaksIt = "its QueueConnection creates them")
    void queueConnectionRefusesSharedSubscriptions(Probe probe) throws Exception {
        QueueConnection connection = probe.keep(Probe.factory().createQueueConnection());
        connection.start();
        Session other = probe.session();
        Topic topic = probe.topic(other);
        String name = probe.name();
        Check.raises(IllegalStateException.class, "createSharedConnectionConsumer()",
                () -> connection.createSharedConnectionConsumer(topic, name, null, () -> null, 1));
        Check.raises(IllegalStateException.class, "createSharedDurableConnectionConsumer()",
                () -> connection.createSharedDurableConnectionConsumer(topic, name, null, () -> null, 1));
    }

    /** Answer a request by a message to its JMSReplyTo. */
    private static void answer(Session session, Message request) throws JMSException {
        TextMessage answer = session.createTextMessage("answer to " + Probe.text(request));
        session.createProducer(null).send(request.getJMSReplyTo(), answer);
    }

    @Rule(clause = "4.1.7",
            says = "A QueueRequestor sends a request to a queue and returns its answer.")
    void queueRequestorReturnsTheAnswer(Probe probe) throws Exception {
        Session service = probe.session();
        service.createConsumer(probe.queue(service)).setMessageListener(
                request -> probe.within(() -> answer(service, request)));
        QueueSession session = queueSession(probe);
        QueueRequestor requestor = new QueueRequestor(session, session.createQueue(probe.queueName()));
        for (String text : new String[] {"a", "b"}) {
            Check.equal("the answer", "answer to " + text,
                    Probe.text(requestor.request(session.createTextMessage(text))));
        }
        requestor.close();
    }

    @Rule(clause = "4.2.10",
            says = "A TopicRequestor publishes a request to a topic and returns its first answer.")
    void topicRequestorReturnsTheAnswer(Probe probe) throws Exception {
        Session service = probe.session();
        service.createConsumer(probe.topic(service)).setMessageListener(
                request -> probe.within(() -> answer(service, request)));
        TopicSession session = topicSession(probe);
        TopicRequestor requestor = new TopicRequestor(session, session.createTopic(probe.topicName()));
        Check.equal("the answer", "answer to a", Probe.text(requestor.request(session.createTextMessage("a"))));
        requestor.close();
    }
}
