package jmsapi;

import jakarta.jms.DeliveryMode;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.HashSet;
import java.util.Set;

/** Header fields (3.4). */
final class HeaderTests {
    /** Send `message` to this test's queue, and return it as a consumer gets it. */
    static Message passed(Probe probe, Session session, Message message) throws Exception {
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.send(message);
        producer.close();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Message received = Probe.next(consumer);
        consumer.close();
        return received;
    }

    @Rule(clause = "3.4.1",
            says = "JMSDestination is that of the send, for sender and receiver, whatever it was set to before.")
    void destinationIsThatOfTheSend(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createMessage();
        message.setJMSDestination(session.createTopic("another"));
        Message received = passed(probe, session, message);
        Check.equal("JMSDestination of the sender", probe.queue(session), message.getJMSDestination());
        Check.equal("JMSDestination of the receiver", probe.queue(session), received.getJMSDestination());
    }

    @Rule(clause = "3.4.2",
            says = "JMSDeliveryMode is that of the send, for sender and receiver, whatever it was set to before.")
    void deliveryModeIsThatOfTheSend(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        for (int mode : new int[] {DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT}) {
            Message message = session.createMessage();
            message.setJMSDeliveryMode(3 - mode);
            producer.setDeliveryMode(mode);
            producer.send(message);
            Check.equal("JMSDeliveryMode of the sender", mode, message.getJMSDeliveryMode());
            Check.equal("JMSDeliveryMode of the receiver", mode, Probe.next(consumer).getJMSDeliveryMode());
        }
    }

    @Rule(clause = "3.4.3",
            says = "JMSMessageID is set by the send, begins with ID:, is unique, and arrives.")
    void messageIdIsSetByTheSend(Probe probe) throws Exception {
        Set<String> seen = new HashSet<>();
        for (int round = 0; round < 2; round++) {
            Session session = probe.session();
            MessageConsumer consumer = session.createConsumer(probe.queue(session));
            for (int count = 0; count < 5; count++) {
                MessageProducer producer = session.createProducer(probe.queue(session));
                Message message = session.createMessage();
                message.setJMSMessageID("ID:of-the-application");
                producer.send(message);
                String id = message.getJMSMessageID();
                Check.that(id != null && id.startsWith("ID:"), "an identifier that begins with ID:", id);
                Check.equal("JMSMessageID of the receiver", id, Probe.next(consumer).getJMSMessageID());
                seen.add(id);
            }
            consumer.close();
        }
        Check.equal("the number of different identifiers", 10, seen.size());
        Check.that(!seen.contains("ID:of-the-application"), "identifiers of the provider", seen);
    }

    @Rule(clause = "3.4.3",
            says = "With setDisableMessageID the identifier is null, or as usual if the provider ignores it.")
    void messageIdMayBeDisabled(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.setDisableMessageID(true);
        Message message = session.createMessage();
        message.setJMSMessageID("ID:of-the-application");
        producer.send(message);
        String id = message.getJMSMessageID();
        Check.that(id == null || id.startsWith("ID:") && !id.equals("ID:of-the-application"),
                "null or an identifier of the provider", id);
        Message received = Probe.next(session.createConsumer(probe.queue(session)));
        Check.equal("JMSMessageID of the receiver", id, received.getJMSMessageID());
    }

    @Rule(clause = "3.4.4",
            says = "JMSTimestamp is between the call of send and its return, and arrives.")
    void timestampIsThatOfTheSend(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Message message = session.createMessage();
        message.setJMSTimestamp(1);
        long before = System.currentTimeMillis();
        producer.send(message);
        long after = System.currentTimeMillis();
        long timestamp = message.getJMSTimestamp();
        Check.that(timestamp >= before && timestamp <= after, "a time between " + before + " and " + after, timestamp);
        Message received = Probe.next(session.createConsumer(probe.queue(session)));
        Check.equal("JMSTimestamp of the receiver", timestamp, received.getJMSTimestamp());
    }

