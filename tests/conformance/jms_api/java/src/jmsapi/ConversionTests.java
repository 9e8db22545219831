package jmsapi;

import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The conversion tables of properties (3.5.4) and of MapMessage and StreamMessage (3.11.3), on received messages. */
final class ConversionTests {
    /** Reads a value of a message as some type. */
    private interface Reader {
        Object read() throws JMSException;
    }

    /** The values that are written, by the name of their type. */
    private static Map<String, Object> written() {
        Map<String, Object> values = new LinkedHashMap<>();
        values.put("boolean", true);
        values.put("byte", (byte) 7);
        values.put("short", (short) 7);
        values.put("char", '7');
        values.put("int", 7);
        values.put("long", 7L);
        values.put("float", 7f);
        values.put("double", 7d);
        values.put("String", "7");
        values.put("bytes", new byte[] {7});
        return values;
    }

    /** The types as which each written type can be read in bodies (table 3-7). */
    private static final Map<String, List<String>> BODIES = Map.of(
            "boolean", List.of("boolean", "String"),
            "byte", List.of("byte", "short", "int", "long", "String"),
            "short", List.of("short", "int", "long", "String"),
            "char", List.of("char", "String"),
            "int", List.of("int", "long", "String"),
            "long", List.of("long", "String"),
            "float", List.of("float", "double", "String"),
            "double", List.of("double", "String"),
            "String", List.of("boolean", "byte", "short", "int", "long", "float", "double", "String"),
            "bytes", List.of("bytes"));

    /** The value 7 as each type reads it. */
    private static Object seven(String writtenAs, String readAs) {
        switch (readAs) {
            case "boolean": return writtenAs.equals("boolean");
            case "byte": return (byte) 7;
            case "short": return (short) 7;
            case "char": return '7';
            case "int": return 7;
            case "long": return 7L;
            case "float": return 7f;
            case "double": return 7d;
            case "bytes": return new byte[] {7};
            default:
                return writtenAs.equals("boolean") ? "true"
                        : writtenAs.equals("float") || writtenAs.equals("double") ? "7.0" : "7";
        }
    }

    /** Check one cell of a table. */
    private static void cell(String writtenAs, String readAs, boolean allowed, Reader reader) throws JMSException {
        String what = writtenAs + " read as " + readAs;
        if (allowed) {
            Check.equal(what, seven(writtenAs, readAs), reader.read());
        } else {
            Check.raises(MessageFormatException.class, what, reader::read);
        }
    }

    private static Map<String, Reader> propertyReaders(Message message, String name) {
        Map<String, Reader> readers = new LinkedHashMap<>();
        readers.put("boolean", () -> message.getBooleanProperty(name));
        readers.put("byte", () -> message.getByteProperty(name));
        readers.put("short", () -> message.getShortProperty(name));
        readers.put("int", () -> message.getIntProperty(name));
        readers.put("long", () -> message.getLongProperty(name));
        readers.put("float", () -> message.getFloatProperty(name));
        readers.put("double", () -> message.getDoubleProperty(name));
        readers.put("String", () -> message.getStringProperty(name));
        return readers;
    }

    @Rule(clause = "3.5.4",
            says = "Properties are read as each type that the table allows; any other is a MessageFormatException.")
    void propertiesAreConverted(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createMessage();
        for (Map.Entry<String, Object> each : written().entrySet()) {
            if (!each.getKey().equals("char") && !each.getKey().equals("bytes")) {
                message.setObjectProperty("p_" + each.getKey(), each.getValue());
            }
        }
        Message received = HeaderTests.passed(probe, session, message);
        for (String type : written().keySet()) {
            if (!type.equals("char") && !type.equals("bytes")) {
                for (Map.Entry<String, Reader> reader : propertyReaders(received, "p_" + type).entrySet()) {
                    cell(type, reader.getKey(), BODIES.get(type).contains(reader.getKey()), reader.getValue());
                }
            }
        }
    }

    @Rule(clause = "3.5.4",
            says = "A property of a string that is no number is a NumberFormatException when it is read as one.")
    void stringsThatAreNoNumbersInProperties(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createMessage();
        message.setStringProperty("words", "seven");
        message.setStringProperty("large", "300");
        message.setStringProperty("truth", "TRUE");
        Message received = HeaderTests.passed(probe, session, message);
        for (Map.Entry<String, Reader> reader : propertyReaders(received, "words").entrySet()) {
            if (!reader.getKey().equals("boolean") && !reader.getKey().equals("String")) {
                Check.raises(NumberFormatException.class, "words read as " + reader.getKey(), reader.getValue()::read);
            }
        }
        Check.equal("words read as boolean", false, received.getBooleanProperty("words"));
        Check.equal("TRUE read as boolean", true, received.getBooleanProperty("truth"));
        Check.raises(NumberFormatException.class, "300 read as byte", () -> received.getByteProperty("large"));
        Check.equal("300 read as short", (short) 300, received.getShortProperty("large"));
    }

    private static Map<String, Reader> mapReaders(MapMessage message, String name) {
        Map<String, Reader> readers = new LinkedHashMap<>();
        readers.put("boolean", () -> message.getBoolean(name));
        readers.put("byte", () -> message.getByte(name));
        readers.put("short", () -> message.getShort(name));
        readers.put("char", () -> message.getChar(name));
        readers.put("int", () -> message.getInt(name));
        readers.put("long", () -> message.getLong(name));
        readers.put("float", () -> message.getFloat(name));
        readers.put("double", () -> message.getDouble(name));
        readers.put("String", () -> message.getString(name));
        readers.put("bytes", () -> message.getBytes(name));
        return readers;
    }

