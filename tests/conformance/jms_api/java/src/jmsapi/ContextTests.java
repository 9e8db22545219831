package jmsapi;

import jakarta.jms.DeliveryMode;
import jakarta.jms.IllegalStateRuntimeException;
import jakarta.jms.InvalidClientIDRuntimeException;
import jakarta.jms.InvalidDestinationRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatRuntimeException;
import jakarta.jms.Queue;
import jakarta.jms.TextMessage;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** The simplified API: JMSContext, JMSProducer, JMSConsumer (6.1, 6.1.4, 7.5, 7.6, 7.10, 8.4, 10.3). */
final class ContextTests {
    private static Queue queue(Probe probe, JMSContext context) {
        return context.createQueue(probe.queueName());
    }

    private static Message next(JMSConsumer consumer) {
        Message message = consumer.receive(Probe.SOON_MS);
        if (message == null) {
            throw new Failed("a message", "none within " + Probe.SOON_MS + " ms");
        }
        return message;
    }

    private static void expect(JMSConsumer consumer, String... texts) throws JMSException {
        for (String text : texts) {
            Check.equal("the next text", text, Probe.text(next(consumer)));
        }
    }

    @Rule(clause = "6.1",
            says = "A context has the session mode that it was created with; AUTO_ACKNOWLEDGE without one.")
    void contextHasItsMode(Probe probe) throws Exception {
        for (int mode : new int[] {JMSContext.AUTO_ACKNOWLEDGE, JMSContext.CLIENT_ACKNOWLEDGE,
                JMSContext.DUPS_OK_ACKNOWLEDGE, JMSContext.SESSION_TRANSACTED}) {
            JMSContext context = probe.context(mode);
            Check.equal("getSessionMode()", mode, context.getSessionMode());
            Check.equal("getTransacted()", mode == JMSContext.SESSION_TRANSACTED, context.getTransacted());
            context.close();
        }
        JMSContext usual = probe.keep(Probe.factory().createContext());
        Check.equal("getSessionMode()", JMSContext.AUTO_ACKNOWLEDGE, usual.getSessionMode());
        Check.raises(JMSRuntimeException.class, "createContext(99)", () -> Probe.factory().createContext(99));
    }

    @Rule(clause = "6.1.4",
            says = "The connection of a context is started with its first consumer.")
    void firstConsumerStartsTheContext(Probe probe) throws Exception {
        probe.fill("a");
        JMSContext context = probe.context();
        Check.equal("getAutoStart()", true, context.getAutoStart());
        expect(context.createConsumer(queue(probe, context)), "a");
    }

    @Rule(clause = "6.1.4",
            says = "Each kind of consumer starts the connection of a context.")
    void everyConsumerStartsTheContext(Probe probe) throws Exception {
        for (int kind = 0; kind < 4; kind++) {
            JMSContext context = probe.context();
            context.setClientID(probe.name(String.valueOf(kind)));
            var topic = context.createTopic(probe.topicName());
            JMSConsumer consumer = kind == 0 ? context.createConsumer(topic)
                    : kind == 1 ? context.createDurableConsumer(topic, probe.name())
                    : kind == 2 ? context.createSharedConsumer(topic, probe.name())
                    : context.createSharedDurableConsumer(topic, probe.name());
            probe.publish("a");
            expect(consumer, "a");
            consumer.close();
            if (kind % 2 == 1) {
                context.unsubscribe(probe.name());
            }
            context.close();
        }
    }

    @Rule(clause = "8.4",
            says = "With setAutoStart(false) a context is started by start, not by its consumers.")
    void contextMayBeStartedByHand(Probe probe) throws Exception {
        probe.fill("a");
        JMSContext context = probe.context();
        context.setAutoStart(false);
        Check.equal("getAutoStart()", false, context.getAutoStart());
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        Check.equal("receive() before start()", null, consumer.receive(Probe.QUIET_MS));
        context.start();
        expect(consumer, "a");
        context.stop();
        probe.fill("b");
        Check.equal("receive() after stop()", null, consumer.receive(Probe.QUIET_MS));
        context.start();
        expect(consumer, "b");
    }

