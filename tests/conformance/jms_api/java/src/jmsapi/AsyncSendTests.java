package jmsapi;

import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** The asynchronous send with a CompletionListener (7.3). */
final class AsyncSendTests {
    /** What a listener of completions was told, and in which thread. */
    private record Completion(Message message, Exception failure, Thread thread) {
    }

    /** Remembers what it is told, in its order; `first` runs within each call. */
    private static final class Remembering implements CompletionListener {
        final BlockingQueue<Completion> told = new LinkedBlockingQueue<>();
        private final Runnable first;

        Remembering(Runnable first) {
            this.first = first;
        }

        Remembering() {
            this(() -> { });
        }

        @Override
        public void onCompletion(Message message) {
            first.run();
            told.add(new Completion(message, null, Thread.currentThread()));
        }

        @Override
        public void onException(Message message, Exception failure) {
            first.run();
            told.add(new Completion(message, failure, Thread.currentThread()));
        }

        Completion next() throws InterruptedException {
            Completion completion = told.poll(Probe.SOON_MS, TimeUnit.MILLISECONDS);
            if (completion == null) {
                throw new Failed("a call of the CompletionListener", "none within " + Probe.SOON_MS + " ms");
            }
            return completion;
        }
    }

    @Rule(clause = "7.3.1",
            says = "After an asynchronous send onCompletion is called with the message, and the message is there.")
    void completionFollowsTheSend(Probe probe) throws Exception {
        Session session = probe.session();
        Remembering listener = new Remembering();
        TextMessage message = session.createTextMessage("a");
        session.createProducer(probe.queue(session)).send(message, listener);
        Completion completion = listener.next();
        Check.equal("the exception", null, completion.failure);
        Check.that(completion.message == message, "the message that was sent", completion.message);
        probe.left("a");
    }

    @Rule(clause = "7.3.6",
            says = "Once onCompletion was called, the headers that the provider sets can be read.")
    void headersAreSetAtCompletion(Probe probe) throws Exception {
        Session session = probe.session();
        Remembering listener = new Remembering();
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.setPriority(7);
        producer.send(session.createTextMessage("a"), listener);
        Message sent = listener.next().message;
        Message received = Probe.expect(session.createConsumer(probe.queue(session)), "a");
        Check.that(sent.getJMSMessageID().startsWith("ID:"), "an identifier", sent.getJMSMessageID());
        Check.equal("JMSMessageID", sent.getJMSMessageID(), received.getJMSMessageID());
        Check.equal("JMSTimestamp", sent.getJMSTimestamp(), received.getJMSTimestamp());
        Check.equal("JMSPriority", 7, sent.getJMSPriority());
        Check.equal("JMSDestination", probe.queue(session), sent.getJMSDestination());
    }

    @Rule(clause = "7.3.8",
            says = "Completions of a producer are told in the order of its sends.")
    void completionsKeepTheOrderOfSends(Probe probe) throws Exception {
        Session session = probe.session();
        Remembering listener = new Remembering();
        MessageProducer producer = session.createProducer(probe.queue(session));
        for (int place = 0; place < 100; place++) {
            producer.send(session.createTextMessage("m" + place), listener);
        }
        for (int place = 0; place < 100; place++) {
            Completion completion = listener.next();
            Check.equal("the exception", null, completion.failure);
            Check.equal("the text", "m" + place, Probe.text(completion.message));
        }
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Check.equal("the number of messages sent", 100, Probe.drain(consumer).size());
    }

    @Rule(clause = "7.3.8",
            says = "A session calls its CompletionListeners one at a time, those of different producers too.")
    void completionsAreToldOneAtATime(Probe probe) throws Exception {
        Session session = probe.session();
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        Remembering listener = new Remembering(() -> {
            most.accumulateAndGet(running.incrementAndGet(), Math::max);
            Thread.yield();
            running.decrementAndGet();
        });
        MessageProducer[] producers = new MessageProducer[3];
        for (int place = 0; place < 3; place++) {
            producers[place] = session.createProducer(session.createQueue(probe.queueName("q" + place)));
        }
        for (int count = 0; count < 60; count++) {
            producers[count % 3].send(session.createTextMessage("m"), listener);
        }
        for (int count = 0; count < 60; count++) {
            listener.next();
        }
        Check.equal("the most calls at once", 1, most.get());
    }

