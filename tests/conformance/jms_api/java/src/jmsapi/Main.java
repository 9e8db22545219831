package jmsapi;

import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Runs the tests, one after another, against the broker that the environment names (Settings), and prints a JSON
 * object in a line for each: its name, clause and verdict, what was expected and got, milliseconds, and the log.
 * Arguments are the names of the tests to run; without any, all run.
 */
public final class Main {
    /** The classes with the tests, in the order in which they run. */
    private static final List<Class<?>> CLASSES = List.of(
            ConnectionTests.class, StartStopTests.class, CloseTests.class, SessionTests.class,
            TransactionTests.class, AcknowledgeTests.class, ListenerTests.class, ProducerTests.class,
            AsyncSendTests.class, LifetimeTests.class, ConsumerTests.class, BodyReceiveTests.class,
            QueueTests.class, TemporaryTests.class, TopicTests.class, SharedTests.class,
            DurableTests.class, HeaderTests.class, PropertyTests.class, BodyTests.class,
            ConversionTests.class, SelectorTests.class, SelectorSyntaxTests.class, ContextTests.class,
            DomainTests.class, ConnectionConsumerTests.class, LossTests.class);

    /** The most milliseconds that a test may take. */
    private static final long TEST_LIMIT_MS = Settings.LIMIT_MS;

    private Main() {
    }

    public static void main(String[] names) {
        Set<String> wanted = new HashSet<>(Arrays.asList(names));
        for (Class<?> held : CLASSES) {
            for (Method test : tests(held)) {
                if (wanted.isEmpty() || wanted.contains(test.getName())) {
                    System.out.println(judged(held, test));
                    System.out.flush();
                }
            }
        }
        // threads of connections that did not close would keep the JVM alive
        Runtime.getRuntime().halt(0);
    }

    private static List<Method> tests(Class<?> held) {
        return Arrays.stream(held.getDeclaredMethods())
                .filter(method -> method.isAnnotationPresent(Rule.class))
                .sorted(Comparator.comparing(Method::getName))
                .collect(Collectors.toList());
    }

    /** Run a test in a thread of its own, for TEST_LIMIT_MS at most, and return its line. */
    private static String judged(Class<?> held, Method test) {
        Probe.prepare();
        FrameLog.taken();
        Probe probe = new Probe(test.getName());
        List<Throwable> thrown = new ArrayList<>();
        long start = System.nanoTime();
        Thread thread = new Thread(() -> run(held, test, probe, thrown), test.getName());
        thread.setDaemon(true);
        thread.start();
        Throwable problem;
        try {
            thread.join(TEST_LIMIT_MS);
            problem = thread.isAlive() ? unfinished(thread) : thrown.isEmpty() ? null : thrown.get(0);
        } catch (InterruptedException stopped) {
            problem = stopped;
        }
        problem = unlessUnsupported(problem);
        long milliseconds = (System.nanoTime() - start) / 1_000_000;
        List<String> log = FrameLog.taken();
        probe.closeAll();
        return line(test, problem, milliseconds, log);
    }

    private static void run(Class<?> held, Method test, Probe probe, List<Throwable> thrown) {
        try {
            var constructor = held.getDeclaredConstructor();
            test.invoke(constructor.newInstance(), probe);
            probe.checkBackground();
        } catch (InvocationTargetException failure) {
            // what failed in a listener is the cause of what the test misses afterwards
            Throwable within = failure.getCause() instanceof NotApplicable ? null : probe.inBackground();
            thrown.add(within == null ? failure.getCause() : within);
        } catch (ReflectiveOperationException | RuntimeException | Error failure) {
            thrown.add(failure);
        }
    }

    /** Return the problem; one of a feature that the broker does not offer becomes "not applicable". */
    private static Throwable unlessUnsupported(Throwable problem) {
        String message = problem instanceof JMSException || problem instanceof JMSRuntimeException
                ? String.valueOf(problem.getMessage()) : "";
        int start = message.indexOf("does not support");
        return start < 0 ? problem
                : new NotApplicable(NotApplicable.Kind.NOT_OFFERED, "the broker " + message.substring(start));
    }

    private static Throwable unfinished(Thread thread) {
        String place = Arrays.stream(thread.getStackTrace())
                .filter(frame -> frame.getClassName().startsWith("jmsapi") || frame.getClassName().startsWith("org.apache"))
                .limit(6)
                .map(frame -> frame.getMethodName() + ":" + frame.getLineNumber())
                .collect(Collectors.joining(" < "));
        thread.interrupt();
        return new Failed("a result within " + TEST_LIMIT_MS / 1000 + " s", "none; the test waits in " + place);
    }

    private static String line(Method test, Throwable problem, long milliseconds, List<String> log) {
        Rule rule = test.getAnnotation(Rule.class);
        String verdict = "passed";
        String expected = "";
        String got = "";
        String kind = "";
        String reason = "";
        if (problem instanceof NotApplicable) {
            verdict = "not applicable";
            kind = ((NotApplicable) problem).kind.name();
            reason = problem.getMessage();
        } else if (problem instanceof Failed) {
            verdict = "failed";
            expected = ((Failed) problem).expected;
            got = ((Failed) problem).got;
        } else if (problem != null) {
            verdict = "failed";
            expected = "no exception but those that the rule names";
            got = problem + place(problem);
        }
        if (verdict.equals("failed") && !rule.clientBreaksIt().isEmpty()) {
            verdict = "not applicable";
            kind = NotApplicable.Kind.CLIENT.name();
            reason = "Qpid JMS itself breaks the rule: " + rule.clientBreaksIt();
        }
        return Json.object("name", test.getName(), "clause", rule.clause(), "verdict", verdict, "expected", expected,
                "got", got, "kind", kind, "reason", reason, "ms", milliseconds, "log", log);
    }

    /** Return where in the suite an exception was thrown. */
    private static String place(Throwable problem) {
        return Arrays.stream(problem.getStackTrace())
                .filter(frame -> frame.getClassName().startsWith("jmsapi"))
                .findFirst()
                .map(frame -> " at " + frame.getFileName() + ":" + frame.getLineNumber())
                .orElse("");
    }
}
