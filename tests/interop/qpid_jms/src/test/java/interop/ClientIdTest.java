package interop;

import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.Connection;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.InvalidClientIDRuntimeException;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Client ids")
class ClientIdTest extends BrokerTest {
    private Connection named(String clientId) throws JMSException {
        Connection connection = keep(factory(URL).createConnection());
        connection.setClientID(clientId);
        connection.start();
        return connection;
    }

    /** Connect as `clientId` as soon as the broker has noticed that its holder is gone. */
    private Connection namedOnceFree(String clientId) throws JMSException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(SOON);
        while (true) {
            try {
                return named(clientId);
            } catch (InvalidClientIDException stillTaken) {
                if (System.nanoTime() > deadline) {
                    throw stillTaken;
                }
            }
        }
    }

    @Test
    @DisplayName("an id in use is refused with InvalidClientIDException, and its holder is not disturbed")
    @Tag("CON-01")
    @Tag("CON-02")
    @Tag("CON-03")
    void inUse() throws Exception {
        Connection holder = named(name());
        for (int i = 0; i < 3; i++) {
            assertThrows(InvalidClientIDException.class, () -> named(name()));
        }
        works(holder);
    }

    @Test
    @DisplayName("an id in use is refused when it stands in the URI, and in the simplified interface")
    @Tag("CON-02")
    @Tag("CON-03")
    void inUseByUri() throws Exception {
        Connection holder = named(name());
        assertThrows(InvalidClientIDException.class, () -> connect("jms.clientID=" + name()));
        try (JMSContext context = factory(URL).createContext()) {
            assertThrows(InvalidClientIDRuntimeException.class, () -> context.setClientID(name()));
        }
        works(holder);
    }

    @Test
    @DisplayName("an id is free again once its holder has closed")
    @Tag("CON-04")
    void freeAfterClose() throws Exception {
        for (int i = 0; i < 10; i++) {
            Connection holder = named(name());
            works(holder);
            holder.close();
        }
    }

    @Test
    @DisplayName("an id is free again once its holder's socket is gone")
    @Tag("CON-04")
    void freeAfterLoss() throws Exception {
        try (CutProxy proxy = new CutProxy(URL)) {
            Connection holder = keep(factory(proxy.url()).createConnection());
            CountDownLatch lost = new CountDownLatch(1);
            holder.setExceptionListener(failure -> lost.countDown());
            holder.setClientID(name());
            holder.start();
            proxy.cut();
            lost.await();
            works(namedOnceFree(name()));
        }
    }

    @Test
    @DisplayName("different ids, and connections without one, live side by side")
    @Tag("CON-01")
    @Tag("CON-02")
    void different() throws Exception {
        Connection one = named(name() + "-1");
        Connection other = named(name() + "-2");
        Connection nameless = connect();
        works(one);
        works(other);
        works(nameless);
    }
}