    @Rule(clause = "3.4.4",
            says = "With setDisableMessageTimestamp the time is zero, or as usual if the provider ignores it.")
    void timestampMayBeDisabled(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.setDisableMessageTimestamp(true);
        Message message = session.createMessage();
        long before = System.currentTimeMillis();
        producer.send(message);
        long timestamp = message.getJMSTimestamp();
        Check.that(timestamp == 0 || timestamp >= before, "zero or the time of the send", timestamp);
        Message received = Probe.next(session.createConsumer(probe.queue(session)));
        Check.equal("JMSTimestamp of the receiver", timestamp, received.getJMSTimestamp());
    }

    @Rule(clause = "3.4.5",
            says = "JMSCorrelationID arrives as it was set: an identifier of a message, or any text.")
    void correlationIdArrives(Probe probe) throws Exception {
        Session session = probe.session();
        Message first = session.createMessage();
        passed(probe, session, first);
        String[] ids = {first.getJMSMessageID(), "order 4711", "", "größe 名前 🙂", "4711",
                "urn:uuid:12345678-1234-1234-1234-123456789abc", null};
        for (String id : ids) {
            Message message = session.createMessage();
            message.setJMSCorrelationID(id);
            Check.equal("JMSCorrelationID", id, passed(probe, session, message).getJMSCorrelationID());
        }
    }

    @Rule(clause = "3.4.5",
            says = "JMSCorrelationID may be bytes, if the provider supports them, which arrive as they are.")
    void correlationIdMayBeBytes(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createMessage();
        byte[] bytes = {0, -1, 127, 10};
        try {
            message.setJMSCorrelationIDAsBytes(bytes);
        } catch (UnsupportedOperationException unsupported) {
            throw new NotApplicable(NotApplicable.Kind.NOT_OFFERED, "the client has no correlation of bytes");
        }
        Message received = passed(probe, session, message);
        Check.equal("getJMSCorrelationIDAsBytes()", bytes, received.getJMSCorrelationIDAsBytes());
    }

    @Rule(clause = "3.4.7",
            says = "JMSRedelivered has no meaning for the send: a new message arrives without it.")
    void redeliveredIsNotSent(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createMessage();
        message.setJMSRedelivered(true);
        Message received = passed(probe, session, message);
        Check.equal("JMSRedelivered", false, received.getJMSRedelivered());
        Check.equal("JMSXDeliveryCount", 1, Probe.deliveryCount(received));
    }

    @Rule(clause = "3.4.8",
            says = "JMSType arrives as the application set it.")
    void typeArrives(Probe probe) throws Exception {
        Session session = probe.session();
        for (String type : new String[] {"order", "größe", "", null}) {
            Message message = session.createMessage();
            message.setJMSType(type);
            Check.equal("JMSType", type, passed(probe, session, message).getJMSType());
        }
    }

    @Rule(clause = "3.4.10",
            says = "JMSPriority is that of the send, for sender and receiver, each of the ten.")
    void priorityIsThatOfTheSend(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        for (int priority = 0; priority <= 9; priority++) {
            Message message = session.createMessage();
            message.setJMSPriority(9 - priority);
            producer.setPriority(priority);
            producer.send(message);
            Check.equal("JMSPriority of the sender", priority, message.getJMSPriority());
            Check.equal("JMSPriority of the receiver", priority, Probe.next(consumer).getJMSPriority());
        }
    }

    @Rule(clause = "3.10",
            says = "Header fields of a received message may be changed.")
    void headersOfAReceivedMessageMayBeChanged(Probe probe) throws Exception {
        Session session = probe.session();
        Message received = passed(probe, session, session.createMessage());
        received.setJMSType("changed");
        received.setJMSCorrelationID("changed");
        received.setJMSReplyTo(probe.queue(session));
        Check.equal("JMSType", "changed", received.getJMSType());
        Check.equal("JMSCorrelationID", "changed", received.getJMSCorrelationID());
        Check.equal("JMSReplyTo", probe.queue(session), received.getJMSReplyTo());
    }
}
