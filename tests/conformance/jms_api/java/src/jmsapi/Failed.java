package jmsapi;

/** The rule was broken: what was expected and what happened, in words. */
final class Failed extends AssertionError {
    private static final long serialVersionUID = 1;

    final String expected;
    final String got;

    Failed(String expected, String got) {
        super("expected " + expected + ", got " + got);
        this.expected = expected;
        this.got = got;
    }
}
