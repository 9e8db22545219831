package jmsapi;

import jakarta.jms.DeliveryMode;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** Time-to-live and delivery delay (7.8, 7.9, 3.4.9, 3.4.13, 4.1.6). */
final class LifetimeTests {
    private static final long SHORT_MS = 60;
    private static final long DELAY_MS = 250;

    @Rule(clause = "3.4.9",
            says = "JMSExpiration is the time of the send plus the time-to-live, for sender and receiver.")
    void expirationIsComputedAtTheSend(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Message message = session.createTextMessage("a");
        long before = System.currentTimeMillis();
        producer.send(message, DeliveryMode.PERSISTENT, 4, 60_000);
        long after = System.currentTimeMillis();
        long expiration = message.getJMSExpiration();
        Check.that(expiration >= before + 60_000 && expiration <= after + 60_000,
                "an expiration 60 s after the send", expiration - before + " ms after it");
        Message received = Probe.expect(session.createConsumer(probe.queue(session)), "a");
        Check.equal("JMSExpiration", expiration, received.getJMSExpiration());
    }

    @Rule(clause = "3.4.9",
            says = "Without a time-to-live JMSExpiration is zero, and the message does not expire.")
    void withoutTimeToLiveNothingExpires(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createTextMessage("a");
        message.setJMSExpiration(1);
        session.createProducer(probe.queue(session)).send(message);
        Check.equal("JMSExpiration of the sender", 0L, message.getJMSExpiration());
        Probe.waitUntilAfter(System.currentTimeMillis() + SHORT_MS);
        Message received = Probe.expect(session.createConsumer(probe.queue(session)), "a");
        Check.equal("JMSExpiration of the receiver", 0L, received.getJMSExpiration());
    }

    @Rule(clause = "7.8",
            says = "A message whose time-to-live is over is delivered to no consumer of the queue, those after it are.")
    void expiredMessageIsNotDelivered(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Message message = session.createTextMessage("short-lived");
        producer.send(message, DeliveryMode.PERSISTENT, 4, SHORT_MS);
        producer.send(session.createTextMessage("a"));
        Probe.waitUntilAfter(message.getJMSExpiration() + 20);
        probe.left("a");
    }

    @Rule(clause = "7.8",
            says = "A message of a topic expires in each of its subscriptions.")
    void expiredMessageIsNotDeliveredToSubscribers(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer durable = session.createSharedDurableConsumer(probe.topic(session), probe.name());
        durable.close();
        MessageProducer producer = session.createProducer(probe.topic(session));
        Message message = session.createTextMessage("short-lived");
        producer.send(message, DeliveryMode.PERSISTENT, 4, SHORT_MS);
        producer.send(session.createTextMessage("a"));
        Probe.waitUntilAfter(message.getJMSExpiration() + 20);
        durable = session.createSharedDurableConsumer(probe.topic(session), probe.name());
        Check.equal("the messages of the subscription", List.of("a"), Probe.drain(durable));
        durable.close();
        session.unsubscribe(probe.name());
    }

    @Rule(clause = "7.8",
            says = "The time-to-live runs from the send, also within a transaction.")
    void timeToLiveRunsFromTheSend(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(probe.queue(session));
        Message message = session.createTextMessage("short-lived");
        producer.send(message, DeliveryMode.PERSISTENT, 4, SHORT_MS);
        producer.send(session.createTextMessage("a"));
        Probe.waitUntilAfter(message.getJMSExpiration() + 20);
        session.commit();
        probe.left("a");
    }

    @Rule(clause = "7.8",
            says = "A message that expires after it was given back is not delivered again.")
    void rolledBackMessageMayExpire(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        Session sending = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Message message = sending.createTextMessage("short-lived");
        sending.createProducer(probe.queue(sending)).send(message, DeliveryMode.PERSISTENT, 4, 1_000);
        Probe.expect(consumer, "short-lived");
        Probe.waitUntilAfter(message.getJMSExpiration() + 20);
        session.rollback();
        Check.nothing(consumer, "it has expired");
        probe.left();
    }

    @Rule(clause = "7.8",
            says = "A browser should not show a message that has expired.")
    void browserShowsNoExpiredMessage(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Message message = session.createTextMessage("short-lived");
        producer.send(message, DeliveryMode.PERSISTENT, 4, SHORT_MS);
        producer.send(session.createTextMessage("a"));
        Probe.waitUntilAfter(message.getJMSExpiration() + 20);
        try (QueueBrowser browser = session.createBrowser(probe.queue(session))) {
            List<String> shown = Probe.browsed(browser);
            if (shown.equals(List.of("short-lived", "a"))) {
                throw new NotApplicable(NotApplicable.Kind.IGNORED, "the browser shows a message that has expired");
            }
            Check.equal("the messages shown", List.of("a"), shown);
        }
    }

    @Rule(clause = "3.4.13",
            says = "JMSDeliveryTime is the time of the send plus the delay, for sender and receiver.")
    void deliveryTimeIsComputedAtTheSend(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.setDeliveryDelay(DELAY_MS);
        Message message = session.createTextMessage("a");
        long before = System.currentTimeMillis();
        producer.send(message);
        long after = System.currentTimeMillis();
        long due = message.getJMSDeliveryTime();
        Check.that(due >= before + DELAY_MS && due <= after + DELAY_MS, "a delivery time " + DELAY_MS
                + " ms after the send", due - before + " ms after it");
        Message received = Probe.expect(session.createConsumer(probe.queue(session)), "a");
        Check.equal("JMSDeliveryTime", due, received.getJMSDeliveryTime());
    }

