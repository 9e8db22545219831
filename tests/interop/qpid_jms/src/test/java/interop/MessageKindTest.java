package interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@DisplayName("Messages of the six kinds, with headers and properties, read back equal")
class MessageKindTest extends BrokerTest {
    private static final String UNICODE = "grüße \u0000 \u4e16\u754c \uD83D\uDE00 \"'\\";

    private Session session;
    private MessageProducer producer;
    private MessageConsumer consumer;

    @BeforeEach
    void open() throws Exception {
        session = session();
        producer = session.createProducer(queue(session));
        consumer = session.createConsumer(queue(session));
    }

    /** Properties of every type that JMS allows, at the edges of their ranges. */
    private static Map<String, Object> properties() {
        Map<String, Object> properties = new TreeMap<>();
        properties.put("yes", true);
        properties.put("no", false);
        properties.put("byteMin", Byte.MIN_VALUE);
        properties.put("byteMax", Byte.MAX_VALUE);
        properties.put("shortMin", Short.MIN_VALUE);
        properties.put("shortMax", Short.MAX_VALUE);
        properties.put("intMin", Integer.MIN_VALUE);
        properties.put("intSmall", 7);
        properties.put("intMax", Integer.MAX_VALUE);
        properties.put("longMin", Long.MIN_VALUE);
        properties.put("longSmall", -1L);
        properties.put("longMax", Long.MAX_VALUE);
        properties.put("float", 3.25f);
        properties.put("floatNaN", Float.NaN);
        properties.put("floatMax", Float.MAX_VALUE);
        properties.put("double", -2.5e-300);
        properties.put("doubleInfinite", Double.NEGATIVE_INFINITY);
        properties.put("string", UNICODE);
        properties.put("stringEmpty", "");
        properties.put("stringLong", "x".repeat(70_000));
        properties.put("null", null);
        return properties;
    }

    /** Send `message` with all properties, read it back and compare what is not the body. */
    private <M extends Message> M exchange(M message, Class<M> kind) throws Exception {
        Map<String, Object> properties = properties();
        for (Map.Entry<String, Object> property : properties.entrySet()) {
            message.setObjectProperty(property.getKey(), property.getValue());
        }
        message.setJMSType("kind of " + UNICODE);
        message.setJMSCorrelationID("correlation " + UNICODE);
        message.setJMSReplyTo(session.createTopic("replies"));
        producer.send(message);
        Message received = consumer.receive(SOON);
        assertInstanceOf(kind, received);
        Map<String, Object> readBack = new TreeMap<>();
        for (Object name : Collections.list(received.getPropertyNames())) {
            if (!name.toString().startsWith("JMSX")) {
                readBack.put(name.toString(), received.getObjectProperty(name.toString()));
            }
        }
        assertEquals(properties, readBack);
        assertEquals(message.getJMSMessageID(), received.getJMSMessageID());
        assertEquals(message.getJMSTimestamp(), received.getJMSTimestamp());
        assertEquals(message.getJMSType(), received.getJMSType());
        assertEquals(message.getJMSCorrelationID(), received.getJMSCorrelationID());
        assertEquals(message.getJMSReplyTo(), received.getJMSReplyTo());
        assertEquals(message.getJMSDestination(), received.getJMSDestination());
        assertEquals(1, deliveryCount(received));
        return kind.cast(received);
    }

    @Test
    @DisplayName("Message: headers and properties without a body")
    @Tag("MAP-10")
    @Tag("PRD-05")
    void message() throws Exception {
        Message received = exchange(session.createMessage(), Message.class);
        assertFalse(received instanceof BytesMessage || received instanceof TextMessage, "it became another kind");
    }

    @Test
    @DisplayName("BytesMessage: every type of value, and every byte")
    @Tag("MAP-10")
    @Tag("PRD-05")
    void bytes() throws Exception {
        byte[] all = new byte[256];
        for (int i = 0; i < all.length; i++) {
            all[i] = (byte) i;
        }
        BytesMessage message = session.createBytesMessage();
        message.writeBoolean(true);
        message.writeByte((byte) -1);
        message.writeShort(Short.MIN_VALUE);
        message.writeChar('\u20ac');
        message.writeInt(Integer.MIN_VALUE);
        message.writeLong(Long.MIN_VALUE);
        message.writeFloat(1.5f);
        message.writeDouble(Math.PI);
        message.writeUTF("grüße");
        message.writeBytes(all);
        BytesMessage received = exchange(message, BytesMessage.class);
        assertTrue(received.readBoolean());
        assertEquals(-1, received.readByte());
        assertEquals(Short.MIN_VALUE, received.readShort());
        assertEquals('\u20ac', received.readChar());
        assertEquals(Integer.MIN_VALUE, received.readInt());
        assertEquals(Long.MIN_VALUE, received.readLong());
        assertEquals(1.5f, received.readFloat());
        assertEquals(Math.PI, received.readDouble());
        assertEquals("grüße", received.readUTF());
        byte[] rest = new byte[all.length];
        assertEquals(all.length, received.readBytes(rest));
        assertArrayEquals(all, rest);
        assertThrows(MessageEOFException.class, received::readByte);
    }

