package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Shared subscriptions, durable and not (8.3.2, 8.3.4). */
final class SharedTests {
    /** Send twenty messages; they must reach one or the other of two consumers, each once. */
    private static void eachMessageOnce(Probe probe, MessageConsumer first, MessageConsumer second) throws Exception {
        List<String> sent = new ArrayList<>();
        for (int place = 0; place < 20; place++) {
            sent.add(String.format("m%02d", place));
        }
        probe.publish(sent.toArray(new String[0]));
        List<String> received = new ArrayList<>();
        for (int idle = 0; received.size() < 20 && idle < 50;) {
            int before = received.size();
            for (MessageConsumer consumer : new MessageConsumer[] {first, second}) {
                Message message = consumer.receive(20);
                if (message != null) {
                    received.add(Probe.text(message));
                }
            }
            idle = received.size() == before ? idle + 1 : 0;
        }
        Check.nothing(first, "each message comes once");
        Check.nothing(second, "each message comes once");
        Collections.sort(received);
        Check.equal("the messages that the two consumers got", sent, received);
    }

    @Rule(clause = "8.3.2",
            says = "Each message of a shared non-durable subscription goes to one of its consumers, on any connection.")
    void sharedConsumersShareTheMessages(Probe probe) throws Exception {
        Session first = probe.session();
        Session second = probe.session();
        eachMessageOnce(probe, first.createSharedConsumer(probe.topic(first), probe.name()),
                second.createSharedConsumer(probe.topic(second), probe.name()));
    }

    @Rule(clause = "8.3.4",
            says = "Each message of a shared durable subscription goes to one of its consumers, on any connection.")
    void sharedDurableConsumersShareTheMessages(Probe probe) throws Exception {
        Session first = probe.session();
        Session second = probe.session();
        MessageConsumer one = first.createSharedDurableConsumer(probe.topic(first), probe.name());
        MessageConsumer two = second.createSharedDurableConsumer(probe.topic(second), probe.name());
        eachMessageOnce(probe, one, two);
        one.close();
        two.close();
        first.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.2",
            says = "A shared non-durable subscription ends with its last consumer: it keeps no messages.")
    void sharedSubscriptionEndsWithItsLastConsumer(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer first = session.createSharedConsumer(probe.topic(session), probe.name());
        MessageConsumer second = session.createSharedConsumer(probe.topic(session), probe.name());
        first.close();
        probe.publish("a");
        Probe.expect(second, "a");
        second.close();
        probe.publish("between");
        MessageConsumer third = session.createSharedConsumer(probe.topic(session), probe.name());
        Check.nothing(third, "there was no consumer when it was published");
        probe.publish("b");
        Probe.expect(third, "b");
    }

    @Rule(clause = "8.3.4",
            says = "A shared durable subscription keeps messages while it has no consumer, until unsubscribe.")
    void sharedDurableSubscriptionKeepsMessages(Probe probe) throws Exception {
        Session session = probe.session();
        session.createSharedDurableConsumer(probe.topic(session), probe.name()).close();
        probe.publish("a", "b");
        MessageConsumer consumer = session.createSharedDurableConsumer(probe.topic(session), probe.name());
        Probe.expect(consumer, "a", "b");
        consumer.close();
        probe.publish("c");
        session.unsubscribe(probe.name());
        consumer = session.createSharedDurableConsumer(probe.topic(session), probe.name());
        Check.nothing(consumer, "the subscription is new");
        consumer.close();
        session.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.2",
            says = "A further consumer of an active shared subscription needs the same topic and selector.")
    void sharedConsumersNeedTheSameTopicAndSelector(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createSharedConsumer(probe.topic(session), probe.name(), "size > 4");
        Check.raises(JMSException.class, "createSharedConsumer() of another topic",
                () -> session.createSharedConsumer(session.createTopic(probe.topicName("b")), probe.name(), "size > 4"));
        Check.raises(JMSException.class, "createSharedConsumer() with another selector",
                () -> session.createSharedConsumer(probe.topic(session), probe.name(), "size > 5"));
        Check.raises(JMSException.class, "createSharedConsumer() without a selector",
                () -> session.createSharedConsumer(probe.topic(session), probe.name()));
        session.createSharedConsumer(probe.topic(session), probe.name(), "size > 4").close();
        Message message = session.createTextMessage("a");
        message.setIntProperty("size", 5);
        session.createProducer(probe.topic(session)).send(message);
        Probe.expect(consumer, "a");
    }

