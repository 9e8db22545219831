package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Browsing a queue")
class BrowserTest extends BrokerTest {
    private static List<String> browsed(QueueBrowser browser) throws JMSException {
        // --8<-- [start:enumerate]
        List<String> texts = new ArrayList<>();
        for (Enumeration<?> messages = browser.getEnumeration(); messages.hasMoreElements(); ) {
            texts.add(((TextMessage) messages.nextElement()).getText());
        }
        return texts;
        // --8<-- [end:enumerate]
    }

    private static String[] texts(int count) {
        String[] texts = new String[count];
        for (int i = 0; i < count; i++) {
            texts[i] = Integer.toString(i);
        }
        return texts;
    }

    @Test
    @DisplayName("every message is shown once, in order, and the enumeration ends")
    @Tag("RCV-04")
    void inOrder() throws Exception {
        Session session = session();
        sendMany(session, queue(session), texts(2500));
        assertEquals(List.of(texts(2500)), browsed(session.createBrowser(queue(session))));
    }

    @Test
    @DisplayName("the queue is the same afterwards, and nothing counts as redelivered")
    @Tag("RCV-04")
    @Tag("RCV-01")
    void unchanged() throws Exception {
        fill("a", "b", "c");
        Session session = session();
        for (int i = 0; i < 3; i++) {
            try (QueueBrowser browser = session.createBrowser(queue(session))) {
                assertEquals(List.of("a", "b", "c"), browsed(browser));
            }
        }
        MessageConsumer consumer = session.createConsumer(queue(session));
        for (String text : new String[] {"a", "b", "c"}) {
            Message message = next(consumer);
            assertEquals(text, message.getBody(String.class));
            assertFalse(message.getJMSRedelivered());
            assertEquals(1, deliveryCount(message));
        }
    }

    @Test
    @DisplayName("an empty queue has no more elements")
    @Tag("RCV-04")
    void empty() throws Exception {
        Session session = session();
        assertEquals(List.of(), browsed(session.createBrowser(queue(session))));
    }

    @Test
    @DisplayName("two browsers see everything, each for itself")
    @Tag("RCV-04")
    void twoBrowsers() throws Exception {
        fill("a", "b", "c");
        Session one = session();
        Session other = session();
        Enumeration<?> first = one.createBrowser(queue(one)).getEnumeration();
        Enumeration<?> second = other.createBrowser(queue(other)).getEnumeration();
        for (String text : new String[] {"a", "b", "c"}) {
            assertEquals(text, ((TextMessage) first.nextElement()).getText());
            assertEquals(text, ((TextMessage) second.nextElement()).getText());
        }
        assertFalse(first.hasMoreElements());
        assertFalse(second.hasMoreElements());
    }

    @Test
    @DisplayName("a browser with prefetch 0 asks for one element at a time")
    @Tag("RCV-04")
    void prefetchZero() throws Exception {
        fill("a", "b", "c");
        Session session = session(Session.AUTO_ACKNOWLEDGE, "jms.prefetchPolicy.all=0");
        assertEquals(List.of("a", "b", "c"), browsed(session.createBrowser(queue(session))));
    }

    @Test
    @DisplayName("a client-acknowledge session browses without acknowledging")
    @Tag("RCV-04")
    void clientAcknowledge() throws Exception {
        fill("a", "b");
        Session session = session(Session.CLIENT_ACKNOWLEDGE);
        assertEquals(List.of("a", "b"), browsed(session.createBrowser(queue(session))));
        session.close();
        assertEquals(List.of("a", "b"), left());
    }

    @Test
    @DisplayName("a browser that is closed half way through leaves the queue whole")
    @Tag("RCV-04")
    void halfWay() throws Exception {
        fill("a", "b", "c");
        Session session = session();
        try (QueueBrowser browser = session.createBrowser(queue(session))) {
            assertEquals("a", ((TextMessage) browser.getEnumeration().nextElement()).getText());
        }
        assertEquals(List.of("a", "b", "c"), left());
    }
}
