package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Durable subscriptions of one subscriber (JMS 2.0, 8.3)")
class DurableSubscriptionTest extends BrokerTest {
    private static final String NAME = "subscription";

    private Session publisher;
    private Connection client;
    private Session session;

    @BeforeEach
    void open() throws Exception {
        publisher = session();
        comeBack();
    }

    /** Connect as this test's client. */
    private void comeBack() throws JMSException {
        client = connectAs(name());
        session = client.createSession();
    }

    /** Leave, and connect again. */
    private void leaveAndComeBack() throws JMSException {
        client.close();
        comeBack();
    }

    private MessageConsumer subscribe() throws JMSException {
        // --8<-- [start:create_durable]
        return session.createDurableConsumer(topic(session), NAME);
        // --8<-- [end:create_durable]
    }

    private MessageConsumer subscribe(Topic topic, String selector, boolean noLocal) throws JMSException {
        return session.createDurableConsumer(topic, NAME, selector, noLocal);
    }

    private void publish(String... texts) throws JMSException {
        send(publisher, topic(publisher), texts);
    }

    private void publishColour(String colour) throws JMSException {
        TextMessage message = publisher.createTextMessage(colour);
        message.setStringProperty("colour", colour);
        MessageProducer producer = publisher.createProducer(topic(publisher));
        producer.send(message);
        producer.close();
    }

    @Test
    @DisplayName("it collects while its subscriber is away, in order, and nothing from before its time")
    @Tag("SUB-02")
    @Tag("SUB-30")
    void collects() throws Exception {
        publish("too early");
        MessageConsumer subscriber = subscribe();
        publish("a");
        assertEquals("a", next(subscriber).getText());
        subscriber.close();
        publish("b", "c");
        MessageConsumer again = subscribe();
        publish("d");
        assertEquals(List.of("b", "c", "d"), texts(again, 3));
        assertNull(again.receiveNoWait());
    }

    @Test
    @DisplayName("it goes on when its session is closed, and when its connection is")
    @Tag("SUB-02")
    @Tag("SUB-30")
    void outlivesConnection() throws Exception {
        // --8<-- [start:durable]
        subscribe();
        session.close();
        publish("a");
        session = client.createSession();
        assertEquals("a", next(subscribe()).getText());
        client.close();
        publish("b");
        comeBack();
        assertEquals("b", next(subscribe()).getText());
        // --8<-- [end:durable]
    }

