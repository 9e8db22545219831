package interop.restart;

import static org.junit.jupiter.api.Assertions.assertTrue;

import interop.RestoredListener;
import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.qpid.jms.JmsConnection;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.Test;

/** What a client does while another broker of a group takes over: test_qpid_jms_failover.py. */
class TakeoverPhase {
    private static final int AFTERWARDS = 10;
    private static final long PAUSE_MS = 10;
    private static final long SOON_MS = 5_000;

    @Test
    void sendsUntilItsConnectionIsRestored() throws Exception {
        CountDownLatch restored = new CountDownLatch(1);
        try (Connection connection = new JmsConnectionFactory(System.getProperty("broker.url")).createConnection()) {
            ((JmsConnection) connection).addConnectionListener(new RestoredListener(restored));
            connection.start();
            Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
            MessageProducer producer = session.createProducer(session.createQueue("takeover"));
            int sent = 0;
            for (int left = AFTERWARDS; left > 0; left -= restored.getCount() == 0 ? 1 : 0) {
                producer.send(session.createTextMessage(Integer.toString(sent++)));
                Thread.sleep(PAUSE_MS);
            }
            Set<String> expected = IntStream.range(0, sent).mapToObj(Integer::toString).collect(Collectors.toSet());
            assertTrue(received(session).containsAll(expected), "each of " + sent + " messages is there");
        }
    }

    private static Set<String> received(Session session) throws Exception {
        Set<String> found = new HashSet<>();
        MessageConsumer consumer = session.createConsumer(session.createQueue("takeover"));
        Message last = session.createTextMessage("last");
        session.createProducer(session.createQueue("takeover")).send(last);
        for (Message each = consumer.receive(SOON_MS); each != null; each = consumer.receive(SOON_MS)) {
            String text = each.getBody(String.class);
            if (text.equals("last")) {
                break;
            }
            found.add(text);
        }
        return found;
    }
}
