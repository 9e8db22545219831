package interop.mapping;

import static org.junit.jupiter.api.Assertions.assertNotNull;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.PrintStream;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * What Qpid JMS sends, and what it shows of messages: test_qpid_jms_mapping.py compares that with broker.jms.
 * Where to and how many: the system properties mapping.address, mapping.count; where it is written: mapping.output.
 *
 * A message is written as lines of a name and a value; a value is its class and its text in Base64. An empty line ends it.
 */
class MappingPhases {
    private static final long SOON_MS = 5_000;

    private Connection connection;
    private Session session;
    private PrintStream output;

    @BeforeEach
    void connect() throws Exception {
        connection = new JmsConnectionFactory(System.getProperty("broker.url")).createConnection();
        connection.start();
        session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
        output = new PrintStream(Path.of(System.getProperty("mapping.output")).toFile(), StandardCharsets.UTF_8);
    }

    @AfterEach
    void close() throws JMSException {
        output.close();
        connection.close();
    }

    /** Send what an application can send, and write down what the message says of itself afterwards. */
    @Test
    void send() throws Exception {
        MessageProducer producer = session.createProducer(queue());
        List<Message> messages = bodies();
        for (Message message : messages) {
            headers(message);
            send(producer, message, messages.indexOf(message));
        }
    }

    /** Send mapping.count messages: everything that an application can send, in turn, none like another. */
    @Test
    void sendMany() throws Exception {
        MessageProducer producer = session.createProducer(queue());
        int count = Integer.getInteger("mapping.count");
        for (int first = 0; first < count; first += bodies().size()) {
            int number = first;
            for (Message message : bodies()) {
                if (number < count) {
                    headers(message);
                    vary(message, number);
                    send(producer, message, number++);
                }
            }
        }
    }

    private void vary(Message message, int number) throws JMSException {
        Random random = new Random(number);
        byte[] some = new byte[random.nextInt(3000)];
        random.nextBytes(some);
        String letters = Base64.getEncoder().encodeToString(some);
        if (message instanceof TextMessage text && text.getText() != null) {
            text.setText(text.getText() + letters);
        } else if (message instanceof BytesMessage bytes) {
            bytes.writeBytes(some);
        } else if (message instanceof MapMessage map) {
            map.setBytes("random", some);
        } else if (message instanceof StreamMessage stream) {
            stream.writeString(letters);
        } else if (message instanceof ObjectMessage object && object.getObject() != null) {
            object.setObject(letters);
        }
        message.setJMSType("kind " + number % 7);
        message.setStringProperty("JMSXGroupID", "group " + number % 5);
        message.setLongProperty("aRandomLong", random.nextLong());
        message.setDoubleProperty("aRandomDouble", random.nextGaussian());
    }

    private void send(MessageProducer producer, Message message, int number) throws Exception {
        message.setIntProperty("case", number);
        producer.setDeliveryMode(
            message instanceof TextMessage ? DeliveryMode.NON_PERSISTENT : DeliveryMode.PERSISTENT);
        producer.setPriority(message instanceof MapMessage ? 9 : 4);
        producer.setTimeToLive(message instanceof StreamMessage ? 0 : 3_600_000);
        producer.send(message);
        write(message);
    }

    /** Write down all messages of the queue. */
    @Test
    void show() throws Exception {
        MessageConsumer consumer = session.createConsumer(queue());
        for (int left = Integer.getInteger("mapping.count"); left > 0; left--) {
            Message message = consumer.receive(SOON_MS);
            assertNotNull(message, left + " messages were not shown");
            write(message);
        }
    }

    private Queue queue() throws JMSException {
        return session.createQueue(System.getProperty("mapping.address"));
    }

