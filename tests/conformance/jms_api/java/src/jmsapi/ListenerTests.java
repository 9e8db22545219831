package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageListener;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** Message listeners (8.7, 6.2.13, 6.2.14). */
final class ListenerTests {
    private static void listen(Probe probe, MessageConsumer consumer, BlockingQueue<String> heard) throws JMSException {
        consumer.setMessageListener(message -> probe.within(() -> heard.add(Probe.text(message))));
    }

    @Rule(clause = "8.7",
            says = "A listener gets the messages of its consumer in their order, those that wait and those that follow.")
    void listenerGetsMessagesInTheirOrder(Probe probe) throws Exception {
        probe.fill("a", "b");
        Session session = probe.session();
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        listen(probe, session.createConsumer(probe.queue(session)), heard);
        probe.fill("c", "d");
        for (String text : new String[] {"a", "b", "c", "d"}) {
            Check.equal("the text", text, Probe.heard(heard));
        }
    }

    @Rule(clause = "8.7",
            says = "A consumer returns the listener that was set, and null if there is none.")
    void listenerIsReturned(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Check.equal("getMessageListener() at first", null, consumer.getMessageListener());
        MessageListener listener = message -> { };
        consumer.setMessageListener(listener);
        Check.that(consumer.getMessageListener() == listener, "the listener that was set", consumer.getMessageListener());
        consumer.setMessageListener(null);
        Check.equal("getMessageListener() after null", null, consumer.getMessageListener());
    }

    @Rule(clause = "8.7",
            says = "A listener that is replaced gets no further message; its successor does.")
    void listenerMayBeReplaced(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        BlockingQueue<String> first = new LinkedBlockingQueue<>();
        BlockingQueue<String> second = new LinkedBlockingQueue<>();
        listen(probe, consumer, first);
        probe.fill("a");
        Check.equal("the text", "a", Probe.heard(first));
        listen(probe, consumer, second);
        probe.fill("b");
        Check.equal("the text", "b", Probe.heard(second));
        Check.equal("calls of the first listener", 0, first.size());
    }

    @Rule(clause = "8.7",
            says = "Without a listener any more, messages wait for the next receive.")
    void listenerMayBeRemoved(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        listen(probe, consumer, heard);
        probe.fill("a");
        Check.equal("the text", "a", Probe.heard(heard));
        consumer.setMessageListener(null);
        probe.fill("b");
        Probe.expect(consumer, "b");
        Check.equal("calls of the listener", 0, heard.size());
    }

    private static void failsOnce(Probe probe, int mode) throws Exception {
        Session session = probe.session(mode);
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        AtomicInteger calls = new AtomicInteger();
        session.createConsumer(probe.queue(session)).setMessageListener(message -> {
            probe.within(() -> heard.add(Probe.text(message)));
            if (calls.incrementAndGet() == 1) {
                throw new java.lang.IllegalStateException("the first call fails");
            }
        });
        probe.fill("a", "b");
        List<String> texts = new ArrayList<>();
        for (int count = 0; count < 3; count++) {
            texts.add(Probe.heard(heard));
        }
        Check.equal("the first text", "a", texts.get(0));
        Collections.sort(texts);
        Check.equal("the texts of all calls", List.of("a", "a", "b"), texts);
        session.close();
        probe.left();
    }

    @Rule(clause = "8.7",
            says = "AUTO_ACKNOWLEDGE: a message is delivered again if its listener throws, and only that message.")
    void messageComesAgainAfterAListenerThrows(Probe probe) throws Exception {
        failsOnce(probe, Session.AUTO_ACKNOWLEDGE);
    }

    @Rule(clause = "8.7",
            says = "DUPS_OK_ACKNOWLEDGE: a message is delivered again if its listener throws, and only that message.")
    void messageComesAgainInDupsOk(Probe probe) throws Exception {
        failsOnce(probe, Session.DUPS_OK_ACKNOWLEDGE);
    }

