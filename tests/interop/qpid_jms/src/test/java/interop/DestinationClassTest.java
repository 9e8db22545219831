package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("The six classes of destinations (RFC012), as names that JMS clients give")
class DestinationClassTest extends BrokerTest {
    private Session session;

    @BeforeEach
    void open() throws Exception {
        session = session();
    }

    private Queue queueOf(String beginning) throws JMSException {
        return session.createQueue(beginning + name());
    }

    private Topic topicOf(String beginning) throws JMSException {
        return session.createTopic(beginning + name());
    }

    @Test
    @DisplayName("queues: each class is a queue of its own, for both orders of its words, and so is the plain name")
    @Tag("DST-10")
    void queues() throws Exception {
        String[] classes = {"", "/queue/durable/", "/queue/transient/", "/queue/tmp/"};
        for (String beginning : classes) {
            send(session, queueOf(beginning), "for " + beginning);
        }
        for (String beginning : classes) {
            String[] words = beginning.split("/");
            Queue asked = words.length < 3 ? queueOf(beginning) : queueOf("/" + words[2] + "/" + words[1] + "/");
            assertEquals(List.of("for " + beginning), drain(session.createConsumer(asked)));
        }
    }

    @Test
    @DisplayName("topics: each class is a topic of its own, for both orders of its words, and so is the plain name")
    @Tag("DST-10")
    void topics() throws Exception {
        String[] classes = {"", "/topic/durable/", "/topic/transient/", "/topic/tmp/"};
        MessageConsumer[] subscribers = new MessageConsumer[classes.length];
        for (int i = 0; i < classes.length; i++) {
            subscribers[i] = session.createConsumer(topicOf(classes[i]));
        }
        for (String beginning : classes) {
            String[] words = beginning.split("/");
            Destination asked = words.length < 3 ? topicOf(beginning) : topicOf("/" + words[2] + "/" + words[1] + "/");
            send(session, asked, "for " + beginning);
        }
        for (int i = 0; i < classes.length; i++) {
            assertEquals(List.of("for " + classes[i]), drain(subscribers[i]));
        }
    }

    @Test
    @DisplayName("durable and transient queues keep messages for other connections, and delivery modes as they are")
    @Tag("DST-11")
    @Tag("DST-12")
    void keep() throws Exception {
        for (String beginning : new String[] {"/queue/durable/", "/queue/transient/"}) {
            Connection sender = connect();
            MessageProducer producer = sender.createSession().createProducer(queueOf(beginning));
            producer.send(session.createTextMessage("a"), DeliveryMode.NON_PERSISTENT, 4, 0);
            producer.send(session.createTextMessage("b"), DeliveryMode.PERSISTENT, 4, 0);
            sender.close();
            MessageConsumer consumer = session.createConsumer(queueOf(beginning));
            assertEquals(DeliveryMode.NON_PERSISTENT, next(consumer).getJMSDeliveryMode());
            assertEquals(DeliveryMode.PERSISTENT, next(consumer).getJMSDeliveryMode());
        }
    }

    @Test
    @DisplayName("a tmp queue is its maker's: others send to it and may not consume; it ends with the connection that made it")
    @Tag("DST-13")
    @Tag("TMP-04")
    void tmp() throws Exception {
        Connection maker = connect();
        Session own = maker.createSession();
        Queue queue = queueOf("/queue/tmp/");
        MessageConsumer consumer = own.createConsumer(queue);
        send(session, queue, "for its maker");
        assertEquals("for its maker", next(consumer).getText());
        assertThrows(JMSException.class, () -> session.createConsumer(queue));
        assertThrows(JMSException.class, () -> session.createBrowser(queue).getEnumeration());
        send(session, queue, "gone with it");
        maker.close();
        assertNull(session.createConsumer(queue).receiveNoWait());
    }

    @Test
    @DisplayName("a tmp topic is its maker's")
    @Tag("DST-13")
    @Tag("TMP-04")
    void tmpTopic() throws Exception {
        Session own = session();
        Topic topic = topicOf("/topic/tmp/");
        MessageConsumer subscriber = own.createConsumer(topic);
        send(session, topic, "for its maker");
        assertEquals("for its maker", next(subscriber).getText());
        assertThrows(JMSException.class, () -> session.createConsumer(topic));
        assertThrows(JMSException.class, () -> session.createSharedDurableConsumer(topic, name()));
    }

    @Test
    @DisplayName("named subscriptions to a durable topic, and to a transient one, outlive their connection")
    @Tag("DST-11")
    @Tag("DST-12")
    @Tag("SUB-02")
    void namedSubscriptions() throws Exception {
        for (String beginning : new String[] {"/topic/durable/", "/topic/transient/"}) {
            Topic topic = topicOf(beginning);
            Connection client = connectAs(name());
            client.createSession().createDurableConsumer(topic, beginning);
            client.close();
            send(session, topic, "a");
            Connection again = connectAs(name());
            assertEquals("a", next(again.createSession().createDurableConsumer(topic, beginning)).getText());
            again.close();
        }
    }

    @Test
    @DisplayName("transactions over all classes of queues")
    @Tag("DST-10")
    @Tag("RCV-06")
    void transaction() throws Exception {
        Session within = session(Session.SESSION_TRANSACTED);
        MessageProducer anonymous = within.createProducer(null);
        String[] classes = {"/queue/durable/", "/queue/transient/"};
        for (String text : new String[] {"never", "a"}) {
            for (String beginning : classes) {
                anonymous.send(queueOf(beginning), within.createTextMessage(text));
            }
            if (text.equals("never")) {
                within.rollback();
            } else {
                within.commit();
            }
        }
        for (String beginning : classes) {
            assertEquals(List.of("a"), drain(session.createConsumer(queueOf(beginning))));
        }
    }

    @Test
    @DisplayName("the wrong kind for a class is refused, and the session goes on")
    @Tag("DST-10")
    void wrongKind() throws Exception {
        Topic wrong = session.createTopic("/queue/durable/" + name());
        assertThrows(JMSException.class, () -> session.createConsumer(wrong));
        assertThrows(JMSException.class, () -> session.createProducer(session.createQueue("/topic/durable/" + name())));
        send(session, queue(session), "goes on");
        assertEquals("goes on", next(session.createConsumer(queue(session))).getText());
    }

    @Test
    @DisplayName("a plain subscriber of a transient topic that loses its connection comes back, and has missed nothing")
    @Tag("DST-12")
    void grace() throws Exception {
        Topic topic = topicOf("/topic/transient/");
        try (CutProxy proxy = new CutProxy(URL)) {
            Connection frail = keep(factory("failover:(" + proxy.url() + ")", "failover.reconnectDelay=5",
                "jms.clientID=" + name()).createConnection());
            frail.start();
            MessageConsumer subscriber = frail.createSession().createConsumer(topic);
            send(session, topic, "a");
            assertEquals("a", next(subscriber).getText());
            proxy.cut();
            send(session, topic, "b");
            // "a" may come again: its acknowledgement may have been lost with the socket.
            var message = next(subscriber);
            assertEquals("b", message.getText().equals("a") ? next(subscriber).getText() : message.getText());
        }
    }
}
