package jmsapi;

import jakarta.jms.DeliveryMode;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;

/** Producers and the synchronous send (7.1, 7.2, 7.4, 3.4.10, 3.9). */
final class ProducerTests {
    @Rule(clause = "7.4",
            says = "A new producer sends persistent messages of priority 4 without time-to-live and delay.")
    void producerHasDefaults(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Check.equal("getDeliveryMode()", DeliveryMode.PERSISTENT, producer.getDeliveryMode());
        Check.equal("getPriority()", 4, producer.getPriority());
        Check.equal("getTimeToLive()", 0L, producer.getTimeToLive());
        Check.equal("getDeliveryDelay()", 0L, producer.getDeliveryDelay());
        Check.equal("getDisableMessageID()", false, producer.getDisableMessageID());
        Check.equal("getDisableMessageTimestamp()", false, producer.getDisableMessageTimestamp());
        Check.equal("getDestination()", probe.queue(session), producer.getDestination());
    }

    @Rule(clause = "7.4",
            says = "Options of a producer hold for its messages, and options of a send for that message alone.")
    void sendOptionsOverrideTheProducers(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.setPriority(7);
        producer.setTimeToLive(60_000);
        producer.send(session.createTextMessage("a"));
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Message first = Probe.expect(consumer, "a");
        Check.equal("JMSDeliveryMode", DeliveryMode.NON_PERSISTENT, first.getJMSDeliveryMode());
        Check.equal("JMSPriority", 7, first.getJMSPriority());
        Check.that(first.getJMSExpiration() > 0, "a time of expiration", first.getJMSExpiration());
        producer.send(session.createTextMessage("b"), DeliveryMode.PERSISTENT, 2, 0);
        Message second = Probe.expect(consumer, "b");
        Check.equal("JMSDeliveryMode", DeliveryMode.PERSISTENT, second.getJMSDeliveryMode());
        Check.equal("JMSPriority", 2, second.getJMSPriority());
        Check.equal("JMSExpiration", 0L, second.getJMSExpiration());
        producer.send(session.createTextMessage("c"));
        Check.equal("JMSPriority of the next", 7, Probe.expect(consumer, "c").getJMSPriority());
    }

    @Rule(clause = "7.1",
            says = "A producer without a destination sends to the destination of each send, queues and topics.")
    void producerWithoutADestinationSendsAnywhere(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer subscriber = session.createConsumer(probe.topic(session));
        MessageProducer producer = session.createProducer(null);
        Check.equal("getDestination()", null, producer.getDestination());
        producer.send(probe.queue(session), session.createTextMessage("to the queue"));
        producer.send(probe.topic(session), session.createTextMessage("to the topic"));
        Queue other = session.createQueue(probe.queueName("other"));
        producer.send(other, session.createTextMessage("to the other"), DeliveryMode.NON_PERSISTENT, 4, 0);
        Probe.expect(session.createConsumer(probe.queue(session)), "to the queue");
        Probe.expect(subscriber, "to the topic");
        Message last = Probe.expect(session.createConsumer(other), "to the other");
        Check.equal("JMSDestination", other, last.getJMSDestination());
    }

    @Rule(clause = "7.1",
            says = "A producer without a destination needs one at each send.")
    void producerWithoutADestinationNeedsOne(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(null);
        Check.raises(UnsupportedOperationException.class, "send() without a destination",
                () -> producer.send(session.createTextMessage("a")));
        Check.raises(InvalidDestinationException.class, "send() to null",
                () -> producer.send(null, session.createTextMessage("a")));
    }

    @Rule(clause = "7.1",
            says = "A producer with a destination sends nowhere else.")
    void producerWithADestinationSendsNowhereElse(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Queue other = session.createQueue(probe.queueName("other"));
        Check.raises(UnsupportedOperationException.class, "send() to another destination",
                () -> producer.send(other, session.createTextMessage("a")));
        Check.nothing(session.createConsumer(other), "the send was refused");
        producer.send(session.createTextMessage("b"));
        probe.left("b");
    }

    @Rule(clause = "10.3",
            says = "Sending no message is a MessageFormatException, and does no harm.")
    void sendingNullIsAMessageFormatException(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Check.raises(MessageFormatException.class, "send(null)", () -> producer.send(null));
        producer.send(session.createTextMessage("a"));
        probe.left("a");
    }

    @Rule(clause = "7.4",
            says = "A producer refuses a priority outside 0 to 9 and a delivery mode that does not exist.")
    void producerRefusesWrongOptions(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Check.raises(JMSException.class, "setPriority(10)", () -> producer.setPriority(10));
        Check.raises(JMSException.class, "setPriority(-1)", () -> producer.setPriority(-1));
        Check.raises(JMSException.class, "setDeliveryMode(3)", () -> producer.setDeliveryMode(3));
        Check.raises(JMSException.class, "send() with priority 10",
                () -> producer.send(session.createTextMessage("a"), DeliveryMode.PERSISTENT, 10, 0));
        Check.equal("getPriority()", 4, producer.getPriority());
        probe.left();
    }

