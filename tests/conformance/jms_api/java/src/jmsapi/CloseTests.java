package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Closing a connection or a session (6.1.8, 6.2.15). */
final class CloseTests {
    @Rule(clause = "6.1.8",
            says = "Closing a connection ends a receive that waits; it returns null if there is no message.")
    void connectionCloseEndsAPendingReceive(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Thread receiving = probe.start(() -> Check.equal("receive()", null, consumer.receive()));
        Probe.waits(receiving, "receive()");
        connection.close();
        Probe.ends(receiving, "receive()");
    }

    @Rule(clause = "6.2.15",
            says = "Closing a session ends a receive that waits; it returns null if there is no message.")
    void sessionCloseEndsAPendingReceive(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Thread receiving = probe.start(() -> Check.equal("receive()", null, consumer.receive()));
        Probe.waits(receiving, "receive()");
        session.close();
        Probe.ends(receiving, "receive()");
    }

    /** Close while a listener runs; `sends` says whether the listener sends a message before it returns. */
    private static void waitsForAListener(Probe probe, Session session, Check.Action close, boolean sends)
            throws Exception {
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicBoolean returned = new AtomicBoolean();
        MessageProducer producer = session.createProducer(session.createQueue(probe.queueName("answers")));
        session.createConsumer(probe.queue(session)).setMessageListener(message -> probe.within(() -> {
            running.countDown();
            goOn.await(Probe.SOON_MS, TimeUnit.MILLISECONDS);
            if (sends) {
                producer.send(session.createTextMessage("answer"));
            }
            returned.set(true);
        }));
        probe.fill("a");
        Check.that(running.await(Probe.SOON_MS, TimeUnit.MILLISECONDS), "a call of the listener", "none");
        Thread closing = probe.start(() -> {
            close.run();
            Check.that(returned.get(), "the listener to return before close()", "close() returned first");
        });
        Probe.waits(closing, "close()");
        closing.join(Probe.QUIET_MS);
        goOn.countDown();
        Probe.ends(closing, "close()");
        probe.checkBackground();
        if (sends) {
            Session other = probe.session();
            Probe.expect(other.createConsumer(other.createQueue(probe.queueName("answers"))), "answer");
        }
        probe.left();
    }

    @Rule(clause = "6.1.8",
            says = "Closing a connection waits for a running listener, whose message is acknowledged then.")
    void connectionCloseWaitsForARunningListener(Probe probe) throws Exception {
        Connection connection = probe.connect();
        waitsForAListener(probe, connection.createSession(), connection::close, false);
    }

    @Rule(clause = "6.2.15",
            says = "Closing a session waits for a running listener, whose message is acknowledged then.")
    void sessionCloseWaitsForARunningListener(Probe probe) throws Exception {
        Session session = probe.session();
        waitsForAListener(probe, session, session::close, false);
    }

    @Rule(clause = "6.1.8",
            says = "A listener that runs while its connection is being closed may still send.")
    void listenerSendsWhileItsConnectionCloses(Probe probe) throws Exception {
        Connection connection = probe.connect();
        waitsForAListener(probe, connection.createSession(), connection::close, true);
    }

    @Rule(clause = "6.2.15",
            says = "A listener that runs while its session is being closed may still send.",
            clientBreaksIt = "its session counts as closed before the listener has returned")
    void listenerSendsWhileItsSessionCloses(Probe probe) throws Exception {
        Session session = probe.session();
        waitsForAListener(probe, session, session::close, true);
    }

    @Rule(clause = "6.1.8",
            says = "Closing a connection rolls back the transactions of its sessions.")
    void connectionCloseRollsBack(Probe probe) throws Exception {
        probe.fill("old");
        Connection connection = probe.connect();
        Session session = connection.createSession(Session.SESSION_TRANSACTED);
        Probe.expect(session.createConsumer(probe.queue(session)), "old");
        Probe.send(session, probe.queue(session), "new");
        connection.close();
        probe.left("old");
    }

    @Rule(clause = "6.2.15",
            says = "Closing a transacted session rolls back its transaction.")
    void sessionCloseRollsBack(Probe probe) throws Exception {
        probe.fill("old");
        Session session = probe.session(Session.SESSION_TRANSACTED);
        Probe.expect(session.createConsumer(probe.queue(session)), "old");
        Probe.send(session, probe.queue(session), "new");
        session.close();
        probe.left("old");
    }

