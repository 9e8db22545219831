package jmsapi;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import java.util.Arrays;
import java.util.Objects;

/** What tests claim; each claim that does not hold ends the test as failed. */
final class Check {
    /** A call that may fail. */
    interface Action {
        void run() throws Exception;
    }

    private Check() {
    }

    /** Fail unless `got` equals `expected`; `what` names the value. Arrays are compared by their elements. */
    static void equal(String what, Object expected, Object got) {
        if (!Objects.deepEquals(expected, got)) {
            throw new Failed(what + " = " + shown(expected), shown(got));
        }
    }

    /** Fail unless `claim` is true. */
    static void that(boolean claim, String expected, Object got) {
        if (!claim) {
            throw new Failed(expected, shown(got));
        }
    }

    /** Fail unless `action` throws an exception of `kind`; return it. */
    static <T extends Throwable> T raises(Class<T> kind, String what, Action action) {
        try {
            action.run();
        } catch (Failed | NotApplicable verdict) {
            throw verdict;
        } catch (Throwable thrown) {
            if (kind.isInstance(thrown)) {
                return kind.cast(thrown);
            }
            throw new Failed(kind.getSimpleName() + " from " + what, thrown.toString());
        }
        throw new Failed(kind.getSimpleName() + " from " + what, "no exception");
    }

    /** Fail if there is a message for `consumer` now. */
    static void nothing(MessageConsumer consumer, String why) throws JMSException {
        Message message = consumer.receiveNoWait();
        if (message != null) {
            throw new Failed("no message: " + why, shown(message));
        }
    }

    private static String shown(Object value) {
        if (value instanceof Object[]) {
            return Arrays.deepToString((Object[]) value);
        }
        if (value instanceof byte[]) {
            return Arrays.toString((byte[]) value);
        }
        if (value instanceof Message) {
            return Probe.described((Message) value);
        }
        return value instanceof String ? "\"" + value + "\"" : String.valueOf(value);
    }
}