    @Rule(clause = "3.11.3",
            says = "Values of a MapMessage are read as each type that the table allows; others are errors.")
    void valuesOfMapsAreConverted(Probe probe) throws Exception {
        Session session = probe.session();
        MapMessage message = session.createMapMessage();
        for (Map.Entry<String, Object> each : written().entrySet()) {
            message.setObject(each.getKey(), each.getValue());
        }
        MapMessage received = (MapMessage) HeaderTests.passed(probe, session, message);
        for (String type : written().keySet()) {
            for (Map.Entry<String, Reader> reader : mapReaders(received, type).entrySet()) {
                cell(type, reader.getKey(), BODIES.get(type).contains(reader.getKey()), reader.getValue());
            }
        }
    }

    private static Map<String, Reader> streamReaders(StreamMessage message) {
        Map<String, Reader> readers = new LinkedHashMap<>();
        readers.put("boolean", message::readBoolean);
        readers.put("byte", message::readByte);
        readers.put("short", message::readShort);
        readers.put("char", message::readChar);
        readers.put("int", message::readInt);
        readers.put("long", message::readLong);
        readers.put("float", message::readFloat);
        readers.put("double", message::readDouble);
        readers.put("String", message::readString);
        readers.put("bytes", () -> {
            byte[] read = new byte[1];
            Check.equal("the number of bytes", 1, message.readBytes(read));
            return read;
        });
        return readers;
    }

    @Rule(clause = "3.11.3",
            says = "Values of a StreamMessage are read as each type that the table allows; others are errors.")
    void valuesOfStreamsAreConverted(Probe probe) throws Exception {
        Session session = probe.session();
        for (Map.Entry<String, Object> each : written().entrySet()) {
            StreamMessage message = session.createStreamMessage();
            message.writeObject(each.getValue());
            StreamMessage received = (StreamMessage) HeaderTests.passed(probe, session, message);
            for (Map.Entry<String, Reader> reader : streamReaders(received).entrySet()) {
                received.reset();
                boolean allowed = BODIES.get(each.getKey()).contains(reader.getKey());
                cell(each.getKey(), reader.getKey(), allowed, reader.getValue());
            }
        }
    }

    @Rule(clause = "3.11.3",
            says = "A read of a StreamMessage that fails does not move on: the value can be read as another type.")
    void failedReadDoesNotMoveOn(Probe probe) throws Exception {
        Session session = probe.session();
        StreamMessage message = session.createStreamMessage();
        message.writeString("seven");
        message.writeLong(7);
        message.writeBytes(new byte[] {7});
        message.writeString(null);
        StreamMessage received = (StreamMessage) HeaderTests.passed(probe, session, message);
        Check.raises(NumberFormatException.class, "a string read as int", received::readInt);
        Check.raises(MessageFormatException.class, "a string read as char", received::readChar);
        Check.equal("then as a string", "seven", received.readString());
        Check.raises(MessageFormatException.class, "a long read as int", received::readInt);
        Check.raises(MessageFormatException.class, "a long read as bytes", () -> received.readBytes(new byte[2]));
        Check.equal("then as a long", 7L, received.readLong());
        Check.raises(MessageFormatException.class, "bytes read as a string", received::readString);
        Check.equal("then as an object", new byte[] {7}, received.readObject());
        Check.raises(NullPointerException.class, "null read as char", received::readChar);
        Check.equal("then as a string", null, received.readString());
    }

    @Rule(clause = "3.11.3",
            says = "Null in a MapMessage is read as by valueOf(null): no number, false, and a char is an error.")
    void nullInMapsIsConverted(Probe probe) throws Exception {
        Session session = probe.session();
        MapMessage message = session.createMapMessage();
        message.setString("null", null);
        MapMessage received = (MapMessage) HeaderTests.passed(probe, session, message);
        for (String name : new String[] {"null", "that was not set"}) {
            Check.equal("getString()", null, received.getString(name));
            Check.equal("getObject()", null, received.getObject(name));
            Check.equal("getBytes()", null, received.getBytes(name));
            Check.equal("getBoolean()", false, received.getBoolean(name));
            Check.raises(NumberFormatException.class, "getByte()", () -> received.getByte(name));
            Check.raises(NumberFormatException.class, "getShort()", () -> received.getShort(name));
            Check.raises(NumberFormatException.class, "getInt()", () -> received.getInt(name));
            Check.raises(NumberFormatException.class, "getLong()", () -> received.getLong(name));
            Check.raises(NullPointerException.class, "getFloat()", () -> received.getFloat(name));
            Check.raises(NullPointerException.class, "getDouble()", () -> received.getDouble(name));
            Check.raises(NullPointerException.class, "getChar()", () -> received.getChar(name));
        }
    }

    @Rule(clause = "3.11.3",
            says = "A string of a MapMessage that is no number is a NumberFormatException when it is read as one.")
    void stringsThatAreNoNumbersInMaps(Probe probe) throws Exception {
        Session session = probe.session();
        MapMessage message = session.createMapMessage();
        message.setString("words", "seven");
        message.setString("truth", "TRUE");
        MapMessage received = (MapMessage) HeaderTests.passed(probe, session, message);
        for (Map.Entry<String, Reader> reader : mapReaders(received, "words").entrySet()) {
            if (List.of("byte", "short", "int", "long", "float", "double").contains(reader.getKey())) {
                Check.raises(NumberFormatException.class, "words read as " + reader.getKey(), reader.getValue()::read);
            }
        }
        Check.equal("words read as boolean", false, received.getBoolean("words"));
        Check.equal("TRUE read as boolean", true, received.getBoolean("truth"));
    }
}
