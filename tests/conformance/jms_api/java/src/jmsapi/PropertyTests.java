package jmsapi;

import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotWriteableException;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Properties of messages (3.5); their conversions are in ConversionTests. */
final class PropertyTests {
    private static Map<String, Object> values() {
        Map<String, Object> values = new LinkedHashMap<>();
        values.put("aBoolean", true);
        values.put("aByte", (byte) -7);
        values.put("aShort", Short.MIN_VALUE);
        values.put("anInt", Integer.MAX_VALUE);
        values.put("aLong", Long.MIN_VALUE);
        values.put("aFloat", 1.5f);
        values.put("aDouble", -2.25e300);
        values.put("aString", "größe 名前 🙂");
        values.put("anEmptyString", "");
        return values;
    }

    @Rule(clause = "3.5.2",
            says = "Properties of each type arrive with their type and value.")
    void propertiesArriveWithTheirTypes(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createMessage();
        message.setBooleanProperty("aBoolean", true);
        message.setByteProperty("aByte", (byte) -7);
        message.setShortProperty("aShort", Short.MIN_VALUE);
        message.setIntProperty("anInt", Integer.MAX_VALUE);
        message.setLongProperty("aLong", Long.MIN_VALUE);
        message.setFloatProperty("aFloat", 1.5f);
        message.setDoubleProperty("aDouble", -2.25e300);
        message.setStringProperty("aString", "größe 名前 🙂");
        message.setStringProperty("anEmptyString", "");
        Message received = HeaderTests.passed(probe, session, message);
        for (Map.Entry<String, Object> each : values().entrySet()) {
            Check.equal("the property " + each.getKey(), each.getValue(), received.getObjectProperty(each.getKey()));
        }
    }

    @Rule(clause = "3.5.5",
            says = "Properties that are set as objects are those of their primitive types.")
    void propertiesMayBeObjects(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createMessage();
        for (Map.Entry<String, Object> each : values().entrySet()) {
            message.setObjectProperty(each.getKey(), each.getValue());
        }
        Message received = HeaderTests.passed(probe, session, message);
        for (Map.Entry<String, Object> each : values().entrySet()) {
            Check.equal("the property " + each.getKey(), each.getValue(), received.getObjectProperty(each.getKey()));
        }
        Check.equal("as a primitive", (byte) -7, received.getByteProperty("aByte"));
        Check.equal("as a primitive", 1.5f, received.getFloatProperty("aFloat"));
    }

    @Rule(clause = "3.5.5",
            says = "An object of any other class cannot be a property: a MessageFormatException.")
    void otherObjectsCannotBeProperties(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createMessage();
        for (Object wrong : new Object[] {List.of(1), new byte[] {1}, new java.util.Date(0), Map.of()}) {
            Check.raises(MessageFormatException.class, "setObjectProperty() with a " + wrong.getClass().getSimpleName(),
                    () -> message.setObjectProperty("name", wrong));
        }
        Check.equal("propertyExists()", false, message.propertyExists("name"));
    }

    @Rule(clause = "3.5.6",
            says = "The names of properties are all that were set, and no header fields.")
    void propertyNamesAreThoseThatWereSet(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createMessage();
        message.setJMSType("type");
        message.setJMSCorrelationID("id");
        message.setIntProperty("one", 1);
        message.setStringProperty("two", "2");
        message.setStringProperty("$dollar_and_underscore", "3");
        Message received = HeaderTests.passed(probe, session, message);
        Set<Object> names = new HashSet<>(Probe.listed(received.getPropertyNames()));
        names.removeIf(name -> name.toString().startsWith("JMSX") || name.toString().startsWith("JMS_"));
        Check.equal("getPropertyNames()", Set.of("one", "two", "$dollar_and_underscore"), names);
        Check.equal("propertyExists() of a property", true, received.propertyExists("one"));
        Check.equal("propertyExists() of another", false, received.propertyExists("three"));
    }

    @Rule(clause = "3.5.3",
            says = "Properties of a received message cannot be written: a MessageNotWriteableException.")
    void propertiesOfAReceivedMessageAreReadOnly(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createMessage();
        message.setIntProperty("one", 1);
        Message received = HeaderTests.passed(probe, session, message);
        Check.raises(MessageNotWriteableException.class, "setIntProperty()", () -> received.setIntProperty("one", 2));
        Check.raises(MessageNotWriteableException.class, "setStringProperty() of a new name",
                () -> received.setStringProperty("two", "2"));
        Check.raises(MessageNotWriteableException.class, "setObjectProperty()",
                () -> received.setObjectProperty("two", 2L));
        Check.equal("the property", 1, received.getIntProperty("one"));
    }

    @Rule(clause = "3.5.7",
            says = "ClearProperties removes all properties, and leaves the body; others can be set then.")
    void propertiesMayBeCleared(Probe probe) throws Exception {
        Session session = probe.session();
        TextMessage message = session.createTextMessage("a");
        message.setIntProperty("one", 1);
        TextMessage received = (TextMessage) HeaderTests.passed(probe, session, message);
        received.clearProperties();
        Check.equal("propertyExists()", false, received.propertyExists("one"));
        Check.equal("the text", "a", received.getText());
        received.setIntProperty("two", 2);
        Check.equal("the new property", 2, received.getIntProperty("two"));
        Message again = HeaderTests.passed(probe, session, received);
        Check.equal("the property after another send", 2, again.getIntProperty("two"));
        Check.equal("the old property after another send", false, again.propertyExists("one"));
    }

