package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Starting and stopping a connection (6.1.4, 6.1.5). */
final class StartStopTests {
    @Rule(clause = "6.1.4",
            says = "A new connection is stopped: its consumers get nothing until it is started.")
    void newConnectionIsStopped(Probe probe) throws Exception {
        probe.fill("a");
        Connection connection = probe.stopped();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Check.equal("receive() before start()", null, consumer.receive(Probe.QUIET_MS));
        connection.start();
        Probe.expect(consumer, "a");
    }

    @Rule(clause = "6.1.4",
            says = "A listener is not called before its connection is started.")
    void listenerWaitsForTheStart(Probe probe) throws Exception {
        probe.fill("a");
        Connection connection = probe.stopped();
        Session session = connection.createSession();
        BlockingQueue<Message> heard = new LinkedBlockingQueue<>();
        session.createConsumer(probe.queue(session)).setMessageListener(heard::add);
        Probe.quiet(heard, "the connection is not started");
        connection.start();
        Check.equal("the text", "a", Probe.text(Probe.heard(heard)));
    }

    @Rule(clause = "6.1.4",
            says = "A connection that is not started sends all the same.")
    void stoppedConnectionSends(Probe probe) throws Exception {
        Session session = probe.stopped().createSession();
        Probe.send(session, probe.queue(session), "a", "b");
        probe.left("a", "b");
    }

    @Rule(clause = "6.1.5",
            says = "While a connection is stopped, receives return no message; after start they do.")
    void stopPausesReceives(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        probe.fill("a", "b");
        Probe.expect(consumer, "a");
        connection.stop();
        Check.equal("receiveNoWait() while stopped", null, consumer.receiveNoWait());
        Check.equal("receive() while stopped", null, consumer.receive(Probe.QUIET_MS));
        connection.start();
        Probe.expect(consumer, "b");
    }

    @Rule(clause = "6.1.5",
            says = "The timer of a receive runs on while the connection is stopped.")
    void receiveTimerRunsWhileStopped(Probe probe) throws Exception {
        probe.fill("a");
        Connection connection = probe.connect();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        connection.stop();
        long start = System.nanoTime();
        Check.equal("receive(200) while stopped", null, consumer.receive(200));
        long passed = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
        Check.that(passed >= 190 && passed < Probe.SOON_MS, "receive(200) to return after 200 ms", passed + " ms");
    }

    @Rule(clause = "6.1.5",
            says = "While a connection is stopped, its listeners are not called.")
    void stopPausesListeners(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        BlockingQueue<Message> heard = new LinkedBlockingQueue<>();
        session.createConsumer(probe.queue(session)).setMessageListener(heard::add);
        probe.fill("a");
        Probe.heard(heard);
        connection.stop();
        probe.fill("b");
        Probe.quiet(heard, "the connection is stopped");
        connection.start();
        Check.equal("the text", "b", Probe.text(Probe.heard(heard)));
    }

    @Rule(clause = "6.1.5",
            says = "Stop returns only after listeners that are running have returned.")
    void stopWaitsForARunningListener(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicBoolean returned = new AtomicBoolean();
        session.createConsumer(probe.queue(session)).setMessageListener(message -> probe.within(() -> {
            running.countDown();
            goOn.await(Probe.SOON_MS, TimeUnit.MILLISECONDS);
            returned.set(true);
        }));
        probe.fill("a");
        Check.that(running.await(Probe.SOON_MS, TimeUnit.MILLISECONDS), "a call of the listener", "none");
        Thread stopping = probe.start(() -> {
            connection.stop();
            Check.that(returned.get(), "the listener to return before stop()", "stop() returned first");
        });
        Probe.waits(stopping, "stop()");
        stopping.join(Probe.QUIET_MS);
        goOn.countDown();
        Probe.ends(stopping, "stop()");
    }

    @Rule(clause = "6.1.5",
            says = "A listener that runs while its connection is being stopped may still send.")
    void listenerSendsWhileStopWaits(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        session.createConsumer(session.createQueue(probe.queueName("requests"))).setMessageListener(
                message -> probe.within(() -> {
                    running.countDown();
                    goOn.await(Probe.SOON_MS, TimeUnit.MILLISECONDS);
                    Probe.send(session, probe.queue(session), "answer");
                }));
        Session other = probe.session();
        Probe.send(other, other.createQueue(probe.queueName("requests")), "request");
        Check.that(running.await(Probe.SOON_MS, TimeUnit.MILLISECONDS), "a call of the listener", "none");
        Thread stopping = probe.start(connection::stop);
        Probe.waits(stopping, "stop()");
        goOn.countDown();
        Probe.ends(stopping, "stop()");
        probe.left("answer");
    }

    @Rule(clause = "6.1.5",
            says = "Starting a started connection and stopping a stopped one are ignored.")
    void repeatedStartAndStopAreIgnored(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        connection.stop();
        connection.start();
        connection.start();
        probe.fill("a");
        Probe.expect(consumer, "a");
        connection.stop();
        connection.stop();
        probe.fill("b");
        Check.equal("receive() after two calls of stop()", null, consumer.receive(Probe.QUIET_MS));
        connection.start();
        Probe.expect(consumer, "b");
    }

    @Rule(clause = "6.1.5",
            says = "Stop within a listener either fails with an IllegalStateException or stops the connection.")
    void stopWithinAListenerHasOneOfTwoResults(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        session.createConsumer(probe.queue(session)).setMessageListener(message -> probe.within(() -> {
            try {
                connection.stop();
                heard.add("stopped");
            } catch (IllegalStateException refused) {
                heard.add("refused");
            }
        }));
        probe.fill("a");
        if (Probe.heard(heard).equals("stopped")) {
            probe.fill("b");
            Probe.quiet(heard, "the listener has stopped the connection");
        } else {
            probe.fill("b");
            Check.equal("the second call of stop()", "refused", Probe.heard(heard));
        }
    }
}
