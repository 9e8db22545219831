package interop.secure;

// --8<-- [start:program]
import jakarta.jms.JMSContext;
import org.apache.qpid.jms.JmsConnectionFactory;

public final class OrderSender {
    /** Send `text` to the broker at `amqps://HOST:PORT`; `folder` has the stores. */
    static void send(String broker, String folder, String text) {
        String url = broker + "?amqp.saslMechanisms=SCRAM-SHA-512"
            + "&transport.trustStoreLocation=" + folder + "/trusted.p12&transport.trustStorePassword=changeit"
            + "&transport.keyStoreLocation=" + folder + "/shop.p12&transport.keyStorePassword=changeit";
        try (JMSContext context = new JmsConnectionFactory(url).createContext("shop", "tulip")) {
            context.createProducer().send(context.createQueue("orders.eu"), text);
        }
    }

    public static void main(String[] arguments) {
        send("amqps://localhost:5671", ".", "a map");
    }
}
// --8<-- [end:program]
