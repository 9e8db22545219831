package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Sending to a queue and receiving from it")
class SendReceiveTest extends BrokerTest {
    private static List<String> numbers(int from, int to) {
        List<String> numbers = new ArrayList<>();
        for (int i = from; i < to; i++) {
            numbers.add(Integer.toString(i));
        }
        return numbers;
    }

    @Test
    @DisplayName("a message sent to a queue that did not exist is received from it")
    @Tag("DST-01")
    void oneMessage() throws Exception {
        Session session = session();
        MessageConsumer consumer = session.createConsumer(queue(session));
        send(session, queue(session), "hello");
        Message received = next(consumer);
        assertEquals("hello", received.getBody(String.class));
        assertEquals(queue(session), received.getJMSDestination());
        assertFalse(received.getJMSRedelivered());
        assertNull(consumer.receiveNoWait());
    }

    @Test
    @DisplayName("a message waits in the queue for a consumer that comes later, over another connection")
    @Tag("DST-01")
    @Tag("RCV-01")
    void laterConsumer() throws Exception {
        fill("early");
        Session session = session();
        Message received = next(session.createConsumer(queue(session)));
        assertEquals("early", received.getBody(String.class));
        assertEquals(1, deliveryCount(received));
        assertFalse(received.getJMSRedelivered());
    }

    @Test
    @DisplayName("5,000 non-persistent messages arrive in the order sent")
    @Tag("DST-14")
    void manyInOrder() throws Exception {
        Session sending = session();
        MessageProducer producer = sending.createProducer(queue(sending));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        Session receiving = session();
        MessageConsumer consumer = receiving.createConsumer(queue(receiving));
        List<String> expected = numbers(0, 5000);
        for (String text : expected) {
            producer.send(sending.createTextMessage(text));
        }
        assertEquals(expected, texts(consumer, expected.size()));
    }

