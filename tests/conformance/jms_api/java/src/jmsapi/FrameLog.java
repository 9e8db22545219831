package jmsapi;

import java.util.ArrayList;
import java.util.List;
import org.slf4j.ILoggerFactory;
import org.slf4j.IMarkerFactory;
import org.slf4j.Logger;
import org.slf4j.Marker;
import org.slf4j.event.Level;
import org.slf4j.helpers.BasicMarkerFactory;
import org.slf4j.helpers.LegacyAbstractLogger;
import org.slf4j.helpers.MessageFormatter;
import org.slf4j.helpers.NOPMDCAdapter;
import org.slf4j.spi.MDCAdapter;
import org.slf4j.spi.SLF4JServiceProvider;

/** The client's log: only its frames are kept, for the report of a test, and its other lines are dropped. */
public final class FrameLog implements SLF4JServiceProvider {
    private static final String FRAMES = "org.apache.qpid.jms.provider.amqp.FRAMES";

    /** The most lines that are kept for a test, and the most characters of a line. */
    private static final int LINES_MAX = 400;
    private static final int LINE_MAX = 400;

    private static final List<String> LINES = new ArrayList<>();

    private final IMarkerFactory markers = new BasicMarkerFactory();
    private final MDCAdapter context = new NOPMDCAdapter();

    /** Return the lines since the last call, and forget them. */
    static List<String> taken() {
        synchronized (LINES) {
            List<String> taken = new ArrayList<>(LINES);
            LINES.clear();
            return taken;
        }
    }

    /** Add a line, such as a step of the test itself. */
    static void add(String line) {
        synchronized (LINES) {
            if (LINES.size() < LINES_MAX) {
                LINES.add(line.length() > LINE_MAX ? line.substring(0, LINE_MAX) + "…" : line);
            } else if (LINES.size() == LINES_MAX) {
                LINES.add("… further lines are left out");
            }
        }
    }

    @Override
    public ILoggerFactory getLoggerFactory() {
        return name -> new FrameLogger(name);
    }

    @Override
    public IMarkerFactory getMarkerFactory() {
        return markers;
    }

    @Override
    public MDCAdapter getMDCAdapter() {
        return context;
    }

    @Override
    public String getRequestedApiVersion() {
        return "2.0.99";
    }

    @Override
    public void initialize() {
        // there is nothing to prepare
    }

    /** The logger of one name, which is silent unless the name is that of frames. */
    private static final class FrameLogger extends LegacyAbstractLogger {
        private static final long serialVersionUID = 1;

        FrameLogger(String name) {
            this.name = name;
        }

        @Override
        public boolean isTraceEnabled() {
            return FRAMES.equals(name);
        }

        @Override
        public boolean isDebugEnabled() {
            return false;
        }

        @Override
        public boolean isInfoEnabled() {
            return false;
        }

        @Override
        public boolean isWarnEnabled() {
            return false;
        }

        @Override
        public boolean isErrorEnabled() {
            return false;
        }

        @Override
        protected String getFullyQualifiedCallerName() {
            return Logger.class.getName();
        }

        @Override
        protected void handleNormalizedLoggingCall(
                Level level, Marker marker, String pattern, Object[] arguments, Throwable thrown) {
            String line = MessageFormatter.basicArrayFormat(pattern, arguments);
            if (line.contains("Sasl")) {
                // these frames may contain a password
                line = line.replaceFirst("(SaslInit\\{mechanism=[^,]*|SaslChallenge\\{|SaslResponse\\{).*", "$1…}");
            }
            add(line.replaceFirst("\\[(\\d+):(\\d+)\\] SENT: ", "→ connection $1, channel $2 ")
                    .replaceFirst("\\[(\\d+):(\\d+)\\] RECV: ", "← connection $1, channel $2 "));
        }
    }
}