    @Rule(clause = "6.1.8",
            says = "Closing a connection does not acknowledge the messages of client-acknowledged sessions.")
    void connectionCloseDoesNotAcknowledge(Probe probe) throws Exception {
        probe.fill("a", "b");
        Connection connection = probe.connect();
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Probe.expect(session.createConsumer(probe.queue(session)), "a");
        connection.close();
        Session again = probe.session();
        MessageConsumer consumer = again.createConsumer(probe.queue(again));
        Probe.expectAgain(consumer, "a");
        Probe.expect(consumer, "b");
    }

    @Rule(clause = "6.2.15",
            says = "Closing a client-acknowledged session does not acknowledge its messages: they are redelivered.")
    void sessionCloseDoesNotAcknowledge(Probe probe) throws Exception {
        probe.fill("a", "b");
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        Probe.expect(session.createConsumer(probe.queue(session)), "a");
        session.close();
        Session again = probe.session();
        MessageConsumer consumer = again.createConsumer(probe.queue(again));
        Probe.expectAgain(consumer, "a");
        Probe.expect(consumer, "b");
    }

    @Rule(clause = "6.1.8",
            says = "Acknowledging a message of a closed connection is an IllegalStateException.")
    void acknowledgeAfterConnectionCloseIsIllegal(Probe probe) throws Exception {
        probe.fill("a");
        Connection connection = probe.connect();
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Message message = Probe.expect(session.createConsumer(probe.queue(session)), "a");
        connection.close();
        Check.raises(IllegalStateException.class, "acknowledge()", message::acknowledge);
    }

    @Rule(clause = "6.2.15",
            says = "Acknowledging a message of a closed session is an IllegalStateException.")
    void acknowledgeAfterSessionCloseIsIllegal(Probe probe) throws Exception {
        probe.fill("a");
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        Message message = Probe.expect(session.createConsumer(probe.queue(session)), "a");
        session.close();
        Check.raises(IllegalStateException.class, "acknowledge()", message::acknowledge);
    }

    @Rule(clause = "6.1.8",
            says = "Messages of a closed connection can be read and changed on.")
    void messagesOutliveTheirConnection(Probe probe) throws Exception {
        probe.fill("a");
        Connection connection = probe.connect();
        Session session = connection.createSession();
        TextMessage received = (TextMessage) Probe.expect(session.createConsumer(probe.queue(session)), "a");
        TextMessage created = session.createTextMessage("b");
        connection.close();
        Check.equal("the text of a received message", "a", received.getText());
        Check.that(received.getJMSMessageID() != null, "an identifier of the message", null);
        received.clearBody();
        received.setText("changed");
        created.setText("changed");
        Check.equal("the text after a change", received.getText(), created.getText());
    }

    @Rule(clause = "6.1.8",
            says = "Use of a closed connection, its sessions, consumers and producers is an IllegalStateException.")
    void closedConnectionCannotBeUsed(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        MessageProducer producer = session.createProducer(probe.queue(session));
        Message message = session.createMessage();
        connection.close();
        Check.raises(IllegalStateException.class, "start()", connection::start);
        Check.raises(IllegalStateException.class, "stop()", connection::stop);
        Check.raises(IllegalStateException.class, "createSession()", connection::createSession);
        Check.raises(IllegalStateException.class, "getClientID()", connection::getClientID);
        Check.raises(IllegalStateException.class, "getMetaData()", connection::getMetaData);
        Check.raises(IllegalStateException.class, "createTextMessage()", session::createTextMessage);
        Check.raises(IllegalStateException.class, "receiveNoWait()", consumer::receiveNoWait);
        Check.raises(IllegalStateException.class, "send()", () -> producer.send(message));
    }

