package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidClientIDRuntimeException;
import jakarta.jms.InvalidDestinationRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.JMSSecurityRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.ResourceAllocationRuntimeException;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.Topic;
import jakarta.jms.TransactionRolledBackRuntimeException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("The simplified interface: JMSContext, JMSProducer, JMSConsumer")
class ContextTest extends BrokerTest {
    private final List<JMSContext> contexts = new ArrayList<>();

    private JMSContext context(int mode) {
        JMSContext context = factory(URL).createContext(mode);
        contexts.add(context);
        return context;
    }

    private JMSContext context() {
        return context(JMSContext.AUTO_ACKNOWLEDGE);
    }

    private JMSContext strictContext(int mode) {
        JMSContext context = strictly().createContext(USER, PASSWORD, mode);
        contexts.add(context);
        return context;
    }

    @AfterEach
    void closeContexts() {
        contexts.forEach(JMSContext::close);
    }

    private static void receives(JMSConsumer consumer, String... texts) {
        for (String text : texts) {
            assertEquals(text, consumer.receiveBody(String.class, SOON));
        }
    }

    @Test
    @DisplayName("a producer's settings and properties come with each message")
    @Tag("PRD-05")
    @Tag("PRD-01")
    void settings() throws Exception {
        JMSContext context = context();
        // --8<-- [start:producer_settings]
        Queue queue = context.createQueue(name());
        TemporaryQueue replies = context.createTemporaryQueue();
        context.createProducer().setDeliveryMode(DeliveryMode.NON_PERSISTENT).setPriority(7).setTimeToLive(600_000)
            .setJMSCorrelationID("correlation").setJMSType("type").setJMSReplyTo(replies)
            .setProperty("number", 42L).setProperty("text", "x").send(queue, Map.of("key", "value"));
        Message message = context.createConsumer(queue).receive(SOON);
        // --8<-- [end:producer_settings]
        assertEquals("value", message.getBody(Map.class).get("key"));
        assertEquals(DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
        assertEquals(7, message.getJMSPriority());
        assertEquals(message.getJMSTimestamp() + 600_000, message.getJMSExpiration());
        assertEquals("correlation", message.getJMSCorrelationID());
        assertEquals("type", message.getJMSType());
        assertEquals(replies, message.getJMSReplyTo());
        assertEquals(42L, message.getLongProperty("number"));
        assertEquals("x", message.getStringProperty("text"));
    }

    @Test
    @DisplayName("a delivery delay")
    @Tag("DLY-01")
    void deliveryDelay() throws Exception {
        JMSContext context = context();
        Queue queue = context.createQueue(name());
        context.createProducer().setDeliveryDelay(200).send(queue, "later");
        Message message = context.createConsumer(queue).receive(SOON);
        assertTrue(System.currentTimeMillis() >= message.getJMSDeliveryTime());
    }

    @Test
    @DisplayName("a transacted context commits and rolls back")
    @Tag("RCV-06")
    void transacted() {
        JMSContext within = context(JMSContext.SESSION_TRANSACTED);
        Queue queue = within.createQueue(name());
        JMSConsumer other = context().createConsumer(queue);
        // --8<-- [start:transacted]
        within.createProducer().send(queue, "never");
        within.rollback();
        within.createProducer().send(queue, "a");
        assertNull(other.receiveNoWait());
        within.commit();
        receives(other, "a");
        // --8<-- [end:transacted]
    }

    @Test
    @DisplayName("contexts of one connection have transactions of their own")
    @Tag("RCV-06")
    void contextsOfOneConnection() {
        JMSContext one = context(JMSContext.SESSION_TRANSACTED);
        JMSContext other = one.createContext(JMSContext.SESSION_TRANSACTED);
        contexts.add(0, other);
        Queue queue = one.createQueue(name());
        one.createProducer().send(queue, "rolled back");
        other.createProducer().send(queue, "committed");
        one.rollback();
        other.commit();
        JMSConsumer consumer = one.createConsumer(queue);
        receives(consumer, "committed");
        assertNull(consumer.receiveNoWait());
        one.commit();
    }

    @Test
    @DisplayName("acknowledge() and recover() of a context that acknowledges by itself")
    @Tag("RCV-02")
    void clientAcknowledge() throws Exception {
        JMSContext context = context(JMSContext.CLIENT_ACKNOWLEDGE);
        Queue queue = context.createQueue(name());
        context.createProducer().send(queue, "a").send(queue, "b");
        JMSConsumer consumer = context.createConsumer(queue);
        receives(consumer, "a");
        context.recover();
        Message again = consumer.receive(SOON);
        assertTrue(again.getJMSRedelivered());
        assertEquals(2, deliveryCount(again));
        context.acknowledge();
        context.close();
        assertEquals(List.of("b"), left());
    }

    @Test
    @DisplayName("durable, shared and shared durable consumers, and their end")
    @Tag("SUB-02")
    @Tag("SUB-05")
    @Tag("SUB-06")
    @Tag("SUB-34")
    void subscriptions() throws Exception {
        JMSContext context = factory(URL).createContext();
        contexts.add(context);
        // --8<-- [start:subscribe]
        context.setClientID(name());
        Topic topic = context.createTopic(name());
        List<JMSConsumer> consumers = List.of(context.createDurableConsumer(topic, "durable"),
            context.createSharedConsumer(topic, "shared"), context.createSharedDurableConsumer(topic, "both"));
        // --8<-- [end:subscribe]
        context.createProducer().send(topic, "a");
        for (JMSConsumer consumer : consumers) {
            receives(consumer, "a");
            consumer.close();
        }
        context.createProducer().send(topic, "b");
        receives(context.createDurableConsumer(topic, "durable"), "b");
        assertNull(context.createSharedConsumer(topic, "shared").receiveNoWait());
        receives(context.createSharedDurableConsumer(topic, "both"), "b");
        assertThrows(JMSRuntimeException.class, () -> context.unsubscribe("durable"));
        context.close();
        JMSContext again = factory(URL).createContext();
        contexts.add(again);
        // --8<-- [start:unsubscribe]
        again.setClientID(name());
        again.unsubscribe("durable");
        again.unsubscribe("both");
        // --8<-- [end:unsubscribe]
        assertThrows(InvalidDestinationRuntimeException.class, () -> again.unsubscribe("both"));
    }

    @Test
    @DisplayName("a browser")
    @Tag("RCV-04")
    void browser() throws Exception {
        JMSContext context = context();
        Queue queue = context.createQueue(name());
        // --8<-- [start:browser]
        context.createProducer().setProperty("n", 1).send(queue, "a").setProperty("n", 2).send(queue, "b");
        try (QueueBrowser browser = context.createBrowser(queue, "n = 2")) {
            var seen = browser.getEnumeration();
            assertEquals("b", ((Message) seen.nextElement()).getBody(String.class));
            assertFalse(seen.hasMoreElements());
        }
        // --8<-- [end:browser]
    }

    @Test
    @DisplayName("a context that does not start by itself delivers once it is started")
    void autoStart() {
        JMSContext context = context();
        context.setAutoStart(false);
        Queue queue = context.createQueue(name());
        JMSConsumer consumer = context.createConsumer(queue);
        context.createProducer().send(queue, "a");
        assertNull(consumer.receiveNoWait());
        context.start();
        receives(consumer, "a");
    }

    @Test
    @DisplayName("exceptions by type: a client id in use, a wrong password, a full queue, a transaction that failed")
    @Tag("CON-03")
    @Tag("RCV-06")
    void exceptions() throws Exception {
        connectAs(name());
        JMSContext second = context();
        assertThrows(InvalidClientIDRuntimeException.class, () -> second.setClientID(name()));
        assertThrows(JMSSecurityRuntimeException.class, () -> strictly().createContext(USER, "wrong").start());
        JMSContext strict = strictContext(JMSContext.AUTO_ACKNOWLEDGE);
        Queue small = strict.createQueue("small." + name());
        for (int i = 0; i < 3; i++) {
            strict.createProducer().send(small, "" + i);
        }
        assertThrows(ResourceAllocationRuntimeException.class, () -> strict.createProducer().send(small, "no"));
        JMSContext within = strictContext(JMSContext.SESSION_TRANSACTED);
        within.createProducer().send(small, "no");
        assertThrows(TransactionRolledBackRuntimeException.class, within::commit);
        assertThrows(InvalidDestinationRuntimeException.class, () -> strict.createConsumer(strict.createQueue("closed." + name())));
    }
}