    @Test
    @DisplayName("it goes on when its connection is lost, and what was not acknowledged comes again")
    @Tag("SUB-02")
    @Tag("RCV-08")
    void connectionLost() throws Exception {
        client.close();
        try (CutProxy proxy = new CutProxy(URL)) {
            Connection frail = keep(factory(proxy.url()).createConnection());
            CountDownLatch lost = new CountDownLatch(1);
            frail.setExceptionListener(failure -> lost.countDown());
            frail.setClientID(name());
            frail.start();
            Session cut = frail.createSession(Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer subscriber = cut.createDurableConsumer(topic(cut), NAME);
            publish("a");
            assertEquals("a", next(subscriber).getText());
            proxy.hangUp();
            lost.await();
        }
        publish("b");
        comeBack();
        MessageConsumer again = subscribe();
        comesAgain(again, "a");
        assertEquals("b", next(again).getText());
    }

    @Test
    @DisplayName("what was acknowledged is gone for good; what was not comes again, marked, in its place")
    @Tag("SUB-02")
    @Tag("RCV-02")
    void acknowledged() throws Exception {
        Session individual = client.createSession(INDIVIDUAL);
        MessageConsumer subscriber = individual.createDurableConsumer(topic(individual), NAME);
        publish("a", "b", "c", "d");
        next(subscriber);
        TextMessage second = next(subscriber);
        next(subscriber);
        second.acknowledge();
        leaveAndComeBack();
        MessageConsumer again = subscribe();
        comesAgain(again, "a");
        comesAgain(again, "c");
        assertEquals("d", next(again).getText());
        assertNull(again.receiveNoWait());
    }

    @Test
    @DisplayName("what was prefetched but not received comes again in order")
    @Tag("SUB-02")
    @Tag("RCV-08")
    void prefetched() throws Exception {
        MessageConsumer subscriber = subscribe();
        publish("a", "b", "c");
        assertEquals("a", next(subscriber).getText());
        subscriber.close();
        assertEquals(List.of("b", "c"), texts(subscribe(), 2));
    }

    @Test
    @DisplayName("a backlog of 2,500 messages comes in order")
    @Tag("SUB-02")
    void backlog() throws Exception {
        subscribe().close();
        List<String> texts = IntStream.range(0, 2500).mapToObj(Integer::toString).toList();
        sendMany(publisher, topic(publisher), texts.toArray(String[]::new));
        assertEquals(texts, texts(subscribe(), texts.size()));
    }

    @Test
    @DisplayName("two clients have subscriptions of the same name, each its own")
    @Tag("SUB-02")
    void twoClients() throws Exception {
        Session other = connectAs(name() + "-other").createSession();
        MessageConsumer one = subscribe();
        MessageConsumer two = other.createDurableConsumer(topic(other), NAME);
        one.close();
        publish("a");
        assertEquals("a", next(two).getText());
        assertEquals("a", next(subscribe()).getText());
    }

    @Test
    @DisplayName("one client has several subscriptions to one topic, and each gets everything")
    @Tag("SUB-02")
    void severalNames() throws Exception {
        MessageConsumer one = session.createDurableConsumer(topic(session), "one");
        MessageConsumer other = session.createDurableConsumer(topic(session), "other");
        publish("a");
        assertEquals("a", next(one).getText());
        assertEquals("a", next(other).getText());
    }

    @Test
    @DisplayName("it and a plain subscriber of its topic each get everything")
    @Tag("SUB-01")
    @Tag("SUB-02")
    void besidePlain() throws Exception {
        MessageConsumer plain = session.createConsumer(topic(session));
        MessageConsumer durable = subscribe();
        publish("a");
        assertEquals("a", next(plain).getText());
        assertEquals("a", next(durable).getText());
    }

    @Test
    @DisplayName("its name may be any text, and is no queue's")
    @Tag("SUB-02")
    void anyName() throws Exception {
        String odd = "Grüße, 世界 /*.# ? & " + name();
        MessageConsumer subscriber = session.createDurableConsumer(topic(session), odd);
        send(publisher, publisher.createQueue(odd), "for the queue");
        publish("for the topic");
        assertEquals("for the topic", next(subscriber).getText());
        assertNull(subscriber.receiveNoWait());
    }

    @Test
    @DisplayName("it has one consumer at a time, and the second does not disturb the first")
    @Tag("SUB-02")
    void inUse() throws Exception {
        MessageConsumer subscriber = subscribe();
        assertThrows(JMSException.class, this::subscribe);
        Session another = client.createSession();
        assertThrows(JMSException.class, () -> another.createDurableConsumer(topic(another), NAME));
        publish("a");
        assertEquals("a", next(subscriber).getText());
    }

    @Test
    @DisplayName("a selector counts while its subscriber is away, and is the same subscription when it comes back with it")
    @Tag("SUB-02")
    @Tag("SUB-21")
    @Tag("RCV-05")
    void selector() throws Exception {
        subscribe(topic(session), "colour = 'red'", false).close();
        publishColour("red");
        publishColour("blue");
        leaveAndComeBack();
        MessageConsumer again = subscribe(topic(session), "colour = 'red'", false);
        publishColour("blue");
        assertEquals("red", next(again).getText());
        assertNull(again.receiveNoWait());
    }

    @Test
    @DisplayName("another selector begins it anew: its backlog is dropped")
    @Tag("SUB-21")
    void changedSelector() throws Exception {
        subscribe(topic(session), "colour = 'red'", false).close();
        publishColour("red");
        MessageConsumer changed = subscribe(topic(session), "colour = 'blue' OR colour = 'red'", false);
        assertNull(changed.receiveNoWait());
        publishColour("blue");
        assertEquals("blue", next(changed).getText());
        changed.close();
        MessageConsumer without = subscribe();
        publish("none");
        assertEquals("none", next(without).getText());
    }

    @Test
    @DisplayName("another topic begins it anew: its backlog is dropped, and the old topic is no longer its own")
    @Tag("SUB-21")
    void changedTopic() throws Exception {
        subscribe().close();
        publish("old");
        Topic elsewhere = session.createTopic(name() + "-elsewhere");
        MessageConsumer changed = subscribe(elsewhere, null, false);
        publish("still old");
        assertNull(changed.receiveNoWait());
        send(publisher, elsewhere, "new");
        assertEquals("new", next(changed).getText());
    }

    @Test
    @DisplayName("a changed wish for no-local begins it anew")
    @Tag("SUB-21")
    void changedNoLocal() throws Exception {
        subscribe(topic(session), null, false).close();
        publish("old");
        MessageConsumer changed = subscribe(topic(session), null, true);
        assertNull(changed.receiveNoWait());
        publish("new");
        assertEquals("new", next(changed).getText());
    }

    @Test
    @DisplayName("no-local: nothing of its own client, not even from an earlier connection")
    @Tag("SUB-02")
    @Tag("RCV-05")
    void noLocal() throws Exception {
        subscribe(topic(session), null, true).close();
        send(session, topic(session), "own");
        publish("another's");
        leaveAndComeBack();
        send(session, topic(session), "own again");
        MessageConsumer again = subscribe(topic(session), null, true);
        assertEquals("another's", next(again).getText());
        assertNull(again.receiveNoWait());
    }

    @Test
    @DisplayName("while a shared subscription of its client has the name it is refused, in use or not; nothing is lost")
    @Tag("SUB-22")
    void takenByShared() throws Exception {
        session.createSharedDurableConsumer(topic(session), NAME).close();
        publish("kept");
        leaveAndComeBack();
        assertThrows(JMSException.class, this::subscribe);
        assertEquals("kept", next(session.createSharedDurableConsumer(topic(session), NAME)).getText());
        session.close();
        session = client.createSession();
        assertThrows(JMSException.class, this::subscribe);
    }

    @Test
    @DisplayName("priorities order its backlog")
    @Tag("SUB-02")
    @Tag("RCV-03")
    void priorities() throws Exception {
        subscribe().close();
        MessageProducer producer = publisher.createProducer(topic(publisher));
        for (int priority : new int[] {1, 9, 4, 9}) {
            producer.send(publisher.createTextMessage("" + priority), DeliveryMode.PERSISTENT, priority, 0);
        }
        assertEquals(List.of("9", "9", "4", "1"), texts(subscribe(), 4));
    }

    @Test
    @DisplayName("a delayed message is for who was subscribed when it was sent, though it falls due while nobody is there")
    @Tag("DLY-03")
    @Tag("SUB-02")
    void delayed() throws Exception {
        subscribe().close();
        // --8<-- [start:delivery_delay]
        MessageProducer producer = publisher.createProducer(topic(publisher));
        producer.setDeliveryDelay(100);
        TextMessage later = publisher.createTextMessage("later");
        producer.send(later);
        // --8<-- [end:delivery_delay]
        Session other = connectAs(name() + "-other").createSession();
        MessageConsumer newcomer = other.createDurableConsumer(topic(other), NAME);
        waitUntilAfter(later.getJMSDeliveryTime());
        TextMessage came = next(subscribe());
        assertEquals("later", came.getText());
        assertFalse(came.getJMSRedelivered());
        assertNull(newcomer.receiveNoWait());
    }

    @Test
    @DisplayName("a temporary topic has none, and the attempt leaves nothing behind")
    @Tag("SUB-02")
    @Tag("TMP-01")
    void temporaryTopic() throws Exception {
        Topic temporary = session.createTemporaryTopic();
        assertThrows(JMSException.class, () -> session.createDurableConsumer(temporary, NAME));
        assertThrows(JMSException.class, () -> session.createSharedDurableConsumer(temporary, NAME));
        assertThrows(InvalidDestinationException.class, () -> session.unsubscribe(NAME));
    }

    @Test
    @DisplayName("a message that its subscriber gives up goes to the dead letter queue, and is not another's")
    @Tag("SUB-02")
    @Tag("RCV-02")
    void rejected() throws Exception {
        Session individual = client.createSession(INDIVIDUAL);
        MessageConsumer subscriber = individual.createDurableConsumer(topic(individual), NAME);
        MessageConsumer other = session.createConsumer(topic(session));
        publish("a", "b");
        TextMessage first = next(subscriber);
        first.setIntProperty("JMS_AMQP_ACK_TYPE", 2);
        first.acknowledge();
        assertEquals("a", deadLetter(first.getJMSMessageID()).getText());
        assertEquals(List.of("a", "b"), texts(other, 2));
        next(subscriber).acknowledge();
        assertNull(subscriber.receiveNoWait());
    }
}