    @Rule(clause = "6.2.15",
            says = "Use of a closed session, its consumers and producers is an IllegalStateException.")
    void closedSessionCannotBeUsed(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        MessageProducer producer = session.createProducer(probe.queue(session));
        Message message = session.createMessage();
        session.close();
        Check.raises(IllegalStateException.class, "getTransacted()", session::getTransacted);
        Check.raises(IllegalStateException.class, "getAcknowledgeMode()", session::getAcknowledgeMode);
        Check.raises(IllegalStateException.class, "createMessage()", session::createMessage);
        Check.raises(IllegalStateException.class, "createQueue()", () -> session.createQueue("a"));
        Check.raises(IllegalStateException.class, "recover()", session::recover);
        Check.raises(IllegalStateException.class, "commit()", session::commit);
        Check.raises(IllegalStateException.class, "unsubscribe()", () -> session.unsubscribe("a"));
        Check.raises(IllegalStateException.class, "receive()", () -> consumer.receive(1));
        Check.raises(IllegalStateException.class, "getMessageSelector()", consumer::getMessageSelector);
        Check.raises(IllegalStateException.class, "getMessageListener()", consumer::getMessageListener);
        Check.raises(IllegalStateException.class, "getDeliveryMode()", producer::getDeliveryMode);
        Check.raises(IllegalStateException.class, "send()", () -> producer.send(message));
    }

    @Rule(clause = "6.2.15",
            says = "Use of a browser of a closed session is an exception, and does not wait for ever.",
            clientBreaksIt = "its browser attaches a link on the session that has ended, and waits for the answer")
    void browserOfAClosedSessionCannotBeUsed(Probe probe) throws Exception {
        Session session = probe.session();
        QueueBrowser browser = session.createBrowser(probe.queue(session));
        session.close();
        Thread browsing = probe.start(
                () -> Check.raises(JMSException.class, "getEnumeration()", browser::getEnumeration));
        browsing.join(Probe.QUIET_MS);
        Check.that(!browsing.isAlive(), "an exception from getEnumeration()", "it waits");
    }

    @Rule(clause = "6.1.8",
            says = "Closing what is closed already throws nothing.")
    void closeMayBeRepeated(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        MessageProducer producer = session.createProducer(probe.queue(session));
        QueueBrowser browser = session.createBrowser(probe.queue(session));
        for (int round = 0; round < 2; round++) {
            browser.close();
            consumer.close();
            producer.close();
        }
        session.close();
        session.close();
        connection.close();
        connection.close();
        session.close();
        consumer.close();
        producer.close();
        browser.close();
    }

    @Rule(clause = "6.2.15",
            says = "Closing a session leaves the other sessions of its connection alone.")
    void otherSessionsOutliveAClosedOne(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session closed = connection.createSession();
        Session other = connection.createSession();
        closed.createConsumer(closed.createQueue(probe.queueName("of-the-closed")));
        MessageConsumer consumer = other.createConsumer(probe.queue(other));
        closed.close();
        Probe.send(other, probe.queue(other), "a");
        Probe.expect(consumer, "a");
        connection.createSession().close();
    }

    @Rule(clause = "6.1.8",
            says = "Connections and sessions are closed at the end of a statement try-with-resources.")
    void tryWithResourcesCloses(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        Session session;
        try (connection; Session within = connection.createSession()) {
            session = within;
            Probe.send(within, probe.queue(within), "a");
        }
        Check.raises(IllegalStateException.class, "createMessage()", session::createMessage);
        Check.raises(IllegalStateException.class, "start()", connection::start);
        probe.left("a");
    }

    private static void closedWithinAListener(Probe probe, Session session, Check.Action close) throws Exception {
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        session.createConsumer(probe.queue(session)).setMessageListener(message -> probe.within(() -> {
            try {
                close.run();
                heard.add("closed");
            } catch (IllegalStateException refused) {
                heard.add("refused");
            }
        }));
        probe.fill("a");
        Probe.heard(heard);
        session.close();
        probe.left();
    }

    @Rule(clause = "6.2.15",
            says = "A listener that closes its session is refused, or its message is acknowledged when it returns.")
    void sessionCloseWithinAListenerHasOneOfTwoResults(Probe probe) throws Exception {
        Session session = probe.session();
        closedWithinAListener(probe, session, session::close);
    }

    @Rule(clause = "6.1.8",
            says = "A listener that closes its connection is refused, or its message is acknowledged when it returns.")
    void connectionCloseWithinAListenerHasOneOfTwoResults(Probe probe) throws Exception {
        Connection connection = probe.connect();
        closedWithinAListener(probe, connection.createSession(), connection::close);
    }
}