    @Test
    @DisplayName("BytesMessage without a byte")
    @Tag("MAP-10")
    @Tag("PRD-05")
    void noBytes() throws Exception {
        assertEquals(0, exchange(session.createBytesMessage(), BytesMessage.class).getBodyLength());
    }

    @Test
    @DisplayName("TextMessage: Unicode, empty and null text")
    @Tag("MAP-10")
    @Tag("PRD-05")
    void text() throws Exception {
        assertEquals(UNICODE, exchange(session.createTextMessage(UNICODE), TextMessage.class).getText());
        assertEquals("", exchange(session.createTextMessage(""), TextMessage.class).getText());
        assertNull(exchange(session.createTextMessage(), TextMessage.class).getText());
    }

    @Test
    @DisplayName("MapMessage: a value of every type")
    @Tag("MAP-10")
    @Tag("PRD-05")
    void map() throws Exception {
        MapMessage message = session.createMapMessage();
        message.setBoolean("boolean", true);
        message.setByte("byte", Byte.MIN_VALUE);
        message.setShort("short", Short.MAX_VALUE);
        message.setChar("char", '\u20ac');
        message.setInt("int", Integer.MIN_VALUE);
        message.setLong("long", Long.MAX_VALUE);
        message.setFloat("float", Float.MIN_VALUE);
        message.setDouble("double", Double.MAX_VALUE);
        message.setString("string", UNICODE);
        message.setBytes("bytes", new byte[] {0, 1, -1});
        message.setObject("null", null);
        MapMessage received = exchange(message, MapMessage.class);
        List<String> names = new ArrayList<>();
        for (Object name : Collections.list(received.getMapNames())) {
            names.add(name.toString());
        }
        names.sort(null);
        assertEquals(List.of("boolean", "byte", "bytes", "char", "double", "float", "int", "long", "null", "short", "string"), names);
        assertEquals(true, received.getObject("boolean"));
        assertEquals(Byte.MIN_VALUE, received.getObject("byte"));
        assertEquals(Short.MAX_VALUE, received.getObject("short"));
        assertEquals('\u20ac', received.getObject("char"));
        assertEquals(Integer.MIN_VALUE, received.getObject("int"));
        assertEquals(Long.MAX_VALUE, received.getObject("long"));
        assertEquals(Float.MIN_VALUE, received.getObject("float"));
        assertEquals(Double.MAX_VALUE, received.getObject("double"));
        assertEquals(UNICODE, received.getObject("string"));
        assertArrayEquals(new byte[] {0, 1, -1}, received.getBytes("bytes"));
        assertNull(received.getObject("null"));
    }

    @Test
    @DisplayName("StreamMessage: a value of every type, in order")
    @Tag("MAP-10")
    @Tag("PRD-05")
    void stream() throws Exception {
        StreamMessage message = session.createStreamMessage();
        Object[] values = {
            true, Byte.MIN_VALUE, Short.MAX_VALUE, '\u20ac', Integer.MIN_VALUE, Long.MAX_VALUE, 1.5f, Math.E, UNICODE, null,
        };
        for (Object value : values) {
            message.writeObject(value);
        }
        message.writeBytes(new byte[] {5, 6, 7});
        StreamMessage received = exchange(message, StreamMessage.class);
        for (Object value : values) {
            assertEquals(value, received.readObject());
        }
        assertArrayEquals(new byte[] {5, 6, 7}, (byte[]) received.readObject());
        assertThrows(MessageEOFException.class, received::readObject);
    }

    @Test
    @DisplayName("ObjectMessage: a serialised Java object")
    @Tag("MAP-10")
    @Tag("PRD-05")
    void object() throws Exception {
        ArrayList<Object> value = new ArrayList<>(List.of(UUID.randomUUID(), "text", 7L));
        ObjectMessage received = exchange(session.createObjectMessage(value), ObjectMessage.class);
        assertEquals(value, received.getObject());
    }