    @Rule(clause = "6.1",
            says = "A context that is created by another uses its connection, with a session of its own.")
    void contextMayCreateAnother(Probe probe) throws Exception {
        JMSContext first = probe.context();
        first.setClientID(probe.name());
        JMSContext second = first.createContext(JMSContext.SESSION_TRANSACTED);
        Check.equal("getClientID()", probe.name(), second.getClientID());
        Check.equal("getSessionMode()", JMSContext.SESSION_TRANSACTED, second.getSessionMode());
        Queue temporary = first.createTemporaryQueue();
        second.createProducer().send(temporary, "a");
        JMSConsumer consumer = first.createConsumer(temporary);
        Check.equal("receiveNoWait() before commit()", null, consumer.receiveNoWait());
        second.commit();
        expect(consumer, "a");
    }

    @Rule(clause = "6.1.8",
            says = "Closing a context closes its session; the connection is closed with the last context.")
    void lastContextClosesTheConnection(Probe probe) throws Exception {
        JMSContext first = probe.context();
        first.setClientID(probe.name());
        JMSContext second = probe.keep(first.createContext(JMSContext.AUTO_ACKNOWLEDGE));
        JMSConsumer consumer = second.createConsumer(queue(probe, second));
        first.close();
        second.createProducer().send(queue(probe, second), "a");
        expect(consumer, "a");
        JMSContext other = probe.context();
        Check.raises(InvalidClientIDRuntimeException.class, "setClientID() while the second context is open", () -> {
            other.setClientID(probe.name());
            other.start();
        });
        second.close();
        JMSContext again = probe.context();
        again.setClientID(probe.name());
        again.start();
    }

    @Rule(clause = "6.1.8",
            says = "A closed context cannot be used, also while another one keeps the connection open.",
            clientBreaksIt = "a context that had no session yet can be used after close()")
    void closedContextOfAnOpenConnectionCannotBeUsed(Probe probe) throws Exception {
        JMSContext first = probe.context();
        JMSContext second = probe.keep(first.createContext(JMSContext.AUTO_ACKNOWLEDGE));
        second.createProducer().send(queue(probe, second), "a");
        first.close();
        Check.raises(IllegalStateRuntimeException.class, "createTextMessage()", first::createTextMessage);
        Check.raises(IllegalStateRuntimeException.class, "createQueue()", () -> first.createQueue("a"));
    }

    @Rule(clause = "6.1.8",
            says = "Closing a closed context changes nothing: other contexts of its connection go on.",
            clientBreaksIt = "it counts each close of a context, and closes the connection when none seems left")
    void closeOfAContextMayBeRepeated(Probe probe) throws Exception {
        JMSContext first = probe.context();
        JMSContext second = probe.keep(first.createContext(JMSContext.AUTO_ACKNOWLEDGE));
        JMSConsumer consumer = second.createConsumer(queue(probe, second));
        first.close();
        first.close();
        second.createProducer().send(queue(probe, second), "a");
        expect(consumer, "a");
    }

    @Rule(clause = "6.1.8",
            says = "Use of a closed context, its consumers and producers is an IllegalStateRuntimeException.")
    void closedContextCannotBeUsed(Probe probe) throws Exception {
        JMSContext context = probe.context();
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        JMSProducer producer = context.createProducer();
        Queue queue = queue(probe, context);
        context.close();
        Check.raises(IllegalStateRuntimeException.class, "createQueue()", () -> context.createQueue("a"));
        Check.raises(IllegalStateRuntimeException.class, "createConsumer()", () -> context.createConsumer(queue));
        Check.raises(IllegalStateRuntimeException.class, "start()", context::start);
        Check.raises(IllegalStateRuntimeException.class, "recover()", context::recover);
        Check.raises(IllegalStateRuntimeException.class, "receive()", () -> consumer.receive(1));
        Check.raises(IllegalStateRuntimeException.class, "getMessageSelector()", consumer::getMessageSelector);
        Check.raises(IllegalStateRuntimeException.class, "send()", () -> producer.send(queue, "a"));
    }