    @Rule(clause = "7.3.8",
            says = "A CompletionListener is not called in the thread that sends.")
    void completionIsToldInAnotherThread(Probe probe) throws Exception {
        Session session = probe.session();
        Remembering listener = new Remembering();
        session.createProducer(probe.queue(session)).send(session.createTextMessage("a"), listener);
        Completion completion = listener.next();
        Check.that(completion.thread != Thread.currentThread(), "another thread", completion.thread);
    }

    @Rule(clause = "7.3.3",
            says = "Synchronous and asynchronous sends of a producer arrive in their common order.")
    void asynchronousSendsKeepTheOrder(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Remembering listener = new Remembering();
        for (int place = 0; place < 40; place++) {
            if (place % 4 == 3) {
                producer.send(session.createTextMessage("m" + place));
            } else {
                producer.send(session.createTextMessage("m" + place), listener);
            }
        }
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        for (int place = 0; place < 40; place++) {
            Probe.expect(consumer, "m" + place);
        }
    }

    @Rule(clause = "7.3.2",
            says = "If the send itself throws, its CompletionListener is not called.")
    void failedCallIsNotCompleted(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Remembering listener = new Remembering();
        Check.raises(MessageFormatException.class, "send(null, listener)", () -> producer.send(null, listener));
        Check.raises(JMSException.class, "send() with priority 10",
                () -> producer.send(session.createTextMessage("a"), 2, 10, 0, listener));
        Check.raises(UnsupportedOperationException.class, "send() to another destination",
                () -> producer.send(probe.topic(session), session.createTextMessage("a"), listener));
        producer.send(session.createTextMessage("b"), listener);
        Check.equal("the text of the first completion", "b", Probe.text(listener.next().message));
        Check.equal("further completions", 0, listener.told.size());
    }

    @Rule(clause = "7.3",
            says = "An asynchronous send without a listener is an IllegalArgumentException.")
    void noListenerIsAnIllegalArgument(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Check.raises(IllegalArgumentException.class, "send(message, null)",
                () -> producer.send(session.createTextMessage("a"), (CompletionListener) null));
        probe.left();
    }

    @Rule(clause = "7.3.2",
            says = "A message that is refused after the send returned is told to onException.")
    void laterFailureIsTold(Probe probe) throws Exception {
        String address = Settings.rejecting();
        Session session = probe.session();
        Queue full = session.createQueue(address);
        MessageConsumer consumer = session.createConsumer(full);
        Probe.drain(consumer);
        consumer.close();
        MessageProducer producer = session.createProducer(full);
        Remembering listener = new Remembering();
        Completion completion = null;
        for (int sent = 0; sent < 1_000 && (completion == null || completion.failure == null); sent++) {
            producer.send(session.createTextMessage("m" + sent), listener);
            completion = listener.next();
            Check.equal("the text", "m" + sent, Probe.text(completion.message));
        }
        Check.that(completion.failure instanceof JMSException, "a JMSException", completion.failure);
        consumer = session.createConsumer(full);
        Probe.expect(consumer, "m0");
        Probe.drain(consumer);
    }

    private static void waitsForCompletions(Probe probe, Session session, Check.Action action) throws Exception {
        CountDownLatch goOn = new CountDownLatch(1);
        Remembering listener = new Remembering(() -> probe.within(
                () -> goOn.await(Probe.SOON_MS, TimeUnit.MILLISECONDS)));
        MessageProducer producer = session.createProducer(probe.queue(session));
        for (int place = 0; place < 5; place++) {
            producer.send(session.createTextMessage("m" + place), listener);
        }
        Thread acting = probe.start(() -> {
            action.run();
            Check.equal("the completions told before the call returned", 5, listener.told.size());
        });
        Probe.waits(acting, "the call");
        acting.join(Probe.QUIET_MS);
        goOn.countDown();
        Probe.ends(acting, "the call");
        for (int place = 0; place < 5; place++) {
            Check.equal("the exception", null, listener.next().failure);
        }
        probe.left("m0", "m1", "m2", "m3", "m4");
    }

    @Rule(clause = "7.3.4",
            says = "Closing a session waits until all its asynchronous sends are complete and told.")
    void sessionCloseWaitsForCompletions(Probe probe) throws Exception {
        Session session = probe.session();
        waitsForCompletions(probe, session, session::close);
    }

