package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TopicSubscriber;
import java.util.ArrayList;
import java.util.List;

/** Unshared durable subscriptions, and names of subscriptions (8.3.3, 4.2.4). */
final class DurableTests {
    @Rule(clause = "8.3.3",
            says = "A durable subscription keeps the messages that are published while it has no consumer.")
    void durableSubscriptionKeepsMessages(Probe probe) throws Exception {
        Connection connection = probe.connectAs(probe.name());
        Session session = connection.createSession();
        MessageConsumer consumer = session.createDurableConsumer(probe.topic(session), probe.name());
        probe.publish("a");
        Probe.expect(consumer, "a");
        consumer.close();
        probe.publish("b");
        connection.close();
        probe.publish("c");
        Session again = probe.connectAs(probe.name()).createSession();
        consumer = again.createDurableConsumer(probe.topic(again), probe.name());
        Probe.expect(consumer, "b", "c");
        consumer.close();
        again.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.3",
            says = "Messages of a durable subscription that were not acknowledged are delivered again, later too.")
    void durableSubscriptionRedelivers(Probe probe) throws Exception {
        Connection connection = probe.connectAs(probe.name());
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createDurableConsumer(probe.topic(session), probe.name());
        probe.publish("a", "b");
        Probe.expect(consumer, "a").acknowledge();
        Probe.expect(consumer, "b");
        connection.close();
        Session again = probe.connectAs(probe.name()).createSession();
        consumer = again.createDurableConsumer(probe.topic(again), probe.name());
        Probe.expectAgain(consumer, "b");
        consumer.close();
        again.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.3",
            says = "An unshared durable subscription needs a client identifier.")
    void durableSubscriptionNeedsAClientIdentifier(Probe probe) throws Exception {
        Session session = probe.session();
        Check.raises(IllegalStateException.class, "createDurableConsumer()",
                () -> session.createDurableConsumer(probe.topic(session), probe.name()));
        Check.raises(IllegalStateException.class, "createDurableSubscriber()",
                () -> session.createDurableSubscriber(probe.topic(session), probe.name()));
    }