    @Rule(clause = "3.5.8",
            says = "A property that was not set is read as null: no string, no object, false, and no number.")
    void missingPropertyIsNull(Probe probe) throws Exception {
        Session session = probe.session();
        Message received = HeaderTests.passed(probe, session, session.createMessage());
        Check.equal("getStringProperty()", null, received.getStringProperty("none"));
        Check.equal("getObjectProperty()", null, received.getObjectProperty("none"));
        Check.equal("getBooleanProperty()", false, received.getBooleanProperty("none"));
        Check.raises(NumberFormatException.class, "getByteProperty()", () -> received.getByteProperty("none"));
        Check.raises(NumberFormatException.class, "getShortProperty()", () -> received.getShortProperty("none"));
        Check.raises(NumberFormatException.class, "getIntProperty()", () -> received.getIntProperty("none"));
        Check.raises(NumberFormatException.class, "getLongProperty()", () -> received.getLongProperty("none"));
        Check.raises(NullPointerException.class, "getFloatProperty()", () -> received.getFloatProperty("none"));
        Check.raises(NullPointerException.class, "getDoubleProperty()", () -> received.getDoubleProperty("none"));
    }

    @Rule(clause = "3.5.1",
            says = "A property needs a name: none and the empty one are an IllegalArgumentException.")
    void propertyNeedsAName(Probe probe) throws Exception {
        Message message = probe.session().createMessage();
        for (String none : new String[] {null, ""}) {
            Check.raises(IllegalArgumentException.class, "setStringProperty() with the name " + none,
                    () -> message.setStringProperty(none, "a"));
            Check.raises(IllegalArgumentException.class, "setObjectProperty() with the name " + none,
                    () -> message.setObjectProperty(none, 1));
        }
    }

    @Rule(clause = "3.5.1",
            says = "Names of properties obey the rules for identifiers of selectors; others are refused.")
    void propertyNamesAreIdentifiers(Probe probe) throws Exception {
        Message message = probe.session().createMessage();
        for (String name : new String[] {"a", "_a", "$a", "a1", "größe", "名前", "JMSXGroupID"}) {
            message.setStringProperty(name, "value");
            Check.equal("the property " + name, "value", message.getStringProperty(name));
        }
        areRefused(message, "1a", "a b", "a'b", "a-b", "NULL", "TRUE", "NOT", "AND", "IN");
    }

    @Rule(clause = "3.5.1",
            says = "Words of selectors are refused as names of properties, in lower case too.",
            clientBreaksIt = "it knows these words in upper case only")
    void wordsOfSelectorsAreNoNames(Probe probe) throws Exception {
        areRefused(probe.session().createMessage(), "null", "true", "Not", "and", "in");
    }

    private static void areRefused(Message message, String... names) {
        for (String name : names) {
            Check.raises(Exception.class, "setStringProperty() with the name " + name,
                    () -> message.setStringProperty(name, "value"));
        }
    }

    @Rule(clause = "3.5.9",
            says = "JMSXGroupID and JMSXGroupSeq arrive as the application set them.")
    void groupPropertiesArrive(Probe probe) throws Exception {
        Session session = probe.session();
        for (int sequence : new int[] {1, 2, Integer.MAX_VALUE, -1}) {
            Message message = session.createMessage();
            message.setStringProperty("JMSXGroupID", "group");
            message.setIntProperty("JMSXGroupSeq", sequence);
            Message received = HeaderTests.passed(probe, session, message);
            Check.equal("JMSXGroupID", "group", received.getStringProperty("JMSXGroupID"));
            Check.equal("JMSXGroupSeq", sequence, received.getIntProperty("JMSXGroupSeq"));
            Check.equal("propertyExists()", true, received.propertyExists("JMSXGroupID"));
        }
    }

    @Rule(clause = "3.5.11",
            says = "A received message has the property JMSXDeliveryCount; the sender cannot set it.")
    void deliveryCountIsSetByTheProvider(Probe probe) throws Exception {
        Session session = probe.session();
        Message received = HeaderTests.passed(probe, session, session.createMessage());
        Check.equal("propertyExists()", true, received.propertyExists("JMSXDeliveryCount"));
        Check.equal("JMSXDeliveryCount", 1, received.getIntProperty("JMSXDeliveryCount"));
    }

    @Rule(clause = "3.5.9",
            says = "JMSXUserID, if the provider sets it, is the user who sent the message.")
    void userIdIsTheSender(Probe probe) throws Exception {
        Session session = probe.session(Session.AUTO_ACKNOWLEDGE, "jms.populateJMSXUserID=true");
        Message received = HeaderTests.passed(probe, session, session.createMessage());
        String user = received.getStringProperty("JMSXUserID");
        if (user == null) {
            throw new NotApplicable(NotApplicable.Kind.NOT_OFFERED, "the provider sets no JMSXUserID");
        }
        Check.equal("JMSXUserID", Settings.USER, user);
    }
}
