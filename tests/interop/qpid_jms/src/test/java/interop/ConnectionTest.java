package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import jakarta.jms.Connection;
import jakarta.jms.Session;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

@DisplayName("Opening a connection and keeping it alive")
class ConnectionTest extends BrokerTest {
    @Test
    @DisplayName("a connection that was never used closes")
    void unused() throws Exception {
        factory(URL).createConnection().close();
        Connection started = factory(URL).createConnection();
        started.start();
        started.close();
    }

    @Test
    @DisplayName("the broker sends heartbeats: a client that wants one every second stays connected")
    void heartbeats() throws Exception {
        survivesIdleness(keep(factory(URL, "amqp.idleTimeout=2000").createConnection()));
    }

    @Test
    @DisplayName("a client without an idle timeout works")
    void noIdleTimeout() throws Exception {
        works(connect("amqp.idleTimeout=0"));
    }

    @Test
    @DisplayName("a client without a SASL layer is let in where everybody is")
    void withoutSasl() throws Exception {
        works(connect("amqp.saslLayer=false"));
    }

    @Test
    @DisplayName("a client that names a virtual host or none works")
    void virtualHost() throws Exception {
        works(connect("amqp.vhost=somewhere"));
        works(connect("amqp.vhost="));
    }

    @Test
    @DisplayName("frames no larger than the client takes, and none larger than it said")
    void smallFrames() throws Exception {
        Session session = session(Session.AUTO_ACKNOWLEDGE, "amqp.maxFrameSize=1024");
        String text = "0123456789".repeat(10_000);
        send(session, queue(session), text, "small", text);
        assertEquals(java.util.List.of(text, "small", text), texts(session.createConsumer(queue(session)), 3));
    }

    @Test
    @DisplayName("a hundred connections come and go")
    void comeAndGo() throws Exception {
        for (int i = 0; i < 100; i++) {
            Connection connection = factory(URL).createConnection();
            connection.createSession();
            connection.close();
        }
        works(connect());
    }
}
