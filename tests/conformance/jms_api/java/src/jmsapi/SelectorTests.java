package jmsapi;

import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;

/** What selectors mean (3.8.1); their syntax is in SelectorSyntaxTests. */
final class SelectorTests {
    /** A queue with one message that has many properties, and browsers that tell whether a selector matches it. */
    static final class Sample {
        private final Probe probe;
        private final Session session;
        final Message message;

        Sample(Probe probe, String... options) throws JMSException {
            this.probe = probe;
            this.session = probe.session(Session.AUTO_ACKNOWLEDGE, options);
            message = session.createTextMessage("the message");
            message.setJMSType("car");
            message.setJMSCorrelationID("order 1");
            message.setStringProperty("colour", "blue");
            message.setStringProperty("quoted", "it's");
            message.setStringProperty("digits", "2");
            message.setStringProperty("text", "12993");
            message.setStringProperty("percent", "100%_x");
            message.setIntProperty("weight", 2500);
            message.setLongProperty("huge", Long.MAX_VALUE);
            message.setDoubleProperty("ratio", 2.5);
            message.setFloatProperty("half", 0.5f);
            message.setByteProperty("small", (byte) 3);
            message.setShortProperty("negative", (short) -3);
            message.setBooleanProperty("yes", true);
            message.setBooleanProperty("no", false);
            message.setStringProperty("_under$dollar", "u");
            message.setStringProperty("größe", "g");
            MessageProducer producer = session.createProducer(probe.queue(session));
            producer.send(message, DeliveryMode.PERSISTENT, 7, 0);
            producer.close();
            // what does not match says something only if the message is there
            matches("colour IS NOT NULL");
        }

        private boolean selectedBy(String selector) throws JMSException {
            try (QueueBrowser browser = session.createBrowser(probe.queue(session), selector)) {
                return browser.getEnumeration().hasMoreElements();
            }
        }

        Sample matches(String... selectors) throws JMSException {
            for (String selector : selectors) {
                Check.that(selectedBy(selector), "a match of " + selector, "none");
            }
            return this;
        }

        Sample doesNotMatch(String... selectors) throws JMSException {
            for (String selector : selectors) {
                Check.that(!selectedBy(selector), "no match of " + selector, "one");
            }
            return this;
        }
    }

    @Rule(clause = "3.8.1",
            says = "A consumer gets the messages for which its selector is true; false and unknown do not match.")
    void trueAloneMatches(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        for (Integer size : new Integer[] {1, 9, null}) {
            Message message = session.createTextMessage("size " + size);
            if (size != null) {
                message.setIntProperty("size", size);
            }
            producer.send(message);
        }
        MessageConsumer large = session.createConsumer(probe.queue(session), "size > 4");
        Probe.expect(large, "size 9");
        Check.nothing(large, "false and unknown do not match");
        MessageConsumer small = session.createConsumer(probe.queue(session), "NOT (size > 4)");
        Probe.expect(small, "size 1");
        Check.nothing(small, "the negation of unknown is unknown");
        Probe.expect(session.createConsumer(probe.queue(session), "size IS NULL"), "size null");
    }

    @Rule(clause = "3.8.1.1",
            says = "Comparisons of numbers: =, <>, <, <=, >, >=, exact and approximate ones among each other.")
    void numbersAreCompared(Probe probe) throws Exception {
        new Sample(probe)
                .matches("weight = 2500", "weight <> 2501", "weight >= 2500", "weight <= 2500", "weight > 2499",
                        "weight < 2501", "weight = 2500.0", "ratio > 2", "ratio < 3", "small = 3", "negative = -3",
                        "half = 0.5", "huge = 9223372036854775807", "2500 = weight", "2 < ratio")
                .doesNotMatch("weight = 2501", "weight <> 2500", "weight > 2500", "weight < 2500", "ratio = 2",
                        "huge < 0", "negative > 0", "huge = 9223372036854775806");
    }

    @Rule(clause = "3.8.1.1",
            says = "Strings and booleans are compared by = and <> only.")
    void stringsAndBooleansAreCompared(Probe probe) throws Exception {
        new Sample(probe)
                .matches("colour = 'blue'", "colour <> 'red'", "quoted = 'it''s'", "yes = TRUE", "no = FALSE",
                        "yes <> FALSE", "yes", "NOT no", "colour <> ''")
                .doesNotMatch("colour = 'BLUE'", "colour = 'blue '", "colour <> 'blue'", "no", "NOT yes", "yes = no");
    }

