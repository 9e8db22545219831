package jmsapi;

import jakarta.jms.InvalidSelectorException;
import jakarta.jms.InvalidSelectorRuntimeException;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Session;

/** The syntax of selectors (3.8.1.1). */
final class SelectorSyntaxTests {
    private static final String[] WRONG = {"weight >", "= 3", "weight = = 3", "(weight = 3", "weight = 3)",
            "weight BETWEEN 1", "weight BETWEEN 1 OR 2", "colour IN ()", "colour IN 'red'", "colour LIKE 3",
            "colour LIKE 'a' ESCAPE 'ab'", "colour = 'open", "weight IS 3", "AND", "weight = 3 AND", "NOT",
            "colour LIKE", "weight 3", "3 +", "IS NULL", "#", "weight == 3", "weight != 3"};

    @Rule(clause = "3.8.1.1",
            says = "Names of operators and literals may be written in upper or lower case.")
    void keywordsHaveNoCase(Probe probe) throws Exception {
        new SelectorTests.Sample(probe).matches("yes = true", "no = False", "colour is not null", "weight between 1 and 9999",
                "colour in ('blue')", "colour Like 'bl%' And Not no", "missing Is Null or no",
                "percent like '100!%%' escape '!'");
    }

    @Rule(clause = "3.8.1.1",
            says = "Identifiers are case sensitive, and may begin with _ and $.")
    void identifiersHaveCase(Probe probe) throws Exception {
        new SelectorTests.Sample(probe)
                .matches("Colour IS NULL", "colour IS NOT NULL", "_under$dollar = 'u'",
                        "jmstype IS NULL")
                .doesNotMatch("COLOUR = 'blue'", "jmstype = 'car'");
    }

    @Rule(clause = "3.8.1.1",
            says = "Exact numbers are written as in Java: decimal, hexadecimal, octal, with a sign.")
    void exactNumbersAreLiterals(Probe probe) throws Exception {
        new SelectorTests.Sample(probe).matches("57 = 57", "+62 = 62", "-957 < 0", "0x10 = 16", "0XfF = 255", "010 = 8",
                "weight = 2500L", "9223372036854775807 = huge", "-9223372036854775807 < 0");
    }

    @Rule(clause = "3.8.1.1",
            says = "Approximate numbers are written as in Java: with a decimal point or an exponent.")
    void approximateNumbersAreLiterals(Probe probe) throws Exception {
        new SelectorTests.Sample(probe).matches("7E3 = 7000", "-57.9E2 = -5790", "7. = 7", "-95.7 < 0", "+6.2 > 6",
                ".5 = half", "1e-3 < 1", "2.5E0 = ratio");
    }

    @Rule(clause = "3.8.1.1",
            says = "Strings are in single quotes, which are doubled within; any other character stands for itself.")
    void stringsAreLiterals(Probe probe) throws Exception {
        new SelectorTests.Sample(probe).matches("'it''s' = quoted", "'' <> 'a'", "'größe 名前' = 'größe 名前'",
                "'a\"b' = 'a\"b'", "'-- no comment' <> 'a'", "'\\' = '\\'", "'AND' <> 'OR'");
    }

    @Rule(clause = "3.8.1.1",
            says = "Spaces, tabs, form feeds and line ends separate the parts of a selector.")
    void whitespaceSeparates(Probe probe) throws Exception {
        new SelectorTests.Sample(probe).matches("\tweight\n=\r\n2500\f", "weight=2500", "(weight=2500)AND(yes)",
                "colour\tIN\n(\n'blue'\n)", "colour='blue'OR no");
    }

    @Rule(clause = "3.8.1.1",
            says = "A selector of wrong syntax is an InvalidSelectorException at once.")
    void wrongSyntaxIsInvalid(Probe probe) throws Exception {
        Session session = probe.session();
        for (String wrong : WRONG) {
            Check.raises(InvalidSelectorException.class, "createConsumer() with " + wrong,
                    () -> session.createConsumer(probe.queue(session), wrong));
        }
        Probe.send(session, probe.queue(session), "a");
        Probe.expect(session.createConsumer(probe.queue(session)), "a");
    }

    @Rule(clause = "3.8.1.1",
            says = "The broker refuses a selector of wrong syntax, also if the client does not look at it.")
    void wrongSyntaxIsRefusedByTheBroker(Probe probe) throws Exception {
        Session session = probe.session(Session.AUTO_ACKNOWLEDGE, "jms.validateSelector=false");
        for (String wrong : WRONG) {
            Check.raises(JMSException.class, "createConsumer() with " + wrong,
                    () -> session.createConsumer(probe.queue(session), wrong));
            Check.raises(JMSException.class, "createConsumer() of a topic with " + wrong,
                    () -> session.createConsumer(probe.topic(session), wrong));
        }
        Probe.send(session, probe.queue(session), "a");
        Probe.expect(session.createConsumer(probe.queue(session), "TRUE"), "a");
    }

    @Rule(clause = "3.8.1.1",
            says = "Double quotes enclose no string: the broker refuses them, though the client takes them.")
    void doubleQuotesEncloseNoString(Probe probe) throws Exception {
        Session session = probe.session();
        Check.raises(JMSException.class, "createConsumer() with double quotes",
                () -> session.createConsumer(probe.queue(session), "colour = \"red\""));
    }

    @Rule(clause = "10.3",
            says = "In a JMSContext a selector of wrong syntax is an InvalidSelectorRuntimeException.")
    void wrongSyntaxIsInvalidInAContext(Probe probe) throws Exception {
        JMSContext context = probe.context();
        Check.raises(InvalidSelectorRuntimeException.class, "createConsumer()",
                () -> context.createConsumer(context.createQueue(probe.queueName()), "a ="));
        Check.raises(InvalidSelectorRuntimeException.class, "createBrowser()",
                () -> context.createBrowser(context.createQueue(probe.queueName()), "a ="));
        Check.raises(InvalidSelectorRuntimeException.class, "createSharedDurableConsumer()",
                () -> context.createSharedDurableConsumer(context.createTopic(probe.topicName()), probe.name(), "a ="));
    }

    @Rule(clause = "3.8.1.1",
            says = "The broker takes all literals of Java and letters of any script, which the client's own check refuses.")
    void brokerTakesWhatTheClientRefuses(Probe probe) throws Exception {
        new SelectorTests.Sample(probe, "jms.validateSelector=false")
                .matches("größe = 'g'", "名前 IS NULL", "2.5d = ratio", "0.5f = half")
                .doesNotMatch("größe = 'h'", "2.5d > ratio");
    }

    @Rule(clause = "3.8.1.1",
            says = "A selector of many parts is understood.")
    void longSelectorIsUnderstood(Probe probe) throws Exception {
        StringBuilder selector = new StringBuilder("weight = 0");
        for (int number = 1; number <= 40; number++) {
            selector.append(" OR weight = ").append(number);
        }
        new SelectorTests.Sample(probe).doesNotMatch(selector.toString()).matches(selector + " OR weight = 2500");
    }
}