    @Rule(clause = "6.2.10",
            says = "CLIENT_ACKNOWLEDGE: acknowledge of a context covers all that its session was delivered.")
    void contextAcknowledges(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        JMSContext context = probe.context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        expect(consumer, "a", "b");
        context.acknowledge();
        expect(consumer, "c");
        context.recover();
        Message again = next(consumer);
        Check.equal("the text after recover()", "c", Probe.text(again));
        Check.equal("JMSRedelivered", true, again.getJMSRedelivered());
        context.acknowledge();
        context.close();
        probe.left();
    }

    @Rule(clause = "6.2.7",
            says = "A transacted context commits and rolls back what it consumed and sent.")
    void contextCommitsAndRollsBack(Probe probe) throws Exception {
        probe.fill("request");
        JMSContext context = probe.context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        expect(consumer, "request");
        context.createProducer().send(context.createQueue(probe.queueName("answers")), "first answer");
        context.rollback();
        expect(consumer, "request");
        context.createProducer().send(context.createQueue(probe.queueName("answers")), "second answer");
        context.commit();
        context.close();
        probe.left();
        JMSContext reader = probe.context();
        JMSConsumer answers = reader.createConsumer(reader.createQueue(probe.queueName("answers")));
        expect(answers, "second answer");
        Check.equal("a further answer", null, answers.receiveNoWait());
    }

    @Rule(clause = "10.3",
            says = "Commit and rollback of a context that is not transacted are an IllegalStateRuntimeException.")
    void contextWithoutATransactionCannotCommit(Probe probe) throws Exception {
        JMSContext context = probe.context();
        Check.raises(IllegalStateRuntimeException.class, "commit()", context::commit);
        Check.raises(IllegalStateRuntimeException.class, "rollback()", context::rollback);
        JMSContext transacted = probe.context(JMSContext.SESSION_TRANSACTED);
        Check.raises(IllegalStateRuntimeException.class, "recover()", transacted::recover);
    }

    @Rule(clause = "7.2",
            says = "A JMSProducer makes a message of the right kind of each body.")
    void producerMakesMessagesOfBodies(Probe probe) throws Exception {
        JMSContext context = probe.context();
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        JMSProducer producer = context.createProducer();
        producer.send(queue(probe, context), "a");
        Check.equal("the body", "a", next(consumer).getBody(String.class));
        producer.send(queue(probe, context), Map.<String, Object>of("one", 1));
        Message map = next(consumer);
        Check.that(map instanceof MapMessage, "a MapMessage", map);
        Check.equal("a value of the map", 1, ((MapMessage) map).getInt("one"));
        producer.send(queue(probe, context), new byte[] {1, 2});
        Check.equal("the body", new byte[] {1, 2}, next(consumer).getBody(byte[].class));
        producer.send(queue(probe, context), new java.util.Date(0));
        Check.equal("the body", new java.util.Date(0), next(consumer).getBody(java.util.Date.class));
        producer.send(queue(probe, context), (String) null);
        Message empty = next(consumer);
        Check.that(empty instanceof TextMessage, "a TextMessage", empty);
        Check.equal("the body", null, empty.getBody(String.class));
    }

    @Rule(clause = "7.5",
            says = "Properties of a JMSProducer override those of the message, and stay until they are cleared.")
    void propertiesOfAProducerOverride(Probe probe) throws Exception {
        JMSContext context = probe.context();
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        JMSProducer producer = context.createProducer().setProperty("one", 1).setProperty("two", "2");
        Message message = context.createMessage();
        message.setIntProperty("one", 9);
        message.setIntProperty("three", 3);
        producer.send(queue(probe, context), message);
        Message received = next(consumer);
        Check.equal("a property of both", 1, received.getObjectProperty("one"));
        Check.equal("a property of the producer", "2", received.getStringProperty("two"));
        Check.equal("a property of the message", 3, received.getIntProperty("three"));
        Check.equal("getPropertyNames()", java.util.Set.of("one", "two"), producer.getPropertyNames());
        Check.equal("getIntProperty()", 1, producer.getIntProperty("one"));
        Check.equal("propertyExists()", true, producer.propertyExists("two"));
        producer.clearProperties();
        Check.equal("propertyExists() after clearProperties()", false, producer.propertyExists("two"));
        producer.send(queue(probe, context), "a");
        Check.equal("the property after clearProperties()", false, next(consumer).propertyExists("one"));
    }

