package jmsapi;

/** The test cannot be tried, because of the reason. */
final class NotApplicable extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The kinds of reasons, as the harness names them. */
    enum Kind { OPTION_MISSING, NOT_OFFERED, DID_NOT_HAPPEN, IGNORED, CLIENT }

    final Kind kind;

    NotApplicable(Kind kind, String reason) {
        super(reason);
        this.kind = kind;
    }
}