    @Rule(clause = "7.2",
            says = "A closed producer cannot send; what it sent before is there.")
    void closedProducerCannotSend(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        TextMessage message = session.createTextMessage("a");
        producer.send(message);
        producer.close();
        producer.close();
        Check.raises(IllegalStateException.class, "send()", () -> producer.send(message));
        Check.raises(IllegalStateException.class, "setPriority()", () -> producer.setPriority(1));
        Check.raises(IllegalStateException.class, "getDestination()", producer::getDestination);
        probe.left("a");
    }

    @Rule(clause = "3.9",
            says = "A message may be sent several times and changed between: each send has its own content.")
    void messageMayBeSentAgainAndChanged(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        TextMessage message = session.createTextMessage("a");
        producer.send(message);
        String first = message.getJMSMessageID();
        message.setText("b");
        message.setIntProperty("size", 7);
        producer.send(message);
        message.setText("never sent");
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Message received = Probe.expect(consumer, "a");
        Check.equal("JMSMessageID", first, received.getJMSMessageID());
        Check.equal("the property of the first", false, received.propertyExists("size"));
        received = Probe.expect(consumer, "b");
        Check.equal("the property of the second", 7, received.getIntProperty("size"));
        Check.that(!first.equals(received.getJMSMessageID()), "another identifier", first);
        Check.nothing(consumer, "two messages were sent");
    }

    @Rule(clause = "3.4.10",
            says = "Expedited messages (priority 5 to 9) come before normal ones; equal ones in their order.")
    void expeditedMessagesComeFirst(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        for (int priority : new int[] {0, 4, 9, 4, 9, 0}) {
            producer.setPriority(priority);
            producer.send(session.createTextMessage("p" + priority));
        }
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        List<String> texts = new ArrayList<>();
        for (int count = 0; count < 6; count++) {
            Message message = Probe.next(consumer);
            Check.equal("JMSPriority", Probe.text(message), "p" + message.getJMSPriority());
            texts.add(Probe.text(message));
        }
        if (texts.equals(List.of("p0", "p4", "p9", "p4", "p9", "p0"))) {
            throw new NotApplicable(NotApplicable.Kind.IGNORED, "the order of priority is ignored");
        }
        Check.equal("the order", List.of("p9", "p9"), texts.subList(0, 2));
    }

    @Rule(clause = "10.3",
            says = "A destination that does not exist is an InvalidDestinationException for producer and consumer.")
    void missingDestinationIsInvalid(Probe probe) throws Exception {
        Session session = probe.session();
        Queue missing = session.createQueue(Settings.missing());
        Check.raises(InvalidDestinationException.class, "createProducer()", () -> session.createProducer(missing));
        Check.raises(InvalidDestinationException.class, "createConsumer()", () -> session.createConsumer(missing));
        MessageProducer producer = session.createProducer(null);
        Check.raises(InvalidDestinationException.class, "send() without a producer for it",
                () -> producer.send(missing, session.createTextMessage("a")));
        producer.send(probe.queue(session), session.createTextMessage("b"));
        probe.left("b");
    }

    @Rule(clause = "10.3",
            says = "No destination is an InvalidDestinationException for consumers and browsers.")
    void noDestinationIsInvalid(Probe probe) throws Exception {
        Session session = probe.session();
        Check.raises(InvalidDestinationException.class, "createConsumer(null)", () -> session.createConsumer(null));
        Check.raises(InvalidDestinationException.class, "createBrowser(null)", () -> session.createBrowser(null));
        Check.raises(InvalidDestinationException.class, "createSharedConsumer(null)",
                () -> session.createSharedConsumer(null, probe.name()));
        Check.raises(InvalidDestinationException.class, "createSharedDurableConsumer(null)",
                () -> session.createSharedDurableConsumer(null, probe.name()));
    }

    @Rule(clause = "7.2",
            says = "A message that the destination does not take is reported to the sender by a JMSException.")
    void rejectedMessageIsReported(Probe probe) throws Exception {
        Session session = probe.session();
        Queue full = session.createQueue(Settings.rejecting());
        MessageConsumer consumer = session.createConsumer(full);
        Probe.drain(consumer);
        consumer.close();
        MessageProducer producer = session.createProducer(full);
        Check.raises(JMSException.class, "send() to a full queue", () -> {
            for (int sent = 0; sent < 1_000; sent++) {
                producer.send(session.createTextMessage("m" + sent));
            }
        });
        consumer = session.createConsumer(full);
        Probe.expect(consumer, "m0");
        Probe.drain(consumer);
        producer.send(session.createTextMessage("there is room again"));
        Probe.expect(consumer, "there is room again");
    }

    @Rule(clause = "7.2",
            says = "Messages of one megabyte arrive whole.")
    void largeMessageArrivesWhole(Probe probe) throws Exception {
        String text = "0123456789abcdef".repeat(65_536);
        Session session = probe.session();
        Probe.send(session, probe.queue(session), text);
        String received = Probe.nextText(session.createConsumer(probe.queue(session)));
        Check.equal("the number of characters", text.length(), received.length());
        Check.that(text.equals(received), "the text that was sent", "another");
    }
}