    @Rule(clause = "7.5",
            says = "A JMSProducer takes properties of each type, and refuses other objects and empty names.")
    void producerTakesPropertiesOfEachType(Probe probe) throws Exception {
        JMSContext context = probe.context();
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        JMSProducer producer = context.createProducer();
        producer.setProperty("aBoolean", true).setProperty("aByte", (byte) 1).setProperty("aShort", (short) 2)
                .setProperty("anInt", 3).setProperty("aLong", 4L).setProperty("aFloat", 5f)
                .setProperty("aDouble", 6d).setProperty("aString", "7").setProperty("anObject", (Object) 8L);
        producer.send(queue(probe, context), "a");
        Message received = next(consumer);
        Object[] expected = {true, (byte) 1, (short) 2, 3, 4L, 5f, 6d, "7", 8L};
        String[] names = {"aBoolean", "aByte", "aShort", "anInt", "aLong", "aFloat", "aDouble", "aString", "anObject"};
        for (int place = 0; place < names.length; place++) {
            Check.equal(names[place], expected[place], received.getObjectProperty(names[place]));
        }
        Check.raises(MessageFormatRuntimeException.class, "setProperty() with a list",
                () -> producer.setProperty("wrong", List.of()));
        Check.raises(IllegalArgumentException.class, "setProperty() with an empty name",
                () -> producer.setProperty("", 1));
        Check.raises(MessageFormatRuntimeException.class, "getIntProperty() of a boolean",
                () -> producer.getIntProperty("aBoolean"));
    }

    @Rule(clause = "7.6",
            says = "Headers of a JMSProducer override those of the message.")
    void headersOfAProducerOverride(Probe probe) throws Exception {
        JMSContext context = probe.context();
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        Queue replies = context.createQueue("replies");
        JMSProducer producer = context.createProducer();
        producer.setJMSCorrelationID("c").setJMSType("t").setJMSReplyTo(replies);
        Message message = context.createMessage();
        message.setJMSCorrelationID("overridden");
        message.setJMSType("overridden");
        producer.send(queue(probe, context), message);
        producer.send(queue(probe, context), "a");
        for (int count = 0; count < 2; count++) {
            Message received = next(consumer);
            Check.equal("JMSCorrelationID", "c", received.getJMSCorrelationID());
            Check.equal("JMSType", "t", received.getJMSType());
            Check.equal("JMSReplyTo", replies, received.getJMSReplyTo());
        }
        Check.equal("getJMSType()", "t", producer.getJMSType());
        Check.equal("getJMSReplyTo()", replies, producer.getJMSReplyTo());
    }

