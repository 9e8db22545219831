package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Sessions: their modes, destinations, messages and order (6.2 to 6.2.4, 6.2.9, 3.12). */
final class SessionTests {
    @Rule(clause = "6.2",
            says = "Each way to create a session gives it the acknowledge mode that was asked for.")
    void sessionHasTheModeThatWasAskedFor(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        Check.equal("createSession()", Session.AUTO_ACKNOWLEDGE, connection.createSession().getAcknowledgeMode());
        for (int mode : new int[] {Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE}) {
            Check.equal("createSession(mode)", mode, connection.createSession(mode).getAcknowledgeMode());
            Session session = connection.createSession(false, mode);
            Check.equal("createSession(false, mode)", mode, session.getAcknowledgeMode());
            Check.equal("getTransacted()", false, session.getTransacted());
            session.close();
        }
        Session transacted = connection.createSession(Session.SESSION_TRANSACTED);
        Check.equal("createSession(SESSION_TRANSACTED)", true, transacted.getTransacted());
        Check.equal("its mode", Session.SESSION_TRANSACTED, transacted.getAcknowledgeMode());
    }

    @Rule(clause = "6.2",
            says = "A transacted session has the mode SESSION_TRANSACTED, whatever mode was given beside.")
    void modeOfATransactedSessionIsIgnored(Probe probe) throws Exception {
        Session session = probe.stopped().createSession(true, Session.CLIENT_ACKNOWLEDGE);
        Check.equal("getTransacted()", true, session.getTransacted());
        Check.equal("getAcknowledgeMode()", Session.SESSION_TRANSACTED, session.getAcknowledgeMode());
    }

    @Rule(clause = "6.2",
            says = "A session cannot be created with a mode that does not exist.")
    void unknownModeIsRefused(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        Check.raises(JMSException.class, "createSession(99)", () -> connection.createSession(99));
        Check.raises(JMSException.class, "createSession(false, -1)", () -> connection.createSession(false, -1));
    }

    @Rule(clause = "6.2.3",
            says = "A destination that is made of a name has that name.")
    void destinationHasTheNameItWasMadeOf(Probe probe) throws Exception {
        Session session = probe.stopped().createSession();
        Queue queue = session.createQueue(probe.name());
        Topic topic = session.createTopic(probe.name());
        Check.equal("getQueueName()", probe.name(), queue.getQueueName());
        Check.equal("getTopicName()", probe.name(), topic.getTopicName());
        Check.equal("another object of that name", queue, session.createQueue(probe.name()));
    }

    @Rule(clause = "6.2.4",
            says = "A message may be sent by another session, and another connection, than the one that made it.")
    void messageMayBeSentByAnotherSession(Probe probe) throws Exception {
        TextMessage message = probe.session().createTextMessage("a");
        message.setStringProperty("colour", "red");
        Session session = probe.session();
        session.createProducer(probe.queue(session)).send(message);
        Message received = Probe.expect(session.createConsumer(probe.queue(session)), "a");
        Check.equal("the property", "red", received.getStringProperty("colour"));
    }

    @Rule(clause = "3.9",
            says = "A received message may be sent on as it is.")
    void receivedMessageMayBeSentOn(Probe probe) throws Exception {
        probe.fill("a");
        Session session = probe.session();
        Message message = Probe.expect(session.createConsumer(probe.queue(session)), "a");
        String first = message.getJMSMessageID();
        Queue next = session.createQueue(probe.queueName("next"));
        session.createProducer(next).send(message);
        Message again = Probe.expect(session.createConsumer(next), "a");
        Check.that(!first.equals(again.getJMSMessageID()), "an identifier of its own", again.getJMSMessageID());
        Check.equal("JMSDestination", next, again.getJMSDestination());
        Check.equal("JMSXDeliveryCount", 1, Probe.deliveryCount(again));
    }

