package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NoSuchElementException;

/** Queues, selectors of their consumers, and browsers (4.1.2, 4.1.6, 4.1.8). */
final class QueueTests {
    /** Send messages with texts and the property `size` of the same number. */
    static void sendSizes(Probe probe, int... sizes) throws JMSException {
        try (Connection connection = probe.stopped(); Session session = connection.createSession()) {
            MessageProducer producer = session.createProducer(probe.queue(session));
            for (int size : sizes) {
                Message message = session.createTextMessage("size " + size);
                message.setIntProperty("size", size);
                producer.send(message);
            }
        }
    }

    @Rule(clause = "4.1.8",
            says = "A queue holds messages while nobody consumes from it.")
    void queueHoldsMessages(Probe probe) throws Exception {
        probe.fill("a");
        probe.fill("b", "c");
        probe.left("a", "b", "c");
    }

    @Rule(clause = "4.1.2",
            says = "Each message of a queue is delivered to one of its consumers only.")
    void messageGoesToOneConsumer(Probe probe) throws Exception {
        Session first = probe.session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=1");
        Session second = probe.session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=1");
        MessageConsumer[] consumers =
                {first.createConsumer(probe.queue(first)), second.createConsumer(probe.queue(second))};
        List<String> sent = new ArrayList<>();
        for (int place = 0; place < 40; place++) {
            sent.add(String.format("m%02d", place));
        }
        probe.fill(sent.toArray(new String[0]));
        List<String> received = new ArrayList<>();
        for (int idle = 0; received.size() < 40 && idle < 50;) {
            int before = received.size();
            for (MessageConsumer consumer : consumers) {
                Message message = consumer.receive(20);
                if (message != null) {
                    received.add(Probe.text(message));
                }
            }
            idle = received.size() == before ? idle + 1 : 0;
        }
        Collections.sort(received);
        Check.equal("the messages that the two consumers got", sent, received);
        probe.left();
    }

    @Rule(clause = "4.1.2",
            says = "A consumer with a selector gets the messages that match; the others stay in the queue, in order.")
    void unselectedMessagesStay(Probe probe) throws Exception {
        sendSizes(probe, 1, 5, 2, 6, 3);
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session), "size > 4");
        Probe.expect(consumer, "size 5", "size 6");
        Check.nothing(consumer, "no other matches");
        consumer.close();
        probe.left("size 1", "size 2", "size 3");
    }

    @Rule(clause = "4.1.2",
            says = "Consumers with different selectors each get their messages, in order.")
    void consumersWithDifferentSelectorsShareAQueue(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer small = session.createConsumer(probe.queue(session), "size <= 3");
        MessageConsumer large = session.createConsumer(probe.queue(session), "size > 3");
        sendSizes(probe, 4, 1, 2, 5, 3, 6);
        Probe.expect(large, "size 4", "size 5", "size 6");
        Probe.expect(small, "size 1", "size 2", "size 3");
        probe.left();
    }

    @Rule(clause = "3.8.1",
            says = "Messages that were rolled back are selected again by the selector of the next consumer.")
    void selectorAppliesToRedeliveredMessages(Probe probe) throws Exception {
        sendSizes(probe, 1, 5);
        Session session = probe.session(Session.SESSION_TRANSACTED);
        MessageConsumer any = session.createConsumer(probe.queue(session));
        Probe.expect(any, "size 1", "size 5");
        any.close();
        session.rollback();
        MessageConsumer large = session.createConsumer(probe.queue(session), "size > 4");
        Probe.expectAgain(large, "size 5");
        Check.nothing(large, "no other matches");
    }

    @Rule(clause = "4.1.6",
            says = "A browser shows all messages of a queue in their order and removes none.")
    void browserRemovesNothing(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        Session session = probe.session();
        QueueBrowser browser = session.createBrowser(probe.queue(session));
        Check.equal("the messages shown", List.of("a", "b", "c"), Probe.browsed(browser));
        Check.equal("the messages shown again", List.of("a", "b", "c"), Probe.browsed(browser));
        browser.close();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Message first = Probe.expect(consumer, "a");
        Check.equal("JMSRedelivered", false, first.getJMSRedelivered());
        Check.equal("JMSXDeliveryCount", 1, Probe.deliveryCount(first));
        Probe.expect(consumer, "b", "c");
    }

    @Rule(clause = "4.1.6",
            says = "A browser with a selector shows the messages that match, and returns its selector and its queue.")
    void browserMaySelect(Probe probe) throws Exception {
        sendSizes(probe, 1, 5, 2, 6);
        Session session = probe.session();
        QueueBrowser browser = session.createBrowser(probe.queue(session), "size > 4");
        Check.equal("getMessageSelector()", "size > 4", browser.getMessageSelector());
        Check.equal("getQueue()", probe.queue(session), browser.getQueue());
        Check.equal("the messages shown", List.of("size 5", "size 6"), Probe.browsed(browser));
        Check.raises(InvalidSelectorException.class, "createBrowser() with a selector of wrong syntax",
                () -> session.createBrowser(probe.queue(session), "size >"));
    }

    @Rule(clause = "4.1.6",
            says = "A browser of an empty queue shows nothing, and its enumeration ends.")
    void browserOfAnEmptyQueue(Probe probe) throws Exception {
        Session session = probe.session();
        QueueBrowser browser = session.createBrowser(probe.queue(session));
        var messages = browser.getEnumeration();
        Check.equal("hasMoreElements()", false, messages.hasMoreElements());
        Check.raises(NoSuchElementException.class, "nextElement()", messages::nextElement);
        probe.fill("a");
        Check.equal("the messages shown later", List.of("a"), Probe.browsed(browser));
    }

    @Rule(clause = "4.1.6",
            says = "A browser within a transaction removes nothing, and belongs to no transaction.")
    void browserWithinATransaction(Probe probe) throws Exception {
        probe.fill("a", "b");
        for (boolean commits : new boolean[] {true, false}) {
            Session session = probe.session(Session.SESSION_TRANSACTED);
            QueueBrowser browser = session.createBrowser(probe.queue(session));
            Check.equal("the messages shown", List.of("a", "b"), Probe.browsed(browser));
            if (commits) {
                session.commit();
            } else {
                session.rollback();
            }
            session.close();
        }
        probe.left("a", "b");
    }

    @Rule(clause = "4.1.6",
            says = "A closed browser cannot be used.")
    void closedBrowserCannotBeUsed(Probe probe) throws Exception {
        Session session = probe.session();
        QueueBrowser browser = session.createBrowser(probe.queue(session));
        browser.close();
        browser.close();
        Check.raises(IllegalStateException.class, "getEnumeration()", browser::getEnumeration);
    }
}
