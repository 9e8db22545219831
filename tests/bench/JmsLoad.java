import com.sun.management.OperatingSystemMXBean;
import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Qpid JMS producers of persistent messages, each with a connection of its own, into one queue that nobody consumes.
 *
 * <p>JmsLoad URL QUEUE PRODUCERS PER_COMMIT BYTES WARM_SECONDS SECONDS. Where PER_COMMIT is 0, every send waits until the
 * broker has accepted it, and latency is that of a send; else that of a commit. Says "warm" when the counted time begins, prints
 * one JSON object when it is over, and "drained N" after N messages have been consumed again, those of the warm time included.
 */
public final class JmsLoad {
    private static final long PATIENCE_MS = 10_000;
    private static final long REST_MS = 100;

    private final JmsConnectionFactory factory;
    private final String queue;
    private final int perCommit;
    private final byte[] body;
    private final long warmNanos;
    private final long countedNanos;

    private JmsLoad(String[] arguments) {
        factory = new JmsConnectionFactory(arguments[0]);
        queue = arguments[1];
        perCommit = Integer.parseInt(arguments[3]);
        body = new byte[Integer.parseInt(arguments[4])];
        Arrays.fill(body, (byte) 'x');
        warmNanos = (long) (Double.parseDouble(arguments[5]) * 1e9);
        countedNanos = (long) (Double.parseDouble(arguments[6]) * 1e9);
    }

    public static void main(String[] arguments) throws Exception {
        new JmsLoad(arguments).run(Integer.parseInt(arguments[2]));
    }

    /** What one producer did in the counted time: how long each send or commit took. */
    private static final class Count {
        long[] nanos = new long[1 << 16];
        int size;
        long lastNanos;

        void add(long took) {
            if (size == nanos.length) {
                nanos = Arrays.copyOf(nanos, 2 * size);
            }
            nanos[size++] = took;
        }
    }

    /** The moments that all producers share: the barriers' actions set them. */
    private long beganNanos;

    private long beganCpuNanos;
    private long warmMessages;

    private void run(int producers) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(producers);
        CyclicBarrier attached = new CyclicBarrier(producers, () -> beganNanos = System.nanoTime());
        CyclicBarrier warm = new CyclicBarrier(producers, () -> {
            System.out.println("warm");
            beganCpuNanos = cpuNanos();
            beganNanos = System.nanoTime();
        });
        List<Future<Count>> counts = new ArrayList<>();
        for (int i = 0; i < producers; i++) {
            counts.add(threads.submit(() -> produceOrEnd(attached, warm)));
        }
        List<Count> finished = new ArrayList<>();
        for (Future<Count> count : counts) {
            finished.add(count.get());
        }
        long messages = report(finished, cpuNanos() - beganCpuNanos);
        System.out.println("drained " + drain(messages + warmMessages));
        threads.shutdown();
    }

    /** A producer that fails ends the program: the others would wait for it. */
    private Count produceOrEnd(CyclicBarrier attached, CyclicBarrier warm) throws Exception {
        try {
            return produce(attached, warm);
        } catch (Exception failure) {
            failure.printStackTrace();
            System.exit(1);
            throw failure;
        }
    }

    private Count produce(CyclicBarrier attached, CyclicBarrier warm) throws Exception {
        boolean transacted = perCommit > 0;
        try (Connection connection = factory.createConnection()) {
            Session session = connection.createSession(transacted, transacted ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE);
            Queue destination = session.createQueue(queue);
            MessageProducer producer = session.createProducer(destination);
            producer.setDeliveryMode(DeliveryMode.PERSISTENT);
            attached.await();
            Count discarded = sendUntil(beganNanos + warmNanos, session, producer);
            synchronized (this) {
                warmMessages += (long) discarded.size * Math.max(perCommit, 1);
            }
            warm.await();
            return sendUntil(beganNanos + countedNanos, session, producer);
        }
    }

    private Count sendUntil(long end, Session session, MessageProducer producer) throws JMSException {
        Count count = new Count();
        long now = System.nanoTime();
        while (now < end) {
            long before = now;
            for (int i = 0; i < Math.max(perCommit, 1); i++) {
                BytesMessage message = session.createBytesMessage();
                message.writeBytes(body);
                producer.send(message);
            }
            if (perCommit > 0) {
                before = System.nanoTime();
                session.commit();
            }
            now = System.nanoTime();
            count.add(now - before);
        }
        count.lastNanos = now;
        return count;
    }

    private long report(List<Count> counts, long cpuNanos) {
        long[] sorted = counts.stream().flatMapToLong(count -> Arrays.stream(count.nanos, 0, count.size)).sorted().toArray();
        long last = counts.stream().mapToLong(count -> count.lastNanos).max().orElse(beganNanos);
        double seconds = (last - beganNanos) / 1e9;
        long messages = (long) sorted.length * Math.max(perCommit, 1);
        System.out.printf(
                Locale.ROOT,
                "{\"count\": %d, \"warm_count\": %d, \"seconds\": %.4f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"cpu_seconds\": %.3f}%n",
                messages,
                warmMessages,
                seconds,
                sorted[sorted.length / 2] / 1e3,
                sorted[(int) (sorted.length * 99L / 100)] / 1e3,
                cpuNanos / 1e9);
        return messages;
    }

    /** Consumes so many messages, or one more where there are more; how many there were. */
    private long drain(long messages) throws JMSException {
        try (Connection connection = factory.createConnection()) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
            connection.start();
            long drained = 0;
            while (drained <= messages && consumer.receive(drained < messages ? PATIENCE_MS : REST_MS) != null) {
                drained++;
            }
            return drained;
        }
    }

    private static long cpuNanos() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
