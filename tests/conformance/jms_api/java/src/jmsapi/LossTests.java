package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Connections that are lost (6.1.7, 6.2.11, 6.2.12, 9.1). */
final class LossTests {
    @Rule(clause = "6.1.7",
            says = "The loss of a connection is told to its exception listener, and calls fail from then on.")
    void lossIsTold(Probe probe) throws Exception {
        Relay relay = probe.keep(new Relay());
        Connection connection = probe.stopped(Probe.factoryAt(relay.url()));
        BlockingQueue<JMSException> told = new LinkedBlockingQueue<>();
        connection.setExceptionListener(told::add);
        connection.start();
        Session session = connection.createSession();
        Probe.send(session, probe.queue(session), "a");
        relay.cut();
        JMSException failure = told.poll(Probe.SOON_MS, TimeUnit.MILLISECONDS);
        Check.that(failure != null, "a call of the exception listener", "none within " + Probe.SOON_MS + " ms");
        Check.raises(JMSException.class, "createTextMessage() or send()",
                () -> Probe.send(session, probe.queue(session), "b"));
        probe.left("a");
    }

    @Rule(clause = "9.1",
            says = "Messages that a lost connection had not acknowledged are delivered again, marked and counted.")
    void lossRedelivers(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        Relay relay = probe.keep(new Relay());
        Connection connection = probe.stopped(Probe.factoryAt(relay.url()));
        connection.start();
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Probe.expect(consumer, "a").acknowledge();
        Probe.expect(consumer, "b");
        Session reader = probe.session();
        MessageConsumer next = reader.createConsumer(probe.queue(reader));
        // the acknowledgement is not answered: the reply to this call follows it on the same connection
        session.createBrowser(probe.queue(session)).getEnumeration().hasMoreElements();
        relay.cut();
        Probe.expectAgain(next, "b");
        Probe.expect(next, "c");
        Check.nothing(next, "the other was acknowledged");
    }

    @Rule(clause = "6.2.7",
            says = "The transaction of a lost connection is rolled back.")
    void lossRollsBack(Probe probe) throws Exception {
        probe.fill("old");
        Relay relay = probe.keep(new Relay());
        Connection connection = probe.stopped(Probe.factoryAt(relay.url()));
        connection.start();
        Session session = connection.createSession(Session.SESSION_TRANSACTED);
        Probe.expect(session.createConsumer(probe.queue(session)), "old");
        Probe.send(session, probe.queue(session), "new");
        Session reader = probe.session();
        MessageConsumer next = reader.createConsumer(probe.queue(reader));
        relay.cut();
        Probe.expectAgain(next, "old");
        Check.nothing(next, "the other was not committed");
    }

    @Rule(clause = "6.1.2",
            says = "The client identifier of a lost connection may be used again, and its subscription goes on.")
    void lossFreesTheClientIdentifier(Probe probe) throws Exception {
        Relay relay = probe.keep(new Relay());
        Connection connection = probe.stopped(Probe.factoryAt(relay.url(), "jms.clientID=" + probe.name()));
        connection.start();
        Session session = connection.createSession();
        session.createDurableConsumer(probe.topic(session), probe.name());
        BlockingQueue<JMSException> told = new LinkedBlockingQueue<>();
        connection.setExceptionListener(told::add);
        relay.cut();
        told.poll(Probe.SOON_MS, TimeUnit.MILLISECONDS);
        probe.publish("a");
        Session again = reconnected(probe).createSession();
        MessageConsumer consumer = again.createDurableConsumer(probe.topic(again), probe.name());
        Probe.expect(consumer, "a");
        consumer.close();
        again.unsubscribe(probe.name());
    }

    /** Connect as the client of the test; the broker may take a moment to notice the loss. */
    private static Connection reconnected(Probe probe) throws JMSException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Probe.SOON_MS);
        while (true) {
            try {
                return probe.connectAs(probe.name());
            } catch (JMSException inUse) {
                if (System.nanoTime() > end) {
                    throw inUse;
                }
            }
        }
    }

    @Rule(clause = "6.2.12",
            says = "A message whose sender was lost after the send had returned is there once.")
    void lossDuplicatesNothing(Probe probe) throws Exception {
        Relay relay = probe.keep(new Relay());
        Connection connection = probe.stopped(Probe.factoryAt(relay.url()));
        Session session = connection.createSession();
        for (int count = 0; count < 5; count++) {
            Probe.send(session, probe.queue(session), "m" + count);
        }
        relay.cut();
        probe.left("m0", "m1", "m2", "m3", "m4");
    }
}