    @Rule(clause = "7.3.4",
            says = "Closing a connection waits until all its asynchronous sends are complete and told.")
    void connectionCloseWaitsForCompletions(Probe probe) throws Exception {
        Connection connection = probe.connect();
        waitsForCompletions(probe, connection.createSession(), connection::close);
    }

    @Rule(clause = "7.3.4",
            says = "Closing a producer waits until all its asynchronous sends are complete and told.",
            clientBreaksIt = "close() of its producers returns while a CompletionListener runs")
    void producerCloseWaitsForCompletions(Probe probe) throws Exception {
        Session session = probe.session();
        CountDownLatch goOn = new CountDownLatch(1);
        Remembering listener = new Remembering(() -> probe.within(
                () -> goOn.await(Probe.SOON_MS, TimeUnit.MILLISECONDS)));
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.send(session.createTextMessage("a"), listener);
        Thread closing = probe.start(() -> {
            producer.close();
            Check.equal("the completions told before close() returned", 1, listener.told.size());
        });
        closing.join(Probe.QUIET_MS);
        goOn.countDown();
        Probe.ends(closing, "close()");
        probe.left("a");
    }

    @Rule(clause = "7.3.4",
            says = "A commit waits until all asynchronous sends of its session are complete and told.",
            clientBreaksIt = "commit() returns while a CompletionListener runs")
    void commitWaitsForCompletions(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        waitsForCompletions(probe, session, session::commit);
    }

    /** Call `action` within onCompletion; it must be refused, and everything works afterwards. */
    private static void isRefusedInACompletion(Probe probe, Session session, String what, Check.Action action)
            throws Exception {
        Remembering listener = new Remembering(
                () -> probe.within(() -> Check.raises(IllegalStateException.class, what, action)));
        MessageProducer producer = session.createProducer(probe.queue(session));
        producer.send(session.createTextMessage("a"), listener);
        Check.equal("the exception", null, listener.next().failure);
        probe.checkBackground();
        producer.send(session.createTextMessage("b"));
        if (session.getTransacted()) {
            session.commit();
        }
        probe.left("a", "b");
    }

    @Rule(clause = "7.3.4",
            says = "A CompletionListener that closes its session gets an IllegalStateException.")
    void completionMayNotCloseItsSession(Probe probe) throws Exception {
        Session session = probe.session();
        isRefusedInACompletion(probe, session, "close() of the session", session::close);
    }

    @Rule(clause = "7.3.4",
            says = "A CompletionListener that closes its connection gets an IllegalStateException.")
    void completionMayNotCloseItsConnection(Probe probe) throws Exception {
        Connection connection = probe.connect();
        isRefusedInACompletion(probe, connection.createSession(), "close() of the connection", connection::close);
    }

    @Rule(clause = "7.3.4",
            says = "A CompletionListener that commits or rolls back its session gets an IllegalStateException.")
    void completionMayNotEndTheTransaction(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        isRefusedInACompletion(probe, session, "commit() and rollback()", () -> {
            Check.raises(IllegalStateException.class, "rollback()", session::rollback);
            session.commit();
        });
    }

    @Rule(clause = "7.3.4",
            says = "A CompletionListener that closes its producer gets an IllegalStateException.")
    void completionMayNotCloseItsProducer(Probe probe) throws Exception {
        Session session = probe.session();
        MessageProducer producer = session.createProducer(probe.queue(session));
        Remembering listener = new Remembering(() -> probe.within(
                () -> Check.raises(IllegalStateException.class, "close() of the producer", producer::close)));
        producer.send(session.createTextMessage("a"), listener);
        listener.next();
        probe.checkBackground();
        producer.send(session.createTextMessage("b"));
        probe.left("a", "b");
    }

    @Rule(clause = "7.3",
            says = "A JMSProducer sends asynchronously once setAsync gave it a listener, and not after null.")
    void producerOfAContextSendsAsynchronously(Probe probe) throws Exception {
        JMSContext context = probe.context();
        Remembering listener = new Remembering();
        JMSProducer producer = context.createProducer();
        Check.equal("getAsync() at first", null, producer.getAsync());
        producer.setAsync(listener).send(context.createQueue(probe.queueName()), "a");
        Check.equal("the text", "a", Probe.text(listener.next().message));
        Check.that(producer.getAsync() == listener, "the listener that was set", producer.getAsync());
        producer.setAsync(null).send(context.createQueue(probe.queueName()), "b");
        probe.left("a", "b");
        Check.equal("further completions", 0, listener.told.size());
    }
}
