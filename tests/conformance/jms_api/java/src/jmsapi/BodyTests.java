package jmsapi;

import jakarta.jms.BytesMessage;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotReadableException;
import jakarta.jms.MessageNotWriteableException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The kinds of messages and their bodies (3.11, 3.12); their conversions are in ConversionTests. */
final class BodyTests {
    private static final byte[] BYTES = {0, -1, 127, -128, 10};

    @Rule(clause = "3.11",
            says = "A TextMessage arrives with its text, whatever characters it has, or with none.")
    void textArrives(Probe probe) throws Exception {
        Session session = probe.session();
        for (String text : new String[] {"a", "", "größe 名前 🙂 \0 \n", "x".repeat(300), null}) {
            Message received = HeaderTests.passed(probe, session, session.createTextMessage(text));
            Check.that(received instanceof TextMessage, "a TextMessage", received);
            Check.equal("the text", text, ((TextMessage) received).getText());
        }
    }

    @Rule(clause = "3.11",
            says = "An ObjectMessage arrives with an equal object, or with none.")
    void objectArrives(Probe probe) throws Exception {
        Session session = probe.session();
        for (java.io.Serializable object : new java.io.Serializable[] {
                new ArrayList<>(List.of("a", 1, 2.5)), "text", 7L, null}) {
            Message received = HeaderTests.passed(probe, session, session.createObjectMessage(object));
            Check.that(received instanceof ObjectMessage, "an ObjectMessage", received);
            Check.equal("the object", object, ((ObjectMessage) received).getObject());
        }
    }

    @Rule(clause = "3.11",
            says = "A BytesMessage arrives with its bytes, and is read by the types by which it was written.")
    void bytesArrive(Probe probe) throws Exception {
        Session session = probe.session();
        BytesMessage message = session.createBytesMessage();
        message.writeBoolean(true);
        message.writeByte((byte) -7);
        message.writeShort((short) -300);
        message.writeChar('ß');
        message.writeInt(Integer.MIN_VALUE);
        message.writeLong(Long.MAX_VALUE);
        message.writeFloat(1.5f);
        message.writeDouble(-2.25);
        message.writeUTF("größe 名前");
        message.writeBytes(BYTES);
        message.writeBytes(BYTES, 1, 2);
        message.writeObject(40_000);
        BytesMessage received = (BytesMessage) HeaderTests.passed(probe, session, message);
        Check.equal("a boolean", true, received.readBoolean());
        Check.equal("a byte", (byte) -7, received.readByte());
        Check.equal("a short", (short) -300, received.readShort());
        Check.equal("a char", 'ß', received.readChar());
        Check.equal("an int", Integer.MIN_VALUE, received.readInt());
        Check.equal("a long", Long.MAX_VALUE, received.readLong());
        Check.equal("a float", 1.5f, received.readFloat());
        Check.equal("a double", -2.25, received.readDouble());
        Check.equal("a text", "größe 名前", received.readUTF());
        byte[] read = new byte[7];
        Check.equal("the number of bytes", 7, received.readBytes(read));
        Check.equal("the bytes", new byte[] {0, -1, 127, -128, 10, -1, 127}, read);
        Check.equal("an object", 40_000, received.readInt());
        Check.equal("readBytes() at the end", -1, received.readBytes(read));
        Check.raises(MessageEOFException.class, "readByte() at the end", received::readByte);
        received.reset();
        Check.equal("a boolean after reset()", true, received.readBoolean());
        Check.equal("an unsigned byte", 249, received.readUnsignedByte());
        Check.equal("an unsigned short", 65_236, received.readUnsignedShort());
    }

    @Rule(clause = "3.11",
            says = "The length of a received BytesMessage can be asked for, also that of an empty one.")
    void bytesHaveALength(Probe probe) throws Exception {
        Session session = probe.session();
        BytesMessage message = session.createBytesMessage();
        BytesMessage empty = (BytesMessage) HeaderTests.passed(probe, session, message);
        Check.equal("getBodyLength() of an empty body", 0L, empty.getBodyLength());
        Check.raises(MessageEOFException.class, "readInt() of an empty body", empty::readInt);
        BytesMessage large = session.createBytesMessage();
        large.writeBytes(new byte[70_000]);
        BytesMessage full = (BytesMessage) HeaderTests.passed(probe, session, large);
        Check.equal("getBodyLength()", 70_000L, full.getBodyLength());
    }

