package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;

/** Topics and unshared non-durable subscriptions (4.2.2, 8.3.1). */
final class TopicTests {
    @Rule(clause = "4.2.2",
            says = "Each subscription of a topic gets a copy of each message, in order.")
    void eachSubscriptionGetsEachMessage(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        Session other = probe.session();
        MessageConsumer[] subscribers = {session.createConsumer(probe.topic(session)),
                session.createConsumer(probe.topic(session)), other.createConsumer(probe.topic(other))};
        Probe.send(session, probe.topic(session), "a", "b", "c");
        for (MessageConsumer subscriber : subscribers) {
            Probe.expect(subscriber, "a", "b", "c");
            Check.nothing(subscriber, "each message comes once");
        }
    }

    @Rule(clause = "4.2.2",
            says = "Acknowledging a copy of a message acknowledges no other copy.")
    void copiesAreIndependent(Probe probe) throws Exception {
        Session first = probe.session(Session.CLIENT_ACKNOWLEDGE);
        Session second = probe.session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer one = first.createConsumer(probe.topic(first));
        MessageConsumer two = second.createConsumer(probe.topic(second));
        probe.publish("a");
        Probe.expect(one, "a").acknowledge();
        Probe.expect(two, "a");
        first.recover();
        second.recover();
        Check.nothing(one, "it is acknowledged");
        Probe.expectAgain(two, "a");
    }

    @Rule(clause = "8.3.1",
            says = "A non-durable subscription gets nothing that was published before it or after its consumer closed.")
    void subscriptionLastsAsLongAsItsConsumer(Probe probe) throws Exception {
        Session session = probe.session();
        probe.publish("too early");
        MessageConsumer first = session.createConsumer(probe.topic(session));
        probe.publish("a");
        Probe.expect(first, "a");
        first.close();
        probe.publish("between");
        MessageConsumer second = session.createConsumer(probe.topic(session));
        Check.nothing(second, "it was published before");
        probe.publish("b");
        Probe.expect(second, "b");
    }

    @Rule(clause = "8.3.1",
            says = "A subscription with a selector gets only the messages that match.")
    void subscriptionMaySelect(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer large = session.createConsumer(probe.topic(session), "size > 4");
        MessageConsumer all = session.createConsumer(probe.topic(session));
        MessageProducer producer = session.createProducer(probe.topic(session));
        for (int size = 3; size <= 6; size++) {
            Message message = session.createTextMessage("size " + size);
            message.setIntProperty("size", size);
            producer.send(message);
        }
        Probe.expect(large, "size 5", "size 6");
        Check.nothing(large, "no other matches");
        Probe.expect(all, "size 3", "size 4", "size 5", "size 6");
    }

    @Rule(clause = "8.3.1",
            says = "With noLocal a subscription gets nothing that its own connection publishes, by whichever session.")
    void noLocalLeavesOutTheOwnConnection(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        MessageConsumer remote = session.createConsumer(probe.topic(session), null, true);
        MessageConsumer all = session.createConsumer(probe.topic(session), null, false);
        Session other = connection.createSession();
        Probe.send(other, probe.topic(other), "own");
        probe.publish("of another");
        Probe.expect(all, "own", "of another");
        Probe.expect(remote, "of another");
        Check.nothing(remote, "its own connection published it");
    }

    @Rule(clause = "8.3.1",
            says = "NoLocal and a selector hold together.")
    void noLocalAndASelectorHoldTogether(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.topic(session), "size > 4", true);
        for (Session sending : new Session[] {session, probe.session()}) {
            MessageProducer producer = sending.createProducer(probe.topic(sending));
            for (int size : new int[] {3, 7}) {
                Message message = sending.createTextMessage((sending == session ? "own " : "other ") + size);
                message.setIntProperty("size", size);
                producer.send(message);
            }
        }
        Probe.expect(consumer, "other 7");
        Check.nothing(consumer, "no other matches");
    }

    @Rule(clause = "4.2.2",
            says = "A message published to a topic without subscriptions is accepted, and lost.")
    void topicWithoutSubscriptionsTakesMessages(Probe probe) throws Exception {
        probe.publish("a", "b");
        Session session = probe.session();
        MessageConsumer late = session.createConsumer(probe.topic(session));
        Check.nothing(late, "it was published before");
        probe.publish("c");
        Probe.expect(late, "c");
    }

    @Rule(clause = "4.2.2",
            says = "Messages of a topic name it as their destination.")
    void messagesNameTheirTopic(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer subscriber = session.createConsumer(probe.topic(session));
        probe.publish("a");
        Check.equal("JMSDestination", probe.topic(session), Probe.expect(subscriber, "a").getJMSDestination());
    }

    @Rule(clause = "10.3",
            says = "A selector of wrong syntax is an InvalidSelectorException for each kind of subscription.")
    void wrongSelectorIsInvalidForEverySubscription(Probe probe) throws Exception {
        Session session = probe.connectAs(probe.name()).createSession();
        String wrong = "size NOT 4";
        Check.raises(InvalidSelectorException.class, "createConsumer()",
                () -> session.createConsumer(probe.topic(session), wrong));
        Check.raises(InvalidSelectorException.class, "createDurableConsumer()",
                () -> session.createDurableConsumer(probe.topic(session), probe.name(), wrong, false));
        Check.raises(InvalidSelectorException.class, "createSharedConsumer()",
                () -> session.createSharedConsumer(probe.topic(session), probe.name(), wrong));
        Check.raises(InvalidSelectorException.class, "createSharedDurableConsumer()",
                () -> session.createSharedDurableConsumer(probe.topic(session), probe.name(), wrong));
    }

    @Rule(clause = "4.2.8",
            says = "Messages of a non-durable subscription that were not acknowledged can be recovered.")
    void subscriptionRecovers(Probe probe) throws Exception {
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer subscriber = session.createConsumer(probe.topic(session));
        probe.publish("a", "b");
        Probe.expect(subscriber, "a", "b");
        session.recover();
        Probe.expectAgain(subscriber, "a");
        Probe.expectAgain(subscriber, "b").acknowledge();
        session.recover();
        Check.nothing(subscriber, "all is acknowledged");
    }

    @Rule(clause = "6.2.15",
            says = "A subscriber of a closed session is closed with it, and its subscription ends.")
    void sessionCloseEndsSubscriptions(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        MessageConsumer subscriber = session.createConsumer(probe.topic(session));
        session.close();
        Check.raises(IllegalStateException.class, "receive()", () -> subscriber.receive(1));
        probe.publish("a");
        Session again = connection.createSession();
        MessageConsumer late = again.createConsumer(probe.topic(again));
        Check.nothing(late, "it was published before");
        probe.publish("b");
        Probe.expect(late, "b");
    }
}
