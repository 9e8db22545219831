package jmsapi;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSProducer;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatRuntimeException;
import jakarta.jms.Queue;
import java.io.Serializable;
import java.util.Date;
import java.util.Map;

/** Receiving bodies in place of messages (8.6). */
final class BodyReceiveTests {
    private static Queue queue(Probe probe, JMSContext context) {
        return context.createQueue(probe.queueName());
    }

    @Rule(clause = "8.6",
            says = "ReceiveBody returns the body of text, map, bytes and object messages as their classes.")
    void bodyIsReceivedAsItsClass(Probe probe) throws Exception {
        JMSContext context = probe.context();
        JMSProducer producer = context.createProducer();
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        producer.send(queue(probe, context), "a");
        Check.equal("the text", "a", consumer.receiveBody(String.class));
        producer.send(queue(probe, context), Map.<String, Object>of("size", 7));
        Check.equal("the map", Map.of("size", 7), consumer.receiveBody(Map.class, Probe.SOON_MS));
        producer.send(queue(probe, context), new byte[] {1, 2, 3});
        Check.equal("the bytes", new byte[] {1, 2, 3}, consumer.receiveBody(byte[].class, Probe.SOON_MS));
        Date date = new Date(86_400_000);
        producer.send(queue(probe, context), date);
        Check.equal("the object", date, consumer.receiveBody(Date.class, Probe.SOON_MS));
        Check.equal("receiveBodyNoWait() of an empty queue", null, consumer.receiveBodyNoWait(String.class));
        Check.equal("receiveBody() of an empty queue", null, consumer.receiveBody(String.class, 50));
    }

    @Rule(clause = "8.6",
            says = "ReceiveBody takes a superclass or an interface of the body's class.")
    void bodyIsReceivedAsASuperclass(Probe probe) throws Exception {
        JMSContext context = probe.context();
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        JMSProducer producer = context.createProducer();
        for (Class<?> kind : new Class<?>[] {Object.class, CharSequence.class, Serializable.class}) {
            producer.send(queue(probe, context), "a");
            Check.equal("the text as " + kind.getSimpleName(), "a", consumer.receiveBody(kind, Probe.SOON_MS));
        }
        producer.send(queue(probe, context), Integer.valueOf(7));
        Check.equal("an object as Number", 7, consumer.receiveBody(Number.class, Probe.SOON_MS));
    }

    @Rule(clause = "8.6",
            says = "ReceiveBody refuses another class than the body's, and a StreamMessage.")
    void bodyOfAnotherClassIsRefused(Probe probe) throws Exception {
        JMSContext context = probe.context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        JMSProducer producer = context.createProducer();
        producer.send(queue(probe, context), "a");
        producer.send(queue(probe, context), context.createStreamMessage());
        for (Class<?> kind : new Class<?>[] {Map.class, Object.class}) {
            Check.raises(MessageFormatRuntimeException.class, "receiveBody() as " + kind.getSimpleName(),
                    () -> consumer.receiveBody(kind, Probe.SOON_MS));
        }
    }

    @Rule(clause = "8.6",
            says = "ReceiveBody refuses a message without a body.",
            clientBreaksIt = "it returns null, as getBody() of such a message does")
    void missingBodyIsRefused(Probe probe) throws Exception {
        JMSContext context = probe.context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        JMSProducer producer = context.createProducer();
        producer.send(queue(probe, context), context.createMessage());
        producer.send(queue(probe, context), context.createTextMessage());
        for (Class<?> kind : new Class<?>[] {Object.class, String.class}) {
            Check.raises(MessageFormatRuntimeException.class, "receiveBody() as " + kind.getSimpleName(),
                    () -> consumer.receiveBody(kind, Probe.SOON_MS));
        }
    }

    @Rule(clause = "8.6",
            says = "Automatic modes: a body that is refused comes again before other messages, unmarked.")
    void refusedBodyComesAgainInAutomaticModes(Probe probe) throws Exception {
        for (int mode : new int[] {JMSContext.AUTO_ACKNOWLEDGE, JMSContext.DUPS_OK_ACKNOWLEDGE}) {
            JMSContext context = probe.context(mode);
            JMSConsumer consumer = context.createConsumer(queue(probe, context));
            JMSProducer producer = context.createProducer();
            producer.send(queue(probe, context), "a");
            producer.send(queue(probe, context), "b");
            Check.raises(MessageFormatRuntimeException.class, "receiveBody(Map)",
                    () -> consumer.receiveBody(Map.class, Probe.SOON_MS));
            Message message = consumer.receive(Probe.SOON_MS);
            Check.equal("the next text", "a", Probe.text(message));
            Check.equal("JMSRedelivered", false, message.getJMSRedelivered());
            Check.equal("JMSXDeliveryCount", 1, Probe.deliveryCount(message));
            Check.equal("the text after it", "b", consumer.receiveBody(String.class, Probe.SOON_MS));
            context.close();
        }
        probe.left();
    }

    @Rule(clause = "8.6",
            says = "CLIENT_ACKNOWLEDGE: a body that is refused counts as delivered; recover brings it back, marked.")
    void refusedBodyCountsAsDeliveredToAClient(Probe probe) throws Exception {
        JMSContext context = probe.context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        context.createProducer().send(queue(probe, context), "a").send(queue(probe, context), "b");
        Check.raises(MessageFormatRuntimeException.class, "receiveBody(Map)",
                () -> consumer.receiveBody(Map.class, Probe.SOON_MS));
        Check.equal("the next text", "b", consumer.receiveBody(String.class, Probe.SOON_MS));
        context.recover();
        Message again = consumer.receive(Probe.SOON_MS);
        Check.equal("the text after recover()", "a", Probe.text(again));
        Check.equal("JMSRedelivered", true, again.getJMSRedelivered());
        Check.equal("the text after it", "b", consumer.receiveBody(String.class, Probe.SOON_MS));
        context.acknowledge();
        context.close();
        probe.left();
    }

    @Rule(clause = "8.6",
            says = "Transacted: a body that is refused belongs to the transaction; rollback brings it back, marked.")
    void refusedBodyBelongsToTheTransaction(Probe probe) throws Exception {
        JMSContext context = probe.context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer consumer = context.createConsumer(queue(probe, context));
        context.createProducer().send(queue(probe, context), "a").send(queue(probe, context), "b");
        context.commit();
        Check.raises(MessageFormatRuntimeException.class, "receiveBody(Map)",
                () -> consumer.receiveBody(Map.class, Probe.SOON_MS));
        context.rollback();
        Message again = consumer.receive(Probe.SOON_MS);
        Check.equal("the text after rollback()", "a", Probe.text(again));
        Check.equal("JMSRedelivered", true, again.getJMSRedelivered());
        context.commit();
        Check.raises(MessageFormatRuntimeException.class, "receiveBody(Map)",
                () -> consumer.receiveBody(Map.class, Probe.SOON_MS));
        context.commit();
        context.close();
        probe.left();
    }
}