    @Rule(clause = "3.9",
            says = "A BytesMessage and a StreamMessage can be written on after they were sent.",
            clientBreaksIt = "it resets them when it sends them, so that they are read-only then")
    void sentMessageMayBeWrittenOn(Probe probe) throws Exception {
        Session session = probe.session();
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeByte((byte) 1);
        HeaderTests.passed(probe, session, bytes);
        bytes.writeByte((byte) 2);
        Check.equal("the bytes", new byte[] {1, 2}, HeaderTests.passed(probe, session, bytes).getBody(byte[].class));
        StreamMessage stream = session.createStreamMessage();
        stream.writeInt(1);
        HeaderTests.passed(probe, session, stream);
        stream.writeInt(2);
    }

    @Rule(clause = "3.11",
            says = "A MapMessage arrives with its names and values, of each type, null among them.")
    void mapArrives(Probe probe) throws Exception {
        Session session = probe.session();
        MapMessage message = session.createMapMessage();
        message.setBoolean("aBoolean", true);
        message.setByte("aByte", (byte) -7);
        message.setShort("aShort", (short) -300);
        message.setChar("aChar", 'ß');
        message.setInt("anInt", Integer.MIN_VALUE);
        message.setLong("aLong", Long.MAX_VALUE);
        message.setFloat("aFloat", 1.5f);
        message.setDouble("aDouble", -2.25);
        message.setString("aString", "größe");
        message.setBytes("bytes", BYTES);
        message.setBytes("a part", BYTES, 1, 2);
        message.setString("null", null);
        message.setObject("anObject", 7L);
        MapMessage received = (MapMessage) HeaderTests.passed(probe, session, message);
        Check.equal("a boolean", true, received.getBoolean("aBoolean"));
        Check.equal("a byte", (byte) -7, received.getByte("aByte"));
        Check.equal("a short", (short) -300, received.getShort("aShort"));
        Check.equal("a char", 'ß', received.getChar("aChar"));
        Check.equal("an int", Integer.MIN_VALUE, received.getInt("anInt"));
        Check.equal("a long", Long.MAX_VALUE, received.getLong("aLong"));
        Check.equal("a float", 1.5f, received.getFloat("aFloat"));
        Check.equal("a double", -2.25, received.getDouble("aDouble"));
        Check.equal("a text", "größe", received.getString("aString"));
        Check.equal("bytes", BYTES, received.getBytes("bytes"));
        Check.equal("a part of bytes", new byte[] {-1, 127}, received.getBytes("a part"));
        Check.equal("an object", 7L, received.getObject("anObject"));
        Check.equal("null", null, received.getObject("null"));
        Check.equal("itemExists() of null", true, received.itemExists("null"));
        Check.equal("itemExists() of a name that was not set", false, received.itemExists("none"));
        Check.equal("a name that was not set", null, received.getString("none"));
        Set<Object> names = new HashSet<>(Probe.listed(received.getMapNames()));
        Check.equal("getMapNames()", Set.of("aBoolean", "aByte", "aShort", "aChar", "anInt", "aLong", "aFloat",
                "aDouble", "aString", "bytes", "a part", "null", "anObject"), names);
    }

    @Rule(clause = "3.11",
            says = "A StreamMessage arrives with its values in order, of each type, null among them.")
    void streamArrives(Probe probe) throws Exception {
        Session session = probe.session();
        StreamMessage message = session.createStreamMessage();
        message.writeBoolean(true);
        message.writeByte((byte) -7);
        message.writeShort((short) -300);
        message.writeChar('ß');
        message.writeInt(Integer.MIN_VALUE);
        message.writeLong(Long.MAX_VALUE);
        message.writeFloat(1.5f);
        message.writeDouble(-2.25);
        message.writeString("größe");
        message.writeBytes(BYTES);
        message.writeString(null);
        message.writeObject(7L);
        StreamMessage received = (StreamMessage) HeaderTests.passed(probe, session, message);
        Check.equal("a boolean", true, received.readBoolean());
        Check.equal("a byte", (byte) -7, received.readByte());
        Check.equal("a short", (short) -300, received.readShort());
        Check.equal("a char", 'ß', received.readChar());
        Check.equal("an int", Integer.MIN_VALUE, received.readInt());
        Check.equal("a long", Long.MAX_VALUE, received.readLong());
        Check.equal("a float", 1.5f, received.readFloat());
        Check.equal("a double", -2.25, received.readDouble());
        Check.equal("a text", "größe", received.readString());
        byte[] read = new byte[3];
        Check.equal("the first part of bytes", 3, received.readBytes(read));
        Check.equal("the bytes", new byte[] {0, -1, 127}, read);
        Check.equal("the second part", 2, received.readBytes(read));
        Check.equal("null", null, received.readString());
        Check.equal("an object", 7L, received.readObject());
        Check.raises(MessageEOFException.class, "readObject() at the end", received::readObject);
        received.reset();
        Check.equal("a boolean after reset()", true, received.readBoolean());
    }