    @Test
    @DisplayName("ObjectMessage in AMQP's own types")
    @Tag("MAP-10")
    @Tag("PRD-05")
    void typedObject() throws Exception {
        ArrayList<Object> value = new ArrayList<>(List.of(UUID.randomUUID(), "text", 7L, Map.of("key", 1.5)));
        ObjectMessage message = session.createObjectMessage();
        message.setBooleanProperty("JMS_AMQP_TYPED_ENCODING", true);
        message.setObject(value);
        producer.send(message);
        ObjectMessage received = assertInstanceOf(ObjectMessage.class, consumer.receive(SOON));
        assertEquals(value, received.getObject());
    }

    @Test
    @DisplayName("headers: delivery mode, priority, time to live, message id, timestamp, destination")
    @Tag("PRD-05")
    @Tag("DST-03")
    @Tag("DST-14")
    void headers() throws Exception {
        TextMessage message = session.createTextMessage("headers");
        message.setJMSReplyTo(session.createTemporaryQueue());
        producer.send(message, DeliveryMode.NON_PERSISTENT, 7, 600_000);
        Message received = consumer.receive(SOON);
        assertEquals(DeliveryMode.NON_PERSISTENT, received.getJMSDeliveryMode());
        assertEquals(7, received.getJMSPriority());
        assertEquals(message.getJMSExpiration(), received.getJMSExpiration());
        assertEquals(message.getJMSMessageID(), received.getJMSMessageID());
        assertEquals(message.getJMSTimestamp(), received.getJMSTimestamp());
        assertEquals(message.getJMSTimestamp(), received.getJMSDeliveryTime());
        assertEquals(queue(session), received.getJMSDestination());
        assertEquals(message.getJMSReplyTo(), received.getJMSReplyTo());
        assertFalse(received.getJMSRedelivered());
    }

    @Test
    @DisplayName("message ids and timestamps that the producer leaves out stay out")
    @Tag("PRD-05")
    void withoutIds() throws Exception {
        // --8<-- [start:without_ids]
        producer.setDisableMessageID(true);
        producer.setDisableMessageTimestamp(true);
        producer.send(session.createTextMessage("anonymous"));
        // --8<-- [end:without_ids]
        Message received = consumer.receive(SOON);
        assertNull(received.getJMSMessageID());
        assertEquals(0, received.getJMSTimestamp());
    }

    @Test
    @DisplayName("correlation ids of every AMQP type")
    @Tag("PRD-05")
    void correlationIds() throws Exception {
        String[] ids = {
            "plain", "ID:AMQP_UUID:" + UUID.randomUUID(), "ID:AMQP_ULONG:18446744073709551615", "ID:AMQP_BINARY:00FF7F",
            "ID:text",
        };
        for (String id : ids) {
            Message message = session.createMessage();
            message.setJMSCorrelationID(id);
            producer.send(message);
            assertEquals(id, consumer.receive(SOON).getJMSCorrelationID());
        }
        Message message = session.createMessage();
        message.setJMSCorrelationIDAsBytes(new byte[] {1, 2, -3});
        producer.send(message);
        assertArrayEquals(new byte[] {1, 2, -3}, consumer.receive(SOON).getJMSCorrelationIDAsBytes());
    }

    @Test
    @DisplayName("group, user and vendor properties")
    @Tag("PRD-05")
    void groupProperties() throws Exception {
        for (int sequence : new int[] {1, Integer.MAX_VALUE, -2}) {
            Message message = session.createMessage();
            message.setStringProperty("JMSXGroupID", "group");
            message.setIntProperty("JMSXGroupSeq", sequence);
            message.setStringProperty("JMS_AMQP_REPLY_TO_GROUP_ID", "answers");
            producer.send(message);
            Message received = consumer.receive(SOON);
            assertEquals("group", received.getStringProperty("JMSXGroupID"));
            assertEquals(sequence, received.getIntProperty("JMSXGroupSeq"));
            assertEquals("answers", received.getStringProperty("JMS_AMQP_REPLY_TO_GROUP_ID"));
        }
    }

    @Test
    @DisplayName("a message sent on as it was received keeps its body and properties")
    @Tag("PRD-05")
    void forwarded() throws Exception {
        TextMessage message = session.createTextMessage("travels on");
        message.setStringProperty("colour", "red");
        producer.send(message);
        Message received = consumer.receive(SOON);
        producer.send(received);
        TextMessage again = (TextMessage) consumer.receive(SOON);
        assertEquals("travels on", again.getText());
        assertEquals("red", again.getStringProperty("colour"));
        assertFalse(again.getJMSRedelivered());
        assertEquals(1, deliveryCount(again));
    }
}
