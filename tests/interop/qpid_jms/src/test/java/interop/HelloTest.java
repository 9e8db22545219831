package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

// --8<-- [start:imports]
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Queue;
import jakarta.jms.Topic;
import org.apache.qpid.jms.JmsConnectionFactory;
// --8<-- [end:imports]
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("The programs of docs/start/java.md")
class HelloTest extends BrokerTest {
    // --8<-- [start:hello]
    static String hello(String url, String name) {
        ConnectionFactory factory = new JmsConnectionFactory(url);
        try (JMSContext context = factory.createContext()) {
            Queue queue = context.createQueue(name);
            context.createProducer().setProperty("country", "NZ").send(queue, "a book");
            return context.createConsumer(queue, "country = 'NZ'").receiveBody(String.class, 5000);
        }
    }
    // --8<-- [end:hello]

    // --8<-- [start:listen]
    static JMSContext listen(String url, String name, List<String> received, CountDownLatch missing) {
        JMSContext context = new JmsConnectionFactory(url).createContext(JMSContext.SESSION_TRANSACTED);
        context.createConsumer(context.createQueue(name)).setMessageListener(message -> {
            try {
                received.add(message.getBody(String.class));
                context.commit();
                missing.countDown();
            } catch (Exception failure) {
                context.rollback();
            }
        });
        return context;
    }
    // --8<-- [end:listen]

    // --8<-- [start:subscribe]
    static String subscribe(String url, String name, long timeoutMillis) {
        try (JMSContext context = new JmsConnectionFactory(url).createContext()) {
            context.setClientID("newspaper");
            Topic topic = context.createTopic(name);
            try (JMSConsumer archive = context.createDurableConsumer(topic, "archive")) {
                return archive.receiveBody(String.class, timeoutMillis);
            }
        }
    }
    // --8<-- [end:subscribe]

    @Test
    @DisplayName("a message is sent and received")
    @Tag("DST-01")
    @Tag("RCV-05")
    void helloWorld() {
        assertEquals("a book", hello(withLogin(URL), name()));
    }

    @Test
    @DisplayName("a listener commits each message")
    @Tag("RCV-06")
    void listener() throws Exception {
        List<String> received = new ArrayList<>();
        CountDownLatch missing = new CountDownLatch(2);
        try (JMSContext listening = listen(withLogin(URL), name(), received, missing)) {
            fill("a", "b");
            assertTrue(missing.await(SOON, TimeUnit.MILLISECONDS));
            assertEquals(List.of("a", "b"), received);
        }
    }

    @Test
    @DisplayName("a durable subscription receives what was sent while it had no consumer")
    @Tag("SUB-02")
    void durableSubscription() {
        subscribe(withLogin(URL), name(), 1);
        try (JMSContext context = factory(URL).createContext()) {
            context.createProducer().send(context.createTopic(name()), "it rains");
        }
        assertEquals("it rains", subscribe(withLogin(URL), name(), SOON));
    }
}
