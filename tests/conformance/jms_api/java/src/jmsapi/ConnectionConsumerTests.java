package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionConsumer;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.JMSException;
import jakarta.jms.ServerSession;
import jakarta.jms.ServerSessionPool;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Connection consumers, which are optional (11.2). */
final class ConnectionConsumerTests {
    /** A creator of connection consumers, such as one of a queue. */
    private interface Creator {
        ConnectionConsumer create(ServerSessionPool pool) throws JMSException;
    }

    /** A pool of one session, whose listener puts texts into `heard`. */
    private static final class Pool implements ServerSessionPool, ServerSession {
        private final Probe probe;
        private final Session session;
        private final BlockingQueue<ServerSession> idle = new LinkedBlockingQueue<>();

        Pool(Probe probe, Connection connection, BlockingQueue<String> heard) throws JMSException {
            this.probe = probe;
            session = connection.createSession();
            session.setMessageListener(message -> probe.within(() -> heard.add(Probe.text(message))));
            idle.add(this);
        }

        @Override
        public ServerSession getServerSession() throws JMSException {
            try {
                return idle.take();
            } catch (InterruptedException stopped) {
                throw new JMSException("the pool was interrupted");
            }
        }

        @Override
        public Session getSession() {
            return session;
        }

        @Override
        public void start() {
            probe.start(() -> {
                session.run();
                idle.add(this);
            });
        }

        /** Return once the session has done its work, so that its messages are acknowledged. */
        void awaitIdle() throws InterruptedException {
            Check.that(idle.poll(Probe.SOON_MS, TimeUnit.MILLISECONDS) != null, "a session that returns to its pool",
                    "it still works");
        }
    }

    private static ConnectionConsumer create(Creator creator, ServerSessionPool pool) throws JMSException {
        try {
            return creator.create(pool);
        } catch (UnsupportedOperationException unsupported) {
            throw new NotApplicable(NotApplicable.Kind.NOT_OFFERED, "the client has no connection consumers");
        }
    }

    @Rule(clause = "11.2.5",
            says = "A connection consumer loads the messages of a queue into sessions, whose listeners get them.")
    void connectionConsumerOfAQueue(Probe probe) throws Exception {
        Connection connection = probe.connect();
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        Session naming = connection.createSession();
        Pool sessions = new Pool(probe, connection, heard);
        ConnectionConsumer consumer = create(pool -> connection.createConnectionConsumer(
                probe.queue(naming), null, pool, 1), sessions);
        probe.fill("a", "b", "c");
        for (String text : new String[] {"a", "b", "c"}) {
            Check.equal("the text", text, Probe.heard(heard));
        }
        sessions.awaitIdle();
        consumer.close();
        connection.close();
        probe.left();
    }

    @Rule(clause = "11.2.4",
            says = "A connection consumer with a selector gets the messages that match.")
    void connectionConsumerMaySelect(Probe probe) throws Exception {
        Connection connection = probe.connect();
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        Session naming = connection.createSession();
        Pool sessions = new Pool(probe, connection, heard);
        create(pool -> connection.createConnectionConsumer(probe.queue(naming), "size > 4", pool, 5), sessions);
        QueueTests.sendSizes(probe, 1, 5, 2, 6);
        Check.equal("the text", "size 5", Probe.heard(heard));
        Check.equal("the text", "size 6", Probe.heard(heard));
        sessions.awaitIdle();
        connection.close();
        probe.left("size 1", "size 2");
    }

    @Rule(clause = "11.2.4",
            says = "Connection consumers of subscriptions get their messages: of topics, durable and shared ones.")
    void connectionConsumersOfSubscriptions(Probe probe) throws Exception {
        Connection connection = probe.connectAs(probe.name());
        Session naming = connection.createSession();
        String name = probe.name();
        List<Creator> creators = List.of(
                pool -> connection.createConnectionConsumer(probe.topic(naming), null, pool, 1),
                pool -> connection.createDurableConnectionConsumer(probe.topic(naming), name, null, pool, 1),
                pool -> connection.createSharedConnectionConsumer(probe.topic(naming), name, null, pool, 1),
                pool -> connection.createSharedDurableConnectionConsumer(
                        probe.topic(naming), probe.name("b"), null, pool, 1));
        List<BlockingQueue<String>> all = new ArrayList<>();
        List<ConnectionConsumer> consumers = new ArrayList<>();
        for (Creator creator : creators) {
            BlockingQueue<String> heard = new LinkedBlockingQueue<>();
            consumers.add(create(creator, new Pool(probe, connection, heard)));
            all.add(heard);
        }
        probe.publish("a");
        for (BlockingQueue<String> heard : all) {
            Check.equal("the text", "a", Probe.heard(heard));
        }
        for (ConnectionConsumer consumer : consumers) {
            consumer.close();
        }
        naming.unsubscribe(name);
        naming.unsubscribe(probe.name("b"));
    }

    @Rule(clause = "11.2.4",
            says = "A connection consumer gets nothing while its connection is stopped, nor after it was closed.")
    void connectionConsumerStopsAndCloses(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        Session naming = connection.createSession();
        ConnectionConsumer consumer = create(pool -> connection.createConnectionConsumer(
                probe.queue(naming), null, pool, 1), new Pool(probe, connection, heard));
        probe.fill("a");
        Probe.quiet(heard, "the connection is not started");
        connection.start();
        Check.equal("the text", "a", Probe.heard(heard));
        consumer.close();
        consumer.close();
        probe.fill("b");
        Probe.quiet(heard, "the connection consumer is closed");
        probe.left("b");
    }

    @Rule(clause = "11.2.4",
            says = "A connection consumer with a selector of wrong syntax is an InvalidSelectorException.",
            clientBreaksIt = "it does not look at this selector, and what the broker refuses is a JMSException")
    void connectionConsumerNeedsARightSelector(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session naming = connection.createSession();
        create(pool -> connection.createConnectionConsumer(probe.queue(naming), null, pool, 1), () -> null).close();
        Check.raises(InvalidSelectorException.class, "createConnectionConsumer() with a selector of wrong syntax",
                () -> connection.createConnectionConsumer(probe.queue(naming), "size >", () -> null, 1));
    }

    @Rule(clause = "11.2.4",
            says = "A connection consumer without a destination is an InvalidDestinationException.",
            clientBreaksIt = "it throws a NullPointerException")
    void connectionConsumerNeedsADestination(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Check.raises(InvalidDestinationException.class, "createConnectionConsumer() without a destination",
                () -> connection.createConnectionConsumer((jakarta.jms.Queue) null, null, () -> null, 1));
    }
}