    @Rule(clause = "3.11.4",
            says = "A message without a body arrives as such: it is no message of another kind.")
    void messageWithoutABodyArrives(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createMessage();
        message.setIntProperty("one", 1);
        Message received = HeaderTests.passed(probe, session, message);
        Check.equal("the property", 1, received.getIntProperty("one"));
        Check.that(!(received instanceof TextMessage || received instanceof BytesMessage
                || received instanceof MapMessage || received instanceof StreamMessage
                || received instanceof ObjectMessage), "a Message without a body", received.getClass().getName());
    }

    private static List<Message> kinds(Session session) throws Exception {
        TextMessage text = session.createTextMessage("a");
        ObjectMessage object = session.createObjectMessage("a");
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(BYTES);
        MapMessage map = session.createMapMessage();
        map.setInt("one", 1);
        StreamMessage stream = session.createStreamMessage();
        stream.writeInt(1);
        return List.of(text, object, bytes, map, stream);
    }

    private static void write(Message message) throws Exception {
        if (message instanceof TextMessage) {
            ((TextMessage) message).setText("changed");
        } else if (message instanceof ObjectMessage) {
            ((ObjectMessage) message).setObject("changed");
        } else if (message instanceof BytesMessage) {
            ((BytesMessage) message).writeInt(2);
        } else if (message instanceof MapMessage) {
            ((MapMessage) message).setInt("two", 2);
        } else {
            ((StreamMessage) message).writeInt(2);
        }
    }

    @Rule(clause = "3.11.2",
            says = "The body of a received message cannot be written, until it is cleared.")
    void bodyOfAReceivedMessageIsReadOnly(Probe probe) throws Exception {
        Session session = probe.session();
        for (Message message : kinds(session)) {
            Message received = HeaderTests.passed(probe, session, message);
            String kind = received.getClass().getSimpleName();
            Check.raises(MessageNotWriteableException.class, "writing to a received " + kind, () -> write(received));
            received.clearBody();
            write(received);
        }
    }

    @Rule(clause = "3.11.1",
            says = "ClearBody empties the body, and leaves the properties.")
    void bodyMayBeCleared(Probe probe) throws Exception {
        Session session = probe.session();
        for (Message message : kinds(session)) {
            message.setIntProperty("one", 1);
            Message received = HeaderTests.passed(probe, session, message);
            received.clearBody();
            Check.equal("the property", 1, received.getIntProperty("one"));
            if (received instanceof TextMessage) {
                Check.equal("the text", null, ((TextMessage) received).getText());
            } else if (received instanceof ObjectMessage) {
                Check.equal("the object", null, ((ObjectMessage) received).getObject());
            } else if (received instanceof MapMessage) {
                Check.equal("the map has names", false, ((MapMessage) received).getMapNames().hasMoreElements());
            } else if (received instanceof BytesMessage) {
                ((BytesMessage) received).reset();
                Check.equal("the length", 0L, ((BytesMessage) received).getBodyLength());
            } else {
                ((StreamMessage) received).reset();
                Check.raises(MessageEOFException.class, "readInt()", ((StreamMessage) received)::readInt);
            }
        }
    }

    @Rule(clause = "10.3",
            says = "A new BytesMessage or StreamMessage cannot be read before reset: a MessageNotReadableException.")
    void newBodyIsWriteOnly(Probe probe) throws Exception {
        Session session = probe.session();
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeInt(1);
        Check.raises(MessageNotReadableException.class, "readInt()", bytes::readInt);
        Check.raises(MessageNotReadableException.class, "getBodyLength()", bytes::getBodyLength);
        bytes.reset();
        Check.equal("readInt() after reset()", 1, bytes.readInt());
        Check.raises(MessageNotWriteableException.class, "writeInt() after reset()", () -> bytes.writeInt(2));
        StreamMessage stream = session.createStreamMessage();
        stream.writeInt(1);
        Check.raises(MessageNotReadableException.class, "readInt()", stream::readInt);
        stream.reset();
        Check.equal("readInt() after reset()", 1, stream.readInt());
        Check.raises(MessageNotWriteableException.class, "writeInt() after reset()", () -> stream.writeInt(2));
    }