    @Rule(clause = "8.3.3",
            says = "An unshared durable subscription has one consumer at a time.")
    void durableSubscriptionHasOneConsumer(Probe probe) throws Exception {
        Connection connection = probe.connectAs(probe.name());
        Session session = connection.createSession();
        MessageConsumer consumer = session.createDurableConsumer(probe.topic(session), probe.name());
        Session other = connection.createSession();
        Check.raises(JMSException.class, "createDurableConsumer() of a subscription in use",
                () -> other.createDurableConsumer(probe.topic(other), probe.name()));
        probe.publish("a");
        Probe.expect(consumer, "a");
        consumer.close();
        other.createDurableConsumer(probe.topic(other), probe.name()).close();
        session.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.3",
            says = "A durable subscription belongs to its client identifier: another client has one of its own.")
    void durableSubscriptionBelongsToItsClient(Probe probe) throws Exception {
        Session first = probe.connectAs(probe.name("a")).createSession();
        Session second = probe.connectAs(probe.name("b")).createSession();
        MessageConsumer one = first.createDurableConsumer(probe.topic(first), probe.name());
        MessageConsumer two = second.createDurableConsumer(probe.topic(second), probe.name());
        probe.publish("m");
        Probe.expect(one, "m");
        Probe.expect(two, "m");
        one.close();
        two.close();
        first.unsubscribe(probe.name());
        probe.publish("n");
        two = second.createDurableConsumer(probe.topic(second), probe.name());
        Probe.expect(two, "n");
        two.close();
        second.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.3",
            says = "An inactive durable subscription that gets another selector, topic or noLocal begins anew.")
    void changedDurableSubscriptionBeginsAnew(Probe probe) throws Exception {
        Session session = probe.connectAs(probe.name()).createSession();
        session.createDurableConsumer(probe.topic(session), probe.name()).close();
        probe.publish("old");
        MessageConsumer consumer =
                session.createDurableConsumer(probe.topic(session), probe.name(), "size IS NULL", false);
        Check.nothing(consumer, "the selector is another");
        consumer.close();
        probe.publish("old");
        consumer = session.createDurableConsumer(probe.topic(session), probe.name(), "size IS NULL", true);
        Check.nothing(consumer, "noLocal is another");
        consumer.close();
        probe.publish("old");
        consumer = session.createDurableConsumer(
                session.createTopic(probe.topicName("b")), probe.name(), "size IS NULL", true);
        Check.nothing(consumer, "the topic is another");
        probe.publish("of the first topic");
        Session other = probe.session();
        Probe.send(other, other.createTopic(probe.topicName("b")), "of the second topic");
        Probe.expect(consumer, "of the second topic");
        consumer.close();
        session.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.3",
            says = "A durable subscription that gets the same selector again goes on.")
    void unchangedDurableSubscriptionGoesOn(Probe probe) throws Exception {
        Session session = probe.connectAs(probe.name()).createSession();
        for (int round = 0; round < 3; round++) {
            MessageConsumer consumer =
                    session.createDurableConsumer(probe.topic(session), probe.name(), "size IS NULL", true);
            if (round > 0) {
                Probe.expect(consumer, "m" + round);
            }
            Check.nothing(consumer, "each message comes once");
            consumer.close();
            probe.publish("m" + (round + 1));
        }
        session.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.3",
            says = "With noLocal a durable subscription gets nothing of a connection with its client identifier.")
    void noLocalOfADurableSubscription(Probe probe) throws Exception {
        Connection connection = probe.connectAs(probe.name());
        Session session = connection.createSession();
        MessageConsumer consumer = session.createDurableConsumer(probe.topic(session), probe.name(), null, true);
        Probe.send(session, probe.topic(session), "own");
        probe.publish("of another");
        Probe.expect(consumer, "of another");
        consumer.close();
        Probe.send(session, probe.topic(session), "own, without a consumer");
        connection.close();
        Session again = probe.connectAs(probe.name()).createSession();
        Probe.send(again, probe.topic(again), "of a later connection of the client");
        consumer = again.createDurableConsumer(probe.topic(again), probe.name(), null, true);
        Check.nothing(consumer, "connections of this client published it");
        consumer.close();
        again.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.3",
            says = "A shared and an unshared durable subscription of one client cannot have the same name.")
    void sharedAndUnsharedNamesExcludeEachOther(Probe probe) throws Exception {
        Session session = probe.connectAs(probe.name()).createSession();
        session.createDurableConsumer(probe.topic(session), probe.name()).close();
        Check.raises(JMSException.class, "createSharedDurableConsumer() of an unshared one's name",
                () -> session.createSharedDurableConsumer(probe.topic(session), probe.name()));
        probe.publish("a");
        MessageConsumer consumer = session.createDurableConsumer(probe.topic(session), probe.name());
        Probe.expect(consumer, "a");
        consumer.close();
        session.unsubscribe(probe.name());
        session.createSharedDurableConsumer(probe.topic(session), probe.name()).close();
        Check.raises(JMSException.class, "createDurableConsumer() of a shared one's name",
                () -> session.createDurableConsumer(probe.topic(session), probe.name()));
        session.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.3",
            says = "A durable subscription in use cannot be deleted; afterwards it can, and it is gone then.")
    void durableSubscriptionInUseCannotBeDeleted(Probe probe) throws Exception {
        Session session = probe.connectAs(probe.name()).createSession();
        MessageConsumer consumer = session.createDurableConsumer(probe.topic(session), probe.name());
        Check.raises(JMSException.class, "unsubscribe() of a subscription in use",
                () -> session.unsubscribe(probe.name()));
        probe.publish("a");
        Probe.expect(consumer, "a");
        consumer.close();
        probe.publish("b");
        session.unsubscribe(probe.name());
        consumer = session.createDurableConsumer(probe.topic(session), probe.name());
        Check.nothing(consumer, "the subscription is new");
        consumer.close();
        session.unsubscribe(probe.name());
    }