    @Rule(clause = "7.10",
            says = "The setters of a JMSProducer return it, and its options hold for its messages.")
    void settersOfAProducerAreChained(Probe probe) throws Exception {
        JMSContext context = probe.context();
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        JMSProducer producer = context.createProducer();
        JMSProducer returned = producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT).setPriority(8)
                .setTimeToLive(60_000).setDisableMessageTimestamp(true).setDisableMessageID(false)
                .setDeliveryDelay(0).send(queue(probe, context), "a");
        Check.that(returned == producer, "the same producer", returned);
        Message received = next(consumer);
        Check.equal("JMSDeliveryMode", DeliveryMode.NON_PERSISTENT, received.getJMSDeliveryMode());
        Check.equal("JMSPriority", 8, received.getJMSPriority());
        Check.that(received.getJMSExpiration() > 0, "a time of expiration", received.getJMSExpiration());
        Check.equal("getPriority()", 8, producer.getPriority());
        Check.equal("getTimeToLive()", 60_000L, producer.getTimeToLive());
        Check.equal("getDeliveryMode()", DeliveryMode.NON_PERSISTENT, producer.getDeliveryMode());
        Check.raises(JMSRuntimeException.class, "setPriority(10)", () -> producer.setPriority(10));
        Check.raises(JMSRuntimeException.class, "setDeliveryMode(3)", () -> producer.setDeliveryMode(3));
    }

    @Rule(clause = "10.3",
            says = "In the simplified API no destination is an InvalidDestinationRuntimeException.")
    void noDestinationIsInvalidInAContext(Probe probe) throws Exception {
        JMSContext context = probe.context();
        JMSProducer producer = context.createProducer();
        Check.raises(InvalidDestinationRuntimeException.class, "send() to null", () -> producer.send(null, "a"));
        Check.raises(InvalidDestinationRuntimeException.class, "createConsumer(null)",
                () -> context.createConsumer(null));
        Check.raises(InvalidDestinationRuntimeException.class, "unsubscribe() of an unknown name",
                () -> context.unsubscribe(probe.name()));
        Check.raises(MessageFormatRuntimeException.class, "send() of no message",
                () -> producer.send(queue(probe, context), (Message) null));
    }

    @Rule(clause = "10.3",
            says = "In the simplified API a missing destination is an InvalidDestinationRuntimeException.")
    void missingDestinationIsInvalidInAContext(Probe probe) throws Exception {
        JMSContext context = probe.context();
        Queue missing = context.createQueue(Settings.missing());
        Check.raises(InvalidDestinationRuntimeException.class, "send()",
                () -> context.createProducer().send(missing, "a"));
        Check.raises(InvalidDestinationRuntimeException.class, "createConsumer()",
                () -> context.createConsumer(missing));
    }

    @Rule(clause = "6.1.2",
            says = "A context sets its client identifier before any other use only.")
    void clientIdOfAContextComesFirst(Probe probe) throws Exception {
        JMSContext context = probe.context();
        context.createProducer().send(queue(probe, context), "a");
        Check.raises(IllegalStateRuntimeException.class, "setClientID() after a send",
                () -> context.setClientID(probe.name()));
        JMSContext named = probe.context();
        named.setClientID(probe.name());
        Check.equal("getClientID()", probe.name(), named.getClientID());
        JMSContext other = probe.context();
        Check.raises(InvalidClientIDRuntimeException.class, "setClientID() of an identifier in use", () -> {
            other.setClientID(probe.name());
            other.start();
        });
    }

    @Rule(clause = "8.7",
            says = "A JMSConsumer may have a listener, and a context several of them.")
    void consumersOfAContextMayListen(Probe probe) throws Exception {
        JMSContext context = probe.context();
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        for (String each : new String[] {"first", "second"}) {
            JMSConsumer consumer = context.createConsumer(context.createQueue(probe.queueName(each)));
            consumer.setMessageListener(message -> probe.within(() -> heard.add(Probe.text(message))));
            JMSContext sending = probe.context();
            sending.createProducer().send(sending.createQueue(probe.queueName(each)), "to the " + each);
            Check.equal("the call", "to the " + each, Probe.heard(heard));
        }
    }

    @Rule(clause = "6.1.8",
            says = "A context is closed at the end of a statement try-with-resources.")
    void tryWithResourcesClosesTheContext(Probe probe) throws Exception {
        JMSContext context = probe.context(JMSContext.SESSION_TRANSACTED);
        try (context) {
            context.createProducer().send(queue(probe, context), "committed");
            context.commit();
            context.createProducer().send(queue(probe, context), "rolled back");
        }
        Check.raises(IllegalStateRuntimeException.class, "commit()", context::commit);
        probe.left("committed");
    }

    @Rule(clause = "6.1.6",
            says = "A context has the metadata of its connection.")
    void contextHasMetadata(Probe probe) throws Exception {
        JMSContext context = probe.context();
        Check.that(context.getMetaData().getJMSMajorVersion() >= 2, "version 2 or later",
                context.getMetaData().getJMSVersion());
        Check.equal("getExceptionListener()", null, context.getExceptionListener());
    }
}
