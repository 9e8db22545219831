package jmsapi;

/** The broker under test and what is known of it, from the variables of the environment that runner.py sets. */
final class Settings {
    /** The broker's address as Qpid JMS writes it, amqp://HOST:PORT, without options. */
    static final String URL = variable("JMS_API_URL", "amqp://127.0.0.1:5672");

    /** The user to log in as, empty for none. */
    static final String USER = variable("JMS_API_USER", "");
    static final String PASSWORD = variable("JMS_API_PASSWORD", "");

    /** The only SASL mechanism to use, empty for the client's choice. */
    static final String MECHANISM = variable("JMS_API_MECHANISM", "");

    /** How names of queues and topics become the broker's addresses: {name} is the name. */
    static final String QUEUE = variable("JMS_API_QUEUE", "{name}");
    static final String TOPIC = variable("JMS_API_TOPIC", "{name}");

    /** An address that the broker refuses to create, and a small queue that rejects messages when it is full. */
    static final String MISSING = variable("JMS_API_MISSING", "");
    static final String REJECTING = variable("JMS_API_REJECTING", "");

    /** PEM files: the trusted authorities, and a certificate to show, with its key. Empty for none. */
    static final String CA = variable("JMS_API_CA", "");
    static final String CERT = variable("JMS_API_CERT", "");
    static final String KEY = variable("JMS_API_KEY", "");

    /** Milliseconds to wait for each answer, and the most that a test may take. */
    static final long TIMEOUT_MS = Long.parseLong(variable("JMS_API_TIMEOUT_MS", "5000"));
    static final long LIMIT_MS = Long.parseLong(variable("JMS_API_LIMIT_MS", "10000"));

    private Settings() {
    }

    /** Return the address of a missing node; the test does not apply without one. */
    static String missing() {
        return needed(MISSING, "--missing-address");
    }

    /** Return the name of the queue that rejects; the test does not apply without one. */
    static String rejecting() {
        return needed(REJECTING, "--rejecting-address");
    }

    private static String needed(String value, String option) {
        if (value.isEmpty()) {
            throw new NotApplicable(NotApplicable.Kind.OPTION_MISSING, "needs " + option);
        }
        return value;
    }

    private static String variable(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }
}
