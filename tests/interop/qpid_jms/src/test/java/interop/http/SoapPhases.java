package interop.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import java.nio.charset.StandardCharsets;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.Test;

/** A service of SOAP over JMS, which clients call over HTTP: test_qpid_jms_http.py. */
class SoapPhases {
    private static final long SOON_MS = 15_000;
    private static final String FAULT = "fault";

    @Test
    void serve() throws JMSException {
        try (Connection connection = new JmsConnectionFactory(System.getProperty("broker.url")).createConnection()) {
            connection.start();
            Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(session.createQueue("soap.service"));
            for (int left = Integer.getInteger("requests"); left > 0; left--) {
                Message request = consumer.receive(SOON_MS);
                assertNotNull(request, "no request has come");
                answer(session, request);
            }
        }
    }

    private void answer(Session session, Message request) throws JMSException {
        assertEquals(DeliveryMode.PERSISTENT, request.getJMSDeliveryMode());
        assertEquals("jms:queue:soap.service", request.getStringProperty("SOAPJMS_requestURI"));
        assertEquals("1.0", request.getStringProperty("SOAPJMS_bindingVersion"));
        assertEquals("urn:buy", request.getStringProperty("SOAPJMS_soapAction"));
        assertEquals("shop", request.getStringProperty("SOAPJMS_targetService"));
        assertEquals("kind", request.getJMSType());
        assertEquals(7, request.getJMSPriority());
        assertEquals(5, request.getIntProperty("number"));
        assertInstanceOf(TemporaryQueue.class, request.getJMSReplyTo());
        String envelope = text(request);
        assertTrue(envelope.contains(":Envelope"), envelope);
        boolean isFault = envelope.contains(FAULT);
        Message reply = reply(session, request, envelope.replace("buy", isFault ? "Fault" : "bought"));
        reply.setJMSCorrelationID(request.getJMSMessageID());
        reply.setStringProperty("SOAPJMS_bindingVersion", "1.0");
        reply.setStringProperty("SOAPJMS_contentType", request.getStringProperty("SOAPJMS_contentType"));
        reply.setBooleanProperty("SOAPJMS_isFault", isFault);
        session.createProducer(request.getJMSReplyTo()).send(reply);
    }

    private static String text(Message message) throws JMSException {
        if (message instanceof TextMessage textMessage) {
            return textMessage.getText();
        }
        BytesMessage bytes = assertInstanceOf(BytesMessage.class, message);
        byte[] body = new byte[(int) bytes.getBodyLength()];
        bytes.readBytes(body);
        return new String(body, StandardCharsets.UTF_8);
    }

    /** A reply of the kind that the request has. */
    private static Message reply(Session session, Message request, String envelope) throws JMSException {
        if (request instanceof TextMessage) {
            return session.createTextMessage(envelope);
        }
        BytesMessage reply = session.createBytesMessage();
        reply.writeBytes(envelope.getBytes(StandardCharsets.UTF_8));
        return reply;
    }
}