    /** Return a TextMessage of no provider: it remembers what is set, and returns it. */
    private static TextMessage foreign(String text, Map<String, Object> properties, Map<String, Object> set) {
        return (TextMessage) Proxy.newProxyInstance(TextMessage.class.getClassLoader(),
                new Class<?>[] {TextMessage.class}, (self, method, arguments) -> {
                    String called = method.getName();
                    if (called.equals("getText")) {
                        return text;
                    }
                    if (called.equals("getPropertyNames")) {
                        return Collections.enumeration(properties.keySet());
                    }
                    if (called.equals("getObjectProperty")) {
                        return properties.get((String) arguments[0]);
                    }
                    if (called.startsWith("setJMS")) {
                        set.put(called.substring(3), arguments[0]);
                        return null;
                    }
                    if (called.equals("hashCode")) {
                        return System.identityHashCode(self);
                    }
                    if (called.equals("getJMSDeliveryMode") || called.equals("getJMSPriority")) {
                        return called.endsWith("Mode") ? 2 : 4;
                    }
                    Class<?> kind = method.getReturnType();
                    return kind == boolean.class ? (Object) false : kind == int.class ? (Object) 0
                            : kind == long.class ? (Object) 0L : null;
                });
    }

    @Rule(clause = "3.12",
            says = "A message of another implementation is sent with its body and properties, and its headers are set.")
    void messageOfAnotherImplementationIsSent(Probe probe) throws Exception {
        Map<String, Object> set = Collections.synchronizedMap(new java.util.HashMap<>());
        TextMessage foreign = foreign("a", Map.of("colour", "red", "size", 7), set);
        Session session = probe.session();
        session.createProducer(probe.queue(session)).send(foreign);
        Message received = Probe.expect(session.createConsumer(probe.queue(session)), "a");
        Check.equal("a property of type String", "red", received.getStringProperty("colour"));
        Check.equal("a property of type int", 7, received.getObjectProperty("size"));
        Check.equal("the identifier set on the sender's object", received.getJMSMessageID(), set.get("JMSMessageID"));
        Check.equal("the destination set there", probe.queue(session), set.get("JMSDestination"));
    }

    @Rule(clause = "6.2.9.1",
            says = "Messages that a session sends to a destination arrive in the order in which they were sent.")
    void messagesArriveInTheirOrder(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        MessageProducer producer = session.createProducer(probe.queue(session));
        List<String> sent = new ArrayList<>();
        for (int place = 0; place < 300; place++) {
            sent.add("m" + place);
            producer.send(session.createTextMessage("m" + place));
        }
        List<String> received = new ArrayList<>();
        for (int place = 0; place < 300; place++) {
            received.add(Probe.nextText(consumer));
        }
        Check.equal("the order", sent, received);
    }

    @Rule(clause = "6.2.9.2",
            says = "Within a delivery mode the order of sends is kept, whatever is sent between in the other mode.")
    void orderIsKeptWithinADeliveryMode(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        for (int place = 0; place < 60; place++) {
            producer.setDeliveryMode(place % 3 == 0 ? 1 : 2);
            producer.send(session.createTextMessage(String.format("%02d", place)));
        }
        List<String> persistent = new ArrayList<>();
        List<String> others = new ArrayList<>();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        for (int place = 0; place < 60; place++) {
            Message message = Probe.next(consumer);
            (message.getJMSDeliveryMode() == 2 ? persistent : others).add(Probe.text(message));
        }
        for (List<String> received : List.of(persistent, others)) {
            List<String> ordered = new ArrayList<>(received);
            Collections.sort(ordered);
            Check.equal("the order", ordered, received);
        }
        Check.equal("the number of persistent messages", 40, persistent.size());
    }

    @Rule(clause = "6.2.9.1",
            says = "Messages that a consumer did not receive before it was closed come to the next one in their order.")
    void orderOutlivesAConsumer(Probe probe) throws Exception {
        probe.fill("a", "b", "c", "d", "e", "f");
        Session session = probe.session();
        for (String[] part : new String[][] {{"a", "b"}, {"c"}, {"d", "e", "f"}}) {
            MessageConsumer consumer = session.createConsumer(probe.queue(session));
            Probe.expect(consumer, part);
            consumer.close();
        }
        probe.left();
    }
}
