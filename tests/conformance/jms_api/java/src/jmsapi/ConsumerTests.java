package jmsapi;

import jakarta.jms.IllegalStateException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Consumers: the kinds of receive, and closing (8.1, 8.5, 8.8). */
final class ConsumerTests {
    @Rule(clause = "8.5",
            says = "Receive waits for a message that comes later.")
    void receiveWaits(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Thread receiving = probe.start(() -> Check.equal("the text", "a", Probe.text(consumer.receive())));
        Probe.waits(receiving, "receive()");
        probe.fill("a");
        Probe.ends(receiving, "receive()");
    }

    @Rule(clause = "8.5",
            says = "Receive with a timeout of zero waits without end.")
    void receiveOfZeroWaitsWithoutEnd(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Thread receiving = probe.start(() -> Check.equal("the text", "a", Probe.text(consumer.receive(0))));
        receiving.join(Probe.QUIET_MS);
        Check.that(receiving.isAlive(), "receive(0) to wait", "it returned");
        probe.fill("a");
        Probe.ends(receiving, "receive(0)");
    }

    @Rule(clause = "8.5",
            says = "Receive with a timeout returns null when the time is over, and not before.")
    void receiveGivesUpAfterItsTimeout(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        long start = System.nanoTime();
        Check.equal("receive(100)", null, consumer.receive(100));
        long passed = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
        Check.that(passed >= 95 && passed < Probe.SOON_MS, "receive(100) to return after 100 ms", passed + " ms");
        probe.fill("a");
        Probe.expect(consumer, "a");
    }

    @Rule(clause = "8.5",
            says = "ReceiveNoWait returns null from an empty queue, and a message that waits.")
    void receiveNoWaitDoesNotWait(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Check.equal("receiveNoWait() of an empty queue", null, consumer.receiveNoWait());
        probe.fill("a");
        Check.equal("receiveNoWait()", "a", Probe.text(consumer.receiveNoWait()));
        Check.equal("receiveNoWait() again", null, consumer.receiveNoWait());
    }

    @Rule(clause = "8.1",
            says = "A consumer returns its selector; null and the empty string are no selector.")
    void consumerReturnsItsSelector(Probe probe) throws Exception {
        Session session = probe.session();
        Check.equal("getMessageSelector()", "size > 3",
                session.createConsumer(probe.queue(session), "size > 3").getMessageSelector());
        Check.equal("without a selector", null, session.createConsumer(probe.queue(session)).getMessageSelector());
        for (String none : new String[] {null, ""}) {
            MessageConsumer consumer = session.createConsumer(session.createQueue(probe.queueName("b")), none);
            String selector = consumer.getMessageSelector();
            Check.that(selector == null || selector.isEmpty(), "no selector", selector);
            Probe.send(session, session.createQueue(probe.queueName("b")), "a");
            Probe.expect(consumer, "a");
            consumer.close();
        }
    }

    @Rule(clause = "8.8",
            says = "Closing a consumer ends a receive that waits: it returns null.")
    void consumerCloseEndsAPendingReceive(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Thread receiving = probe.start(() -> Check.equal("receive()", null, consumer.receive()));
        Probe.waits(receiving, "receive()");
        consumer.close();
        Probe.ends(receiving, "receive()");
    }

    @Rule(clause = "8.8",
            says = "Closing a consumer waits for its running listener.")
    void consumerCloseWaitsForARunningListener(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        AtomicBoolean returned = new AtomicBoolean();
        consumer.setMessageListener(message -> probe.within(() -> {
            running.countDown();
            goOn.await(Probe.SOON_MS, TimeUnit.MILLISECONDS);
            returned.set(true);
        }));
        probe.fill("a");
        Check.that(running.await(Probe.SOON_MS, TimeUnit.MILLISECONDS), "a call of the listener", "none");
        Thread closing = probe.start(() -> {
            consumer.close();
            Check.that(returned.get(), "the listener to return before close()", "close() returned first");
        });
        Probe.waits(closing, "close()");
        closing.join(Probe.QUIET_MS);
        goOn.countDown();
        Probe.ends(closing, "close()");
        session.close();
        probe.left();
    }

    @Rule(clause = "8.8",
            says = "Use of a closed consumer is an IllegalStateException.")
    void closedConsumerCannotBeUsed(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        consumer.close();
        consumer.close();
        Check.raises(IllegalStateException.class, "receive()", () -> consumer.receive(1));
        Check.raises(IllegalStateException.class, "receiveNoWait()", consumer::receiveNoWait);
        Check.raises(IllegalStateException.class, "getMessageSelector()", consumer::getMessageSelector);
        Check.raises(IllegalStateException.class, "setMessageListener()", () -> consumer.setMessageListener(null));
    }

    @Rule(clause = "8.8",
            says = "Messages that a closed consumer did not receive are there for others at once.")
    void closedConsumerLeavesItsMessages(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        Session session = probe.session();
        MessageConsumer first = session.createConsumer(probe.queue(session));
        Probe.expect(first, "a");
        Session other = probe.session();
        MessageConsumer second = other.createConsumer(probe.queue(other));
        first.close();
        Probe.expect(second, "b", "c");
    }

    @Rule(clause = "6.2.1",
            says = "A session serves several consumers and producers, of one destination too.")
    void sessionHasManyConsumers(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer[] consumers = new MessageConsumer[20];
        for (int place = 0; place < 20; place++) {
            consumers[place] = session.createConsumer(session.createQueue(probe.queueName("q" + place)));
        }
        for (int place = 19; place >= 0; place--) {
            Probe.send(session, session.createQueue(probe.queueName("q" + place)), "m" + place);
        }
        for (int place = 0; place < 20; place++) {
            Probe.expect(consumers[place], "m" + place);
        }
    }
}