    @Rule(clause = "3.8.1.1",
            says = "Values of unlike types are not equal, and a string is never converted to a number.")
    void unlikeTypesDoNotCompare(Probe probe) throws Exception {
        new Sample(probe).doesNotMatch("digits = 2", "digits > 1", "weight = '2500'", "yes = 'true'", "colour = 1",
                "yes = 1", "digits BETWEEN 1 AND 3");
    }

    @Rule(clause = "3.8.1.1",
            says = "Arithmetic: unary and binary + and -, * and /, in their precedence, by Java's promotion.")
    void arithmeticIsEvaluated(Probe probe) throws Exception {
        new Sample(probe)
                .matches("weight + 1 = 2501", "weight - 1 = 2499", "weight * 2 = 5000", "weight / 2 = 1250",
                        "-weight = -2500", "+weight = 2500", "2 + 3 * 4 = 14", "(2 + 3) * 4 = 20", "10 - 4 - 3 = 3",
                        "100 / 10 / 2 = 5", "7 / 2.0 = 3.5", "ratio * 2 = 5", "small - negative = 6",
                        "-(-weight) = 2500")
                .doesNotMatch("2 + 3 * 4 = 20", "10 - 4 - 3 = 9");
    }

    @Rule(clause = "3.8.1.1",
            says = "The quotient of two exact numbers is exact, as Java's promotion wants it.")
    void exactNumbersHaveAnExactQuotient(Probe probe) throws Exception {
        new Sample(probe).matches("7 / 2 = 3", "-7 / 2 = -3", "weight / 1000 = 2").doesNotMatch("7 / 2 = 3.5");
    }

    @Rule(clause = "3.8.1.1",
            says = "BETWEEN includes its borders; NOT BETWEEN is its opposite.")
    void betweenIncludesItsBorders(Probe probe) throws Exception {
        new Sample(probe)
                .matches("weight BETWEEN 2500 AND 2600", "weight BETWEEN 2400 AND 2500", "weight NOT BETWEEN 1 AND 2",
                        "ratio BETWEEN 2 AND 3", "weight BETWEEN 2 * 1250 AND 2600")
                .doesNotMatch("weight BETWEEN 2501 AND 2600", "weight NOT BETWEEN 2500 AND 2500",
                        "weight BETWEEN 2600 AND 2400");
    }

    @Rule(clause = "3.8.1.1",
            says = "IN and NOT IN compare a string with each of a list.")
    void inComparesWithEachOfAList(Probe probe) throws Exception {
        new Sample(probe)
                .matches("colour IN ('red', 'blue')", "colour IN ('blue')", "colour NOT IN ('red', 'green')",
                        "quoted IN ('it''s')")
                .doesNotMatch("colour IN ('red', 'green')", "colour NOT IN ('red', 'blue')", "colour IN ('Blue')");
    }

    @Rule(clause = "3.8.1.1",
            says = "LIKE: % is any sequence, _ one character, and the others stand for themselves; ESCAPE escapes.")
    void likeMatchesPatterns(Probe probe) throws Exception {
        new Sample(probe)
                .matches("text LIKE '12%3'", "colour LIKE 'bl_e'", "colour LIKE '%'", "colour LIKE 'blue%'",
                        "colour LIKE '%lu%'", "text NOT LIKE '12%4'", "percent LIKE '100\\%%' ESCAPE '\\'",
                        "percent LIKE '100!%!_x' ESCAPE '!'", "quoted LIKE 'it''_'", "colour LIKE '____'")
                .doesNotMatch("text LIKE '12_3'", "colour LIKE 'blu'", "colour LIKE 'bl.e'", "colour LIKE 'b.*'",
                        "colour LIKE 'BL%'", "text NOT LIKE '12%3'", "colour LIKE 'bl\\_e' ESCAPE '\\'",
                        "colour LIKE '___'", "percent LIKE '100!__x' ESCAPE '!'");
    }

    @Rule(clause = "3.8.1.1",
            says = "IS NULL and IS NOT NULL tell whether a property or header exists.")
    void isNullTellsWhatIsMissing(Probe probe) throws Exception {
        new Sample(probe)
                .matches("missing IS NULL", "colour IS NOT NULL", "JMSType IS NOT NULL", "no IS NOT NULL",
                        "JMSXGroupID IS NULL")
                .doesNotMatch("missing IS NOT NULL", "colour IS NULL", "JMSCorrelationID IS NULL");
    }