    @Rule(clause = "8.7",
            says = "A message that comes again since its listener threw is marked as redelivered and counted.",
            clientBreaksIt = "it releases the message instead of modifying it, so no broker can count the delivery")
    void messageAfterAListenerThrowsIsMarked(Probe probe) throws Exception {
        Session session = probe.session();
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        AtomicInteger calls = new AtomicInteger();
        session.createConsumer(probe.queue(session)).setMessageListener(message -> {
            probe.within(() -> heard.add(Probe.deliveryCount(message) + " " + message.getJMSRedelivered()));
            if (calls.incrementAndGet() == 1) {
                throw new java.lang.IllegalStateException("the first call fails");
            }
        });
        probe.fill("a");
        Check.equal("the first call", "1 false", heard.poll(Probe.SOON_MS, TimeUnit.MILLISECONDS));
        Check.equal("the second call", "2 true", heard.poll(Probe.SOON_MS, TimeUnit.MILLISECONDS));
    }

    @Rule(clause = "8.7",
            says = "CLIENT_ACKNOWLEDGE: if a listener throws it gets the next message; recover brings back the first.")
    void clientAcknowledgeGoesOnAfterAListenerThrows(Probe probe) throws Exception {
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        AtomicInteger calls = new AtomicInteger();
        session.createConsumer(probe.queue(session)).setMessageListener(message -> {
            int call = calls.incrementAndGet();
            probe.within(() -> {
                if (call == 2) {
                    session.recover();
                } else if (call == 4) {
                    message.acknowledge();
                }
                heard.add(Probe.text(message) + " " + message.getJMSRedelivered());
            });
            if (call == 1) {
                throw new java.lang.IllegalStateException("the first call fails");
            }
        });
        probe.fill("a", "b");
        for (String expected : new String[] {"a false", "b false", "a true", "b true"}) {
            Check.equal("the call", expected, Probe.heard(heard));
        }
        session.close();
        probe.left();
    }

    @Rule(clause = "8.7",
            says = "Transacted: if a listener throws it gets the next message, and nothing is rolled back.")
    void transactionGoesOnAfterAListenerThrows(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        AtomicInteger calls = new AtomicInteger();
        session.createConsumer(probe.queue(session)).setMessageListener(message -> {
            probe.within(() -> {
                if (Probe.text(message).equals("b")) {
                    session.commit();
                }
                heard.add(Probe.text(message));
            });
            if (calls.incrementAndGet() == 1) {
                throw new java.lang.IllegalStateException("the first call fails");
            }
        });
        probe.fill("a", "b");
        Check.equal("the first call", "a", heard.poll(Probe.SOON_MS, TimeUnit.MILLISECONDS));
        Check.equal("the second call", "b", heard.poll(Probe.SOON_MS, TimeUnit.MILLISECONDS));
        session.close();
        probe.left();
    }

    @Rule(clause = "8.7",
            says = "A listener may commit its session, message by message, and roll it back.")
    void listenerMayCommitAndRollBack(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        session.createConsumer(probe.queue(session)).setMessageListener(message -> probe.within(() -> {
            String text = Probe.text(message);
            if (text.equals("b") && !message.getJMSRedelivered()) {
                session.rollback();
                heard.add("b rolled back");
            } else {
                session.commit();
                heard.add(text);
            }
        }));
        probe.fill("a", "b", "c");
        for (String expected : new String[] {"a", "b rolled back", "b", "c"}) {
            Check.equal("the call", expected, Probe.heard(heard));
        }
        session.close();
        probe.left();
    }