    private List<Message> bodies() throws JMSException {
        List<Message> messages = new ArrayList<>();
        messages.add(session.createMessage());
        messages.add(session.createTextMessage("gr\u00fc\u00dfe \uD83D\uDE00"));
        messages.add(session.createTextMessage(""));
        messages.add(session.createTextMessage());
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {0, -1, 65});
        messages.add(bytes);
        messages.add(session.createBytesMessage());
        MapMessage map = session.createMapMessage();
        StreamMessage stream = session.createStreamMessage();
        for (Map.Entry<String, Object> entry : values().entrySet()) {
            map.setObject(entry.getKey(), entry.getValue());
            stream.writeObject(entry.getValue());
        }
        messages.add(map);
        messages.add(stream);
        messages.add(session.createMapMessage());
        messages.add(session.createStreamMessage());
        messages.add(session.createObjectMessage("an object"));
        messages.add(session.createObjectMessage());
        ObjectMessage typed = session.createObjectMessage();
        typed.setBooleanProperty("JMS_AMQP_TYPED_ENCODING", true);
        typed.setObject("a value");
        messages.add(typed);
        return messages;
    }

    private void headers(Message message) throws JMSException {
        message.setJMSType("kind");
        message.setJMSReplyTo(session.createTopic("answers"));
        if (message instanceof BytesMessage) {
            message.setJMSCorrelationIDAsBytes(new byte[] {1, 35, -85, -51});
        } else if (message instanceof MapMessage) {
            message.setJMSCorrelationID("ID:AMQP_UUID:" + new UUID(1, 2));
        } else if (message instanceof StreamMessage) {
            message.setJMSCorrelationID("ID:AMQP_ULONG:18446744073709551615");
        } else if (message instanceof ObjectMessage) {
            message.setJMSCorrelationID("ID:AMQP_NO_PREFIX:x");
        } else {
            message.setJMSCorrelationID("an application's own");
        }
        for (Map.Entry<String, Object> entry : values().entrySet()) {
            if (!(entry.getValue() instanceof byte[]) && !(entry.getValue() instanceof Character)) {
                message.setObjectProperty(entry.getKey(), entry.getValue());
            }
        }
        message.setStringProperty("JMSXGroupID", "group");
        message.setIntProperty("JMSXGroupSeq", message instanceof TextMessage ? -2 : 7);
        message.setStringProperty("JMSXAppID", "application");
        message.setStringProperty("JMS_AMQP_REPLY_TO_GROUP_ID", "other group");
    }

    /** A value of every type that JMS has. */
    private static Map<String, Object> values() {
        Map<String, Object> values = new TreeMap<>();
        values.put("aBoolean", true);
        values.put("aByte", Byte.MIN_VALUE);
        values.put("aShort", Short.MIN_VALUE);
        values.put("anInt", Integer.MIN_VALUE);
        values.put("aLong", Long.MIN_VALUE);
        values.put("aFloat", 1.1f);
        values.put("aFloatNaN", Float.NaN);
        values.put("aDouble", -2.5e-300);
        values.put("aDoubleInfinity", Double.NEGATIVE_INFINITY);
        values.put("aString", "gr\u00fc\u00dfe");
        values.put("aNull", null);
        values.put("aChar", '\u00e9');
        values.put("someBytes", new byte[] {0, -1});
        return values;
    }

    private void write(Message message) throws Exception {
        write("JMSMessageID", message.getJMSMessageID());
        write("JMSCorrelationID", message.getJMSCorrelationID());
        write("JMSTimestamp", message.getJMSTimestamp());
        write("JMSDestination", message.getJMSDestination());
        write("JMSReplyTo", message.getJMSReplyTo());
        write("JMSDeliveryMode", message.getJMSDeliveryMode());
        write("JMSType", message.getJMSType());
        write("JMSExpiration", message.getJMSExpiration());
        write("JMSPriority", message.getJMSPriority());
        write("JMSDeliveryTime", message.getJMSDeliveryTime());
        write("JMSRedelivered", message.getJMSRedelivered());
        for (Object name : Collections.list(message.getPropertyNames())) {
            write("property " + name, message.getObjectProperty(name.toString()));
        }
        writeBody(message);
        output.println();
    }

    private void writeBody(Message message) throws Exception {
        if (message instanceof TextMessage text) {
            write("kind", "text");
            write("body", text.getText());
        } else if (message instanceof BytesMessage bytes) {
            write("kind", "bytes");
            bytes.reset();
            byte[] content = new byte[(int) bytes.getBodyLength()];
            bytes.readBytes(content);
            write("body", content);
        } else if (message instanceof MapMessage map) {
            write("kind", "map");
            for (Object name : Collections.list(map.getMapNames())) {
                write("body " + name, map.getObject(name.toString()));
            }
        } else if (message instanceof StreamMessage stream) {
            write("kind", "stream");
            stream.reset();
            writeItems(stream);
        } else if (message instanceof ObjectMessage object) {
            write("kind", "object");
            write("body", object.getObject());
            write("serialized", serialized(object.getObject()));
        } else {
            write("kind", "message");
        }
    }

    private void writeItems(StreamMessage stream) throws JMSException {
        try {
            for (int at = 0; ; at++) {
                write("body " + at, stream.readObject());
            }
        } catch (MessageEOFException end) {
            // all items have been written
        }
    }

    private void write(String name, Object value) throws JMSException {
        String kind = value == null ? "null" : value.getClass().getSimpleName();
        byte[] text = String.valueOf(value).getBytes(StandardCharsets.UTF_8);
        if (value instanceof byte[] bytes) {
            text = bytes;
        } else if (value instanceof Float number) {
            text = Double.toString(number).getBytes(StandardCharsets.UTF_8);
        } else if (value instanceof Destination destination) {
            kind = kindOf(destination);
            text = addressOf(destination).getBytes(StandardCharsets.UTF_8);
        }
        output.println(name + "\t" + kind + "\t" + Base64.getEncoder().encodeToString(text));
    }

    private static String kindOf(Destination destination) {
        if (destination instanceof TemporaryQueue) {
            return "temporary-queue";
        }
        if (destination instanceof TemporaryTopic) {
            return "temporary-topic";
        }
        return destination instanceof Topic ? "topic" : "queue";
    }

    private static String addressOf(Destination destination) throws JMSException {
        return destination instanceof Queue queue ? queue.getQueueName() : ((Topic) destination).getTopicName();
    }

    private static byte[] serialized(Serializable object) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(object);
        }
        return bytes.toByteArray();
    }
}