    @Rule(clause = "3.8.1.2",
            says = "A comparison with null is unknown, and so is its negation: it matches in neither way.")
    void comparisonsWithNullAreUnknown(Probe probe) throws Exception {
        new Sample(probe).doesNotMatch("missing = 1", "NOT missing = 1", "missing <> 1", "missing > 1",
                "NOT (missing > 1)", "missing + 1 = 2", "missing * 0 = 0", "missing BETWEEN 1 AND 2",
                "missing NOT BETWEEN 1 AND 2", "missing IN ('a')", "missing NOT IN ('a')", "missing LIKE '%'",
                "missing NOT LIKE 'a'", "missing", "NOT missing", "weight > missing");
    }

    @Rule(clause = "3.8.1.2",
            says = "AND, OR and NOT follow the tables of three values.")
    void logicHasThreeValues(Probe probe) throws Exception {
        new Sample(probe)
                .matches("yes AND yes", "yes OR missing = 1", "missing = 1 OR yes", "NOT (no AND missing = 1)",
                        "NOT (missing = 1 AND no)", "no OR yes", "NOT (no OR no)")
                .doesNotMatch("yes AND missing = 1", "NOT (yes AND missing = 1)", "no OR missing = 1",
                        "NOT (no OR missing = 1)", "missing = 1 AND missing = 1", "NOT (missing = 1 OR missing = 1)",
                        "yes AND no", "no OR no", "NOT (yes OR missing = 1)");
    }

    @Rule(clause = "3.8.1.1",
            says = "NOT binds more than AND, AND more than OR; parentheses change that.")
    void logicHasPrecedence(Probe probe) throws Exception {
        new Sample(probe)
                .matches("yes OR yes AND no", "NOT no AND yes", "NOT no OR no", "no AND no OR yes", "NOT (yes AND no)")
                .doesNotMatch("(yes OR yes) AND no", "NOT yes OR no", "no AND (no OR yes)", "NOT (no OR yes)");
    }

    @Rule(clause = "3.8.1.1",
            says = "Header fields can be selected: type, correlation, identifier, time, priority.")
    void headersAreSelected(Probe probe) throws Exception {
        Sample sample = new Sample(probe);
        String id = sample.message.getJMSMessageID();
        long time = sample.message.getJMSTimestamp();
        sample.matches("JMSType = 'car'", "JMSCorrelationID = 'order 1'", "JMSMessageID = '" + id + "'",
                        "JMSTimestamp = " + time, "JMSTimestamp > " + (time - 1), "JMSPriority = 7", "JMSPriority > 4",
                        "JMSType = 'car' AND colour = 'blue' AND weight > 2499")
                .doesNotMatch("JMSType = 'bus'", "JMSMessageID = 'ID:1'", "JMSPriority < 7",
                        "JMSTimestamp < " + time, "JMSCorrelationID = 'order 2'");
    }

    @Rule(clause = "3.8.1.3",
            says = "JMSDeliveryMode has the values PERSISTENT and NON_PERSISTENT in a selector.")
    void deliveryModeIsSelected(Probe probe) throws Exception {
        new Sample(probe)
                .matches("JMSDeliveryMode = 'PERSISTENT'", "JMSDeliveryMode <> 'NON_PERSISTENT'")
                .doesNotMatch("JMSDeliveryMode = 'NON_PERSISTENT'");
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(session.createTextMessage("volatile"));
        Probe.expect(session.createConsumer(probe.queue(session), "JMSDeliveryMode = 'NON_PERSISTENT'"), "volatile");
    }

    @Rule(clause = "3.5.9",
            says = "JMSX properties can be selected, whether or not the message has them.")
    void jmsxPropertiesAreSelected(Probe probe) throws Exception {
        Session session = probe.session();
        Message message = session.createTextMessage("of the group");
        message.setStringProperty("JMSXGroupID", "g");
        message.setIntProperty("JMSXGroupSeq", 3);
        session.createProducer(probe.queue(session)).send(message);
        probe.fill("of none");
        MessageConsumer grouped = session.createConsumer(probe.queue(session), "JMSXGroupID = 'g' AND JMSXGroupSeq = 3");
        Probe.expect(grouped, "of the group");
        Check.nothing(grouped, "the other has no group");
        Probe.expect(session.createConsumer(probe.queue(session), "JMSXGroupID IS NULL"), "of none");
    }
}
