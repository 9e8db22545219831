package interop;

import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.net.URI;
import java.util.concurrent.CountDownLatch;
import org.apache.qpid.jms.JmsConnectionListener;
import org.apache.qpid.jms.message.JmsInboundMessageDispatch;

/** Counts `restored` down when a connection is there again. */
public record RestoredListener(CountDownLatch restored) implements JmsConnectionListener {
    @Override
    public void onConnectionRestored(URI remote) {
        restored.countDown();
    }

    @Override
    public void onConnectionEstablished(URI remote) { }

    @Override
    public void onConnectionFailure(Throwable failure) { }

    @Override
    public void onConnectionInterrupted(URI remote) { }

    @Override
    public void onInboundMessage(JmsInboundMessageDispatch message) { }

    @Override
    public void onSessionClosed(Session session, Throwable cause) { }

    @Override
    public void onConsumerClosed(MessageConsumer consumer, Throwable cause) { }

    @Override
    public void onProducerClosed(MessageProducer producer, Throwable cause) { }
}