    @Test
    @DisplayName("persistent and non-persistent messages keep one order and their delivery mode")
    @Tag("DST-14")
    void bothDeliveryModes() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        int[] modes = {DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT};
        for (int mode : modes) {
            producer.send(session.createTextMessage(Integer.toString(mode)), mode, Message.DEFAULT_PRIORITY, 0);
        }
        MessageConsumer consumer = session.createConsumer(queue(session));
        for (int mode : modes) {
            Message received = next(consumer);
            assertEquals(Integer.toString(mode), received.getBody(String.class));
            assertEquals(mode, received.getJMSDeliveryMode());
        }
    }

    @Test
    @DisplayName("a listener gets every message in order")
    void listener() throws Exception {
        Session receiving = session();
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        // --8<-- [start:listener]
        receiving.createConsumer(queue(receiving)).setMessageListener(message -> {
            try {
                heard.add(message.getBody(String.class));
            } catch (jakarta.jms.JMSException broken) {
                heard.add(broken.toString());
            }
        });
        // --8<-- [end:listener]
        List<String> expected = numbers(0, 100);
        fill(expected.toArray(String[]::new));
        for (String text : expected) {
            assertEquals(text, heard.poll(SOON, TimeUnit.MILLISECONDS));
        }
    }

    @Test
    @DisplayName("asynchronous sends complete in order, one completion each")
    void completions() throws Exception {
        Session session = session();
        MessageProducer producer = session.createProducer(queue(session));
        BlockingQueue<String> completed = new LinkedBlockingQueue<>();
        // --8<-- [start:completion]
        CompletionListener listener = new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                try {
                    completed.add(message.getBody(String.class));
                } catch (jakarta.jms.JMSException broken) {
                    completed.add(broken.toString());
                }
            }

            @Override
            public void onException(Message message, Exception failure) {
                completed.add(failure.toString());
            }
        };
        List<String> expected = numbers(0, 200);
        for (String text : expected) {
            producer.send(session.createTextMessage(text), listener);
        }
        // --8<-- [end:completion]
        for (String text : expected) {
            assertEquals(text, completed.poll(SOON, TimeUnit.MILLISECONDS));
        }
        assertEquals(expected, left());
    }

    @Test
    @DisplayName("the simplified interface sends and receives")
    @Tag("PRD-01")
    void simplified() throws Exception {
        try (JMSContext context = factory(URL).createContext()) {
            Queue queue = context.createQueue(name());
            JMSConsumer consumer = context.createConsumer(queue);
            context.createProducer().setProperty("colour", "red").send(queue, "hello");
            Message received = consumer.receive(SOON);
            assertEquals("hello", received.getBody(String.class));
            assertEquals("red", received.getStringProperty("colour"));
        }
    }

    @Test
    @DisplayName("settled sends and settled deliveries arrive once, in order")
    void presettled() throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, "jms.presettlePolicy.presettleAll=true");
        List<String> expected = numbers(0, 300);
        MessageConsumer consumer = session.createConsumer(queue(session));
        send(session, queue(session), expected.toArray(String[]::new));
        assertEquals(expected, texts(consumer, expected.size()));
        consumer.close();
        assertEquals(List.of(), left());
    }

    @Test
    @DisplayName("competing consumers with a prefetch of one take turns")
    @Tag("DST-01")
    void competing() throws Exception {
        Session first = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=1");
        Session second = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=1");
        MessageConsumer one = first.createConsumer(queue(first));
        MessageConsumer other = second.createConsumer(queue(second));
        // Two more than are read: either may have prefetched one when the other asks for its last.
        fill(numbers(10, 22).toArray(String[]::new));
        List<String> received = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            received.add(next(one).getText());
            received.add(next(other).getText());
        }
        first.close();
        second.close();
        received.addAll(left());
        received.sort(null);
        assertEquals(numbers(10, 22), received);
    }

    @Test
    @DisplayName("one session takes any number of producers and consumers")
    @Tag("MAP-10")
    void manyLinks() throws Exception {
        Session session = session();
        List<MessageProducer> producers = new ArrayList<>();
        List<MessageConsumer> consumers = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            Queue queue = session.createQueue(name() + "-" + i);
            producers.add(session.createProducer(queue));
            consumers.add(session.createConsumer(queue));
        }
        for (int i = 0; i < 200; i++) {
            producers.get(i).send(session.createTextMessage(Integer.toString(i)));
        }
        for (int i = 0; i < 200; i++) {
            assertEquals(Integer.toString(i), next(consumers.get(i)).getText());
        }
    }

    @Test
    @DisplayName("one session sends to a queue, a topic, a temporary queue and a temporary topic")
    @Tag("MAP-10")
    @Tag("DST-01")
    void linkPerDestinationType() throws Exception {
        Session session = session();
        jakarta.jms.Destination[] destinations = {
            queue(session), topic(session), session.createTemporaryQueue(), session.createTemporaryTopic(),
        };
        List<MessageConsumer> consumers = new ArrayList<>();
        for (jakarta.jms.Destination destination : destinations) {
            consumers.add(session.createConsumer(destination));
        }
        for (jakarta.jms.Destination destination : destinations) {
            send(session, destination, destination.toString());
        }
        for (int i = 0; i < destinations.length; i++) {
            Message received = next(consumers.get(i));
            assertEquals(destinations[i].toString(), received.getBody(String.class));
            assertEquals(destinations[i], received.getJMSDestination());
            assertNull(consumers.get(i).receiveNoWait());
        }
    }

    @Test
    @DisplayName("many sessions of one connection work side by side, and one that is closed harms no other")
    void manySessions() throws Exception {
        Connection connection = connect();
        CountDownLatch failed = new CountDownLatch(1);
        connection.setExceptionListener(failure -> failed.countDown());
        List<MessageConsumer> consumers = new ArrayList<>();
        List<Session> sessions = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            Session session = connection.createSession();
            sessions.add(session);
            consumers.add(session.createConsumer(session.createQueue(name() + "-" + i)));
        }
        for (int i = 0; i < 50; i += 2) {
            sessions.get(i).close();
        }
        for (int i = 1; i < 50; i += 2) {
            Session session = sessions.get(i);
            send(session, session.createQueue(name() + "-" + i), "still here");
            assertEquals("still here", next(consumers.get(i)).getText());
        }
        assertTrue(failed.getCount() == 1, "the connection stayed whole");
    }
}