    @Rule(clause = "6.2.13",
            says = "A session runs its listeners one at a time, those of different consumers too.")
    void listenersOfASessionRunOneAtATime(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        Session session = connection.createSession();
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        for (int place = 0; place < 3; place++) {
            String each = probe.queueName("q" + place);
            session.createConsumer(session.createQueue(each)).setMessageListener(message -> {
                most.accumulateAndGet(running.incrementAndGet(), Math::max);
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(3));
                running.decrementAndGet();
                heard.add(each);
            });
        }
        Session sending = connection.createSession();
        for (int place = 0; place < 3; place++) {
            Probe.send(sending, sending.createQueue(probe.queueName("q" + place)), "a", "b", "c", "d");
        }
        connection.start();
        for (int count = 0; count < 12; count++) {
            Probe.heard(heard);
        }
        Check.equal("the most listeners that ran at once", 1, most.get());
    }

    @Rule(clause = "6.2.14",
            says = "Listeners of two sessions run at the same time.")
    void listenersOfTwoSessionsRunAtOnce(Probe probe) throws Exception {
        Connection connection = probe.connect();
        CyclicBarrier both = new CyclicBarrier(2);
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        for (int place = 0; place < 2; place++) {
            Session session = connection.createSession();
            session.createConsumer(session.createQueue(probe.queueName("q" + place))).setMessageListener(
                    message -> probe.within(() -> {
                        both.await(Probe.SOON_MS, TimeUnit.MILLISECONDS);
                        heard.add("met");
                    }));
        }
        Session sending = connection.createSession();
        for (int place = 0; place < 2; place++) {
            Probe.send(sending, sending.createQueue(probe.queueName("q" + place)), "a");
        }
        Probe.heard(heard);
        Probe.heard(heard);
    }

    @Rule(clause = "6.2.5",
            says = "A listener may use the producers of its session.")
    void listenerUsesItsSession(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        Session session = connection.createSession();
        MessageProducer producer = session.createProducer(session.createQueue(probe.queueName("answers")));
        session.createConsumer(probe.queue(session)).setMessageListener(message -> probe.within(
                () -> producer.send(session.createTextMessage("answer to " + Probe.text(message)))));
        connection.start();
        probe.fill("a", "b");
        Session reader = probe.session();
        MessageConsumer answers = reader.createConsumer(reader.createQueue(probe.queueName("answers")));
        Probe.expect(answers, "answer to a", "answer to b");
    }

    @Rule(clause = "6.2.5",
            says = "A message is not received by a call while its consumer has a listener: that is an error.")
    void receiveBesideAListenerIsAnError(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        consumer.setMessageListener(message -> { });
        Check.raises(JMSException.class, "receive()", () -> consumer.receive(Probe.QUIET_MS));
        Check.raises(JMSException.class, "receiveNoWait()", consumer::receiveNoWait);
    }

    @Rule(clause = "8.8",
            says = "A listener may close its own consumer: it completes, and its message is acknowledged.")
    void listenerMayCloseItsConsumer(Probe probe) throws Exception {
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        consumer.setMessageListener(message -> probe.within(() -> {
            consumer.close();
            heard.add(Probe.text(message));
        }));
        probe.fill("a");
        Check.equal("the call", "a", Probe.heard(heard));
        probe.fill("b");
        Probe.quiet(heard, "the consumer is closed");
        session.close();
        probe.left("b");
    }

    @Rule(clause = "8.7",
            says = "Properties, headers and body of a message can be read in a listener.")
    void listenerReadsTheWholeMessage(Probe probe) throws Exception {
        Session session = probe.session();
        BlockingQueue<Message> heard = new LinkedBlockingQueue<>();
        session.createConsumer(probe.queue(session)).setMessageListener(heard::add);
        Session sending = probe.session();
        Message sent = sending.createTextMessage("a");
        sent.setIntProperty("size", 7);
        sent.setJMSCorrelationID("c");
        sending.createProducer(probe.queue(sending)).send(sent);
        Message message = Probe.heard(heard);
        Check.equal("the text", "a", Probe.text(message));
        Check.equal("the property", 7, message.getIntProperty("size"));
        Check.equal("JMSCorrelationID", "c", message.getJMSCorrelationID());
        Check.equal("JMSMessageID", sent.getJMSMessageID(), message.getJMSMessageID());
        Check.equal("JMSDestination", probe.queue(session), message.getJMSDestination());
    }
}