    @Rule(clause = "8.3.4",
            says = "A further consumer of an active shared durable subscription needs the same topic and selector.")
    void sharedDurableConsumersNeedTheSameTopicAndSelector(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createSharedDurableConsumer(probe.topic(session), probe.name());
        Check.raises(JMSException.class, "createSharedDurableConsumer() of another topic",
                () -> session.createSharedDurableConsumer(session.createTopic(probe.topicName("b")), probe.name()));
        Check.raises(JMSException.class, "createSharedDurableConsumer() with a selector",
                () -> session.createSharedDurableConsumer(probe.topic(session), probe.name(), "size > 4"));
        probe.publish("a");
        Probe.expect(consumer, "a");
        consumer.close();
        session.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.4",
            says = "An inactive shared durable subscription that gets another selector or topic begins anew.")
    void changedSharedDurableSubscriptionBeginsAnew(Probe probe) throws Exception {
        Session session = probe.session();
        session.createSharedDurableConsumer(probe.topic(session), probe.name()).close();
        probe.publish("old");
        MessageConsumer consumer = session.createSharedDurableConsumer(probe.topic(session), probe.name(), "size > 4");
        Check.nothing(consumer, "the subscription is new");
        Message message = session.createTextMessage("large");
        message.setIntProperty("size", 5);
        session.createProducer(probe.topic(session)).send(message);
        probe.publish("without size");
        Probe.expect(consumer, "large");
        Check.nothing(consumer, "it does not match");
        consumer.close();
        consumer = session.createSharedDurableConsumer(session.createTopic(probe.topicName("b")), probe.name());
        probe.publish("of the first topic");
        Probe.send(session, session.createTopic(probe.topicName("b")), "of the second topic");
        Probe.expect(consumer, "of the second topic");
        Check.nothing(consumer, "the subscription is of another topic");
        consumer.close();
        session.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.2",
            says = "A shared non-durable and a durable subscription of one name are separate.")
    void durableAndNonDurableNamesAreSeparate(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer nonDurable = session.createSharedConsumer(probe.topic(session), probe.name());
        MessageConsumer durable = session.createSharedDurableConsumer(probe.topic(session), probe.name());
        probe.publish("a");
        Probe.expect(nonDurable, "a");
        Probe.expect(durable, "a");
        durable.close();
        session.unsubscribe(probe.name());
        probe.publish("b");
        Probe.expect(nonDurable, "b");
    }

    @Rule(clause = "8.3.2",
            says = "Shared subscriptions of one name are separate for different client identifiers, and for none.")
    void clientIdentifierSeparatesSharedSubscriptions(Probe probe) throws Exception {
        Session anonymous = probe.session();
        Session first = probe.connectAs(probe.name("a")).createSession();
        Session second = probe.connectAs(probe.name("b")).createSession();
        List<MessageConsumer> consumers = new ArrayList<>();
        for (Session session : List.of(anonymous, first, second)) {
            consumers.add(session.createSharedConsumer(probe.topic(session), probe.name()));
            consumers.add(session.createSharedDurableConsumer(probe.topic(session), probe.name()));
        }
        probe.publish("m");
        for (MessageConsumer consumer : consumers) {
            Probe.expect(consumer, "m");
            consumer.close();
        }
        for (Session session : List.of(anonymous, first, second)) {
            session.unsubscribe(probe.name());
        }
    }

    @Rule(clause = "8.3.4",
            says = "A shared durable subscription should not be deleted while it has a consumer, which is an error.")
    void sharedDurableSubscriptionInUseCannotBeDeleted(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createSharedDurableConsumer(probe.topic(session), probe.name());
        Session other = probe.session();
        probe.publish("a");
        Probe.expect(consumer, "a");
        try {
            other.unsubscribe(probe.name());
            throw new NotApplicable(NotApplicable.Kind.IGNORED, "a subscription in use is deleted");
        } catch (JMSException refused) {
            FrameLog.add("refused: " + refused);
        }
        probe.publish("b");
        Probe.expect(consumer, "b");
        consumer.close();
        other.unsubscribe(probe.name());
        Check.raises(JMSException.class, "unsubscribe() again", () -> session.unsubscribe(probe.name()));
    }

    @Rule(clause = "8.3.2",
            says = "Messages that a consumer of a shared subscription did not acknowledge go to the others.")
    void unacknowledgedMessagesGoToOtherConsumers(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session failing = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer first = failing.createSharedDurableConsumer(probe.topic(failing), probe.name());
        probe.publish("a", "b");
        Probe.expect(first, "a");
        Session other = probe.session();
        MessageConsumer second = other.createSharedDurableConsumer(probe.topic(other), probe.name());
        connection.close();
        Probe.expectAgain(second, "a");
        Probe.expect(second, "b");
        second.close();
        other.unsubscribe(probe.name());
    }
}