    @Rule(clause = "3.4.13",
            says = "Without a delay JMSDeliveryTime is the time of the send.")
    void withoutDelayTheDeliveryTimeIsThatOfTheSend(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createTextMessage("a");
        session.createProducer(probe.queue(session)).send(message);
        Message received = Probe.expect(session.createConsumer(probe.queue(session)), "a");
        Check.equal("JMSDeliveryTime", received.getJMSTimestamp(), received.getJMSDeliveryTime());
    }

    @Rule(clause = "7.9",
            says = "A message is not delivered before its delivery time; then it is, also to a receive that waits.")
    void delayedMessageIsNotEarly(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        producer.setDeliveryDelay(DELAY_MS);
        Message message = session.createTextMessage("later");
        producer.send(message);
        Message early = consumer.receiveNoWait();
        Message received = early == null ? Probe.next(consumer) : early;
        long before = message.getJMSDeliveryTime() - System.currentTimeMillis();
        Check.equal("the text", "later", Probe.text(received));
        Check.that(before <= 0, "no delivery before the delivery time", before + " ms early");
    }

    @Rule(clause = "6.2.9.2",
            says = "A message without a delay is delivered before one that was sent earlier with a delay.")
    void delayedMessageDoesNotHoldUpOthers(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.setDeliveryDelay(4 * DELAY_MS);
        producer.send(session.createTextMessage("later"));
        producer.setDeliveryDelay(0);
        producer.send(session.createTextMessage("at once"));
        Probe.expect(session.createConsumer(probe.queue(session)), "at once", "later");
    }

    @Rule(clause = "7.9",
            says = "Delayed messages arrive in the order of their delivery times.")
    void delayedMessagesComeInOrderOfTheirTimes(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Map<Long, String> due = new TreeMap<>();
        for (long delay : new long[] {300, 100, 200}) {
            producer.setDeliveryDelay(delay);
            Message message = session.createTextMessage("after " + delay);
            producer.send(message);
            due.put(message.getJMSDeliveryTime(), Probe.text(message));
        }
        // on a slow machine a later send may have made its message due later
        Probe.expect(session.createConsumer(probe.queue(session)), due.values().toArray(new String[0]));
    }

    @Rule(clause = "7.9",
            says = "A delayed message of a topic reaches the subscriptions that existed when it was sent, and no others.")
    void delayedMessageMeetsTheSubscribersOfItsSend(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer early = session.createConsumer(probe.topic(session));
        MessageProducer producer = session.createProducer(probe.topic(session));
        producer.setDeliveryDelay(DELAY_MS);
        producer.send(session.createTextMessage("later"));
        MessageConsumer late = session.createConsumer(probe.topic(session));
        Probe.expect(early, "later");
        Check.nothing(late, "it subscribed after the send");
    }

    @Rule(clause = "7.9",
            says = "The delay of a message sent in a transaction runs from the send, and it appears after the commit.")
    void delayWithinATransaction(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        Session reader = probe.session();
        MessageConsumer consumer = reader.createConsumer(probe.queue(reader));
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.setDeliveryDelay(DELAY_MS);
        Message message = session.createTextMessage("rolled back");
        producer.send(message);
        session.rollback();
        message = session.createTextMessage("committed");
        producer.send(message);
        Probe.waitUntilAfter(message.getJMSDeliveryTime() + 20);
        Check.nothing(consumer, "the transaction is not committed");
        session.commit();
        Probe.expect(consumer, "committed");
        Check.nothing(consumer, "the other was rolled back");
    }

    @Rule(clause = "4.1.6",
            says = "A browser shows no message before its delivery time.")
    void browserShowsNoDelayedMessage(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.send(session.createTextMessage("at once"));
        producer.setDeliveryDelay(DELAY_MS);
        Message later = session.createTextMessage("later");
        producer.send(later);
        Set<String> shown;
        try (QueueBrowser browser = session.createBrowser(probe.queue(session))) {
            shown = Set.copyOf(Probe.browsed(browser));
        }
        boolean isDue = System.currentTimeMillis() >= later.getJMSDeliveryTime();
        Check.that(isDue || shown.equals(Set.of("at once")), "the message without a delay alone", shown);
        long end = System.currentTimeMillis() + Probe.SOON_MS;
        while (shown.size() < 2 && System.currentTimeMillis() < end) {
            try (QueueBrowser browser = session.createBrowser(probe.queue(session))) {
                shown = Set.copyOf(Probe.browsed(browser));
            }
        }
        Check.equal("the messages shown later", Set.of("at once", "later"), shown);
        Check.that(System.currentTimeMillis() >= later.getJMSDeliveryTime(), "no message before its time", shown);
    }

    @Rule(clause = "7.8",
            says = "A message that expires before its delivery time is never delivered.")
    void delayedMessageMayExpireFirst(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.setDeliveryDelay(DELAY_MS);
        producer.setTimeToLive(SHORT_MS);
        producer.send(session.createTextMessage("never"));
        producer.setTimeToLive(0);
        producer.send(session.createTextMessage("later"));
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Probe.expect(consumer, "later");
        Check.nothing(consumer, "it has expired");
    }
}