    @Rule(clause = "3.11",
            says = "GetBody returns the body as its class or a superclass, and isBodyAssignableTo says which.")
    void bodyIsReturnedAsItsClass(Probe probe) throws Exception {
        Session session = probe.session();
        Class<?>[] classes = {String.class, String.class, byte[].class, Map.class};
        Object[] values = {"a", "a", BYTES, Map.of("one", 1)};
        for (int place = 0; place < 4; place++) {
            Message received = HeaderTests.passed(probe, session, kinds(session).get(place));
            for (Class<?> kind : new Class<?>[] {classes[place], Object.class}) {
                Check.equal("isBodyAssignableTo() " + kind, true, received.isBodyAssignableTo(kind));
                Check.equal("getBody()", values[place], received.getBody(kind));
            }
            Check.equal("isBodyAssignableTo() Thread", false, received.isBodyAssignableTo(Thread.class));
            Check.raises(MessageFormatException.class, "getBody() as Thread", () -> received.getBody(Thread.class));
        }
        Message stream = HeaderTests.passed(probe, session, kinds(session).get(4));
        Check.equal("isBodyAssignableTo() of a stream", false, stream.isBodyAssignableTo(Object.class));
        Check.raises(MessageFormatException.class, "getBody() of a stream", () -> stream.getBody(Object.class));
        Message none = HeaderTests.passed(probe, session, session.createTextMessage());
        Check.equal("getBody() of no body", null, none.getBody(String.class));
        Check.equal("isBodyAssignableTo() of no body", true, none.isBodyAssignableTo(Thread.class));
    }

    @Rule(clause = "3.12",
            says = "Values are copied into a message: a change of the array afterwards changes nothing.")
    void valuesAreCopiedIn(Probe probe) throws Exception {
        Session session = probe.session();
        byte[] bytes = {1, 2, 3};
        MapMessage map = session.createMapMessage();
        map.setBytes("bytes", bytes);
        StreamMessage stream = session.createStreamMessage();
        stream.writeBytes(bytes);
        ArrayList<String> list = new ArrayList<>(List.of("a"));
        ObjectMessage object = session.createObjectMessage(list);
        bytes[0] = 9;
        list.add("b");
        byte[] expected = {1, 2, 3};
        MapMessage receivedMap = (MapMessage) HeaderTests.passed(probe, session, map);
        Check.equal("the bytes of the map", expected, receivedMap.getBytes("bytes"));
        receivedMap.getBytes("bytes")[0] = 9;
        Check.equal("the bytes after a change of what was read", expected, receivedMap.getBytes("bytes"));
        Check.equal("the bytes of the stream", expected,
                ((StreamMessage) HeaderTests.passed(probe, session, stream)).readObject());
        Check.equal("the object", List.of("a"), ((ObjectMessage) HeaderTests.passed(probe, session, object)).getObject());
    }

    @Rule(clause = "3.12",
            says = "Null cannot be written to a BytesMessage, nor can other objects than those of primitive types.")
    void wrongValuesAreRefused(Probe probe) throws Exception {
        Session session = probe.session();
        BytesMessage bytes = session.createBytesMessage();
        Check.raises(NullPointerException.class, "writeObject(null)", () -> bytes.writeObject(null));
        Check.raises(MessageFormatException.class, "writeObject(a list)", () -> bytes.writeObject(List.of()));
        StreamMessage stream = session.createStreamMessage();
        Check.raises(MessageFormatException.class, "writeObject(a list)", () -> stream.writeObject(List.of()));
        MapMessage map = session.createMapMessage();
        Check.raises(MessageFormatException.class, "setObject(a list)", () -> map.setObject("a", List.of()));
        for (String none : new String[] {null, ""}) {
            Check.raises(IllegalArgumentException.class, "setInt() with the name " + none, () -> map.setInt(none, 1));
        }
    }
}