    @Rule(clause = "10.3",
            says = "Deleting a subscription that does not exist is an InvalidDestinationException.")
    void unknownSubscriptionCannotBeDeleted(Probe probe) throws Exception {
        Session session = probe.connectAs(probe.name()).createSession();
        Check.raises(InvalidDestinationException.class, "unsubscribe()", () -> session.unsubscribe(probe.name()));
        Session anonymous = probe.session();
        Check.raises(InvalidDestinationException.class, "unsubscribe() without a client identifier",
                () -> anonymous.unsubscribe(probe.name()));
    }

    @Rule(clause = "4.2.4",
            says = "Names of subscriptions may contain letters and digits of Java, underscores, dots and hyphens.")
    void subscriptionNamesHaveManyCharacters(Probe probe) throws Exception {
        Session session = probe.connectAs(probe.name()).createSession();
        List<MessageConsumer> consumers = new ArrayList<>();
        String[] names = {"Plain", "with_underscore", "with.dot", "with-minus", "1digit", "größe", "приём", "名前", "٣"};
        for (String each : names) {
            consumers.add(session.createDurableConsumer(probe.topic(session), each));
            consumers.add(session.createSharedConsumer(probe.topic(session), each));
        }
        probe.publish("m");
        for (MessageConsumer consumer : consumers) {
            Probe.expect(consumer, "m");
            consumer.close();
        }
        for (String each : names) {
            session.unsubscribe(each);
        }
    }

    @Rule(clause = "4.2.4",
            says = "Names of subscriptions may have 128 characters, and all of them count.")
    void subscriptionNamesHaveManyLetters(Probe probe) throws Exception {
        Session session = probe.connectAs(probe.name()).createSession();
        String start = "n".repeat(127);
        MessageConsumer first = session.createDurableConsumer(probe.topic(session), start + "a");
        MessageConsumer second = session.createDurableConsumer(probe.topic(session), start + "b");
        MessageConsumer shared = session.createSharedDurableConsumer(probe.topic(session), start + "c");
        probe.publish("m");
        for (MessageConsumer consumer : List.of(first, second, shared)) {
            Probe.expect(consumer, "m");
            consumer.close();
        }
        for (String last : new String[] {"a", "b", "c"}) {
            session.unsubscribe(start + last);
        }
    }

    @Rule(clause = "8.3.3",
            says = "CreateDurableSubscriber makes the same subscription, with its topic and noLocal to be read.")
    void durableSubscriberIsADurableConsumer(Probe probe) throws Exception {
        Session session = probe.connectAs(probe.name()).createSession();
        TopicSubscriber subscriber = session.createDurableSubscriber(probe.topic(session), probe.name(), null, true);
        Check.equal("getTopic()", probe.topic(session), subscriber.getTopic());
        Check.equal("getNoLocal()", true, subscriber.getNoLocal());
        subscriber.close();
        probe.publish("a");
        MessageConsumer consumer = session.createDurableConsumer(probe.topic(session), probe.name(), null, true);
        Probe.expect(consumer, "a");
        consumer.close();
        session.unsubscribe(probe.name());
    }

    @Rule(clause = "8.3.3",
            says = "Messages that a transaction consumed from a durable subscription come again after a rollback.")
    void durableSubscriptionTakesPartInTransactions(Probe probe) throws Exception {
        Session session = probe.connectAs(probe.name()).createSession(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createDurableConsumer(probe.topic(session), probe.name());
        probe.publish("a", "b");
        Probe.expect(consumer, "a");
        session.rollback();
        Message again = Probe.expectAgain(consumer, "a");
        Check.equal("JMSXDeliveryCount", 2, Probe.deliveryCount(again));
        session.commit();
        Probe.expect(consumer, "b");
        session.commit();
        Check.nothing(consumer, "all is committed");
        consumer.close();
        session.unsubscribe(probe.name());
    }
}
