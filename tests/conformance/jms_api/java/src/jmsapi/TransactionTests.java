package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.IllegalStateException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TransactionRolledBackException;

/** Transacted sessions (6.2.7). */
final class TransactionTests {
    @Rule(clause = "6.2.7",
            says = "Messages of a transaction are sent when it commits, in their order, and not before.")
    void sentMessagesAppearAtCommit(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        Session reader = probe.session();
        MessageConsumer consumer = reader.createConsumer(probe.queue(reader));
        Probe.send(session, probe.queue(session), "a", "b", "c");
        Check.nothing(consumer, "the transaction is not committed");
        session.commit();
        Probe.expect(consumer, "a", "b", "c");
    }

    @Rule(clause = "6.2.7",
            says = "Messages of a transaction that is rolled back are destroyed.")
    void sentMessagesVanishAtRollback(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        Probe.send(session, probe.queue(session), "a", "b");
        session.rollback();
        Probe.send(session, probe.queue(session), "c");
        session.commit();
        probe.left("c");
    }

    @Rule(clause = "6.2.7",
            says = "Messages that a transaction consumed are gone once it commits.")
    void consumedMessagesAreGoneAfterCommit(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        Session session = probe.session(Session.SESSION_TRANSACTED);
        Probe.expect(session.createConsumer(probe.queue(session)), "a", "b");
        session.commit();
        session.close();
        probe.left("c");
    }

    @Rule(clause = "6.2.7",
            says = "A rollback recovers the messages that were consumed: again in their order, marked as redelivered.")
    void consumedMessagesComeAgainAfterRollback(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        Session session = probe.session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Probe.expect(consumer, "a", "b");
        session.rollback();
        Message first = Probe.expectAgain(consumer, "a");
        Check.equal("JMSXDeliveryCount", 2, Probe.deliveryCount(first));
        Probe.expectAgain(consumer, "b");
        Message last = Probe.expect(consumer, "c");
        Check.equal("JMSRedelivered of a message that was not consumed", false, last.getJMSRedelivered());
        session.commit();
        session.close();
        probe.left();
    }

    @Rule(clause = "6.2.7",
            says = "The end of a transaction begins the next: each has its own messages.")
    void nextTransactionBeginsAtOnce(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        Session reader = probe.session();
        MessageConsumer consumer = reader.createConsumer(probe.queue(reader));
        for (int round = 0; round < 10; round++) {
            Probe.send(session, probe.queue(session), "m" + round);
            if (round % 2 == 0) {
                session.commit();
                Probe.expect(consumer, "m" + round);
            } else {
                session.rollback();
            }
            Check.nothing(consumer, "the transaction has ended");
        }
        session.commit();
        session.rollback();
        Check.nothing(consumer, "the transactions were empty");
    }

    @Rule(clause = "6.2.7",
            says = "What a transaction consumes and what it sends are one unit.")
    void consumedAndSentAreOneUnit(Probe probe) throws Exception {
        probe.fill("request");
        Session session = probe.session(Session.SESSION_TRANSACTED);
        Queue answers = session.createQueue(probe.queueName("answers"));
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Session reader = probe.session();
        MessageConsumer answered = reader.createConsumer(reader.createQueue(probe.queueName("answers")));
        Probe.expect(consumer, "request");
        Probe.send(session, answers, "answer");
        session.rollback();
        Check.nothing(answered, "the transaction is rolled back");
        Probe.expectAgain(consumer, "request");
        Probe.send(session, answers, "answer");
        session.commit();
        Probe.expect(answered, "answer");
        session.close();
        probe.left();
    }

    @Rule(clause = "6.2.7",
            says = "A transaction covers all consumers and producers of its session, of queues and topics.")
    void transactionCoversQueuesAndTopics(Probe probe) throws Exception {
        Session reader = probe.session();
        MessageConsumer subscriber = reader.createConsumer(probe.topic(reader));
        Session session = probe.session(Session.SESSION_TRANSACTED);
        for (String text : new String[] {"a", "b"}) {
            Probe.send(session, probe.queue(session), text);
            Probe.send(session, probe.topic(session), text);
            Check.nothing(subscriber, "the transaction is not committed");
            if (text.equals("a")) {
                session.rollback();
            } else {
                session.commit();
            }
        }
        Probe.expect(subscriber, "b");
        probe.left("b");
    }

    @Rule(clause = "6.2.7",
            says = "A message is received before it was committed by no consumer, not even of its own session.")
    void transactionDoesNotReceiveItsOwnMessages(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Probe.send(session, probe.queue(session), "a");
        Check.nothing(consumer, "it belongs to this transaction");
        session.commit();
        Probe.expect(consumer, "a");
        session.commit();
    }

    @Rule(clause = "6.2.7",
            says = "Transactions of two sessions of a connection are independent.")
    void transactionsOfSessionsAreIndependent(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session first = connection.createSession(Session.SESSION_TRANSACTED);
        Session second = connection.createSession(Session.SESSION_TRANSACTED);
        Probe.send(first, probe.queue(first), "of the first");
        Probe.send(second, probe.queue(second), "of the second");
        first.rollback();
        second.commit();
        probe.left("of the second");
    }

    @Rule(clause = "10.3",
            says = "Commit and rollback of a session that is not transacted are an IllegalStateException.")
    void commitWithoutATransactionIsIllegal(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        for (int mode : new int[] {Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE}) {
            Session session = connection.createSession(mode);
            Check.raises(IllegalStateException.class, "commit()", session::commit);
            Check.raises(IllegalStateException.class, "rollback()", session::rollback);
        }
    }

    @Rule(clause = "6.2.10",
            says = "Recover of a transacted session is an IllegalStateException.")
    void recoverOfATransactionIsIllegal(Probe probe) throws Exception {
        Session session = probe.session(Session.SESSION_TRANSACTED);
        Check.raises(IllegalStateException.class, "recover()", session::recover);
    }

    @Rule(clause = "6.2.10",
            says = "Within a transaction the acknowledge method of a message is ignored: the commit acknowledges.")
    void acknowledgeWithinATransactionIsIgnored(Probe probe) throws Exception {
        probe.fill("a");
        Session session = probe.session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Probe.expect(consumer, "a").acknowledge();
        session.rollback();
        Probe.expectAgain(consumer, "a").acknowledge();
        session.commit();
        session.close();
        probe.left();
    }

    @Rule(clause = "8.8",
            says = "A transaction may be committed or rolled back after the consumer was closed.")
    void transactionOutlivesItsConsumer(Probe probe) throws Exception {
        probe.fill("a", "b");
        Session session = probe.session(Session.SESSION_TRANSACTED);
        MessageConsumer first = session.createConsumer(probe.queue(session));
        Probe.expect(first, "a");
        first.close();
        session.rollback();
        MessageConsumer second = session.createConsumer(probe.queue(session));
        Probe.expectAgain(second, "a");
        second.close();
        session.commit();
        session.close();
        probe.left("b");
    }

    @Rule(clause = "10.3",
            says = "A commit that becomes a rollback is reported by a TransactionRolledBackException.")
    void failedCommitIsATransactionRolledBackException(Probe probe) throws Exception {
        String address = Settings.rejecting();
        Connection connection = probe.connect();
        Session emptying = connection.createSession();
        MessageConsumer consumer = emptying.createConsumer(emptying.createQueue(address));
        Probe.drain(consumer);
        Session session = connection.createSession(Session.SESSION_TRANSACTED);
        Probe.send(session, probe.queue(session), "goes with it");
        MessageProducer producer = session.createProducer(session.createQueue(address));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        Check.raises(TransactionRolledBackException.class, "commit() of more than the queue may hold", () -> {
            for (int sent = 0; sent < 1_200; sent++) {
                producer.send(session.createTextMessage("m" + sent));
            }
            session.commit();
        });
        probe.left();
        Check.nothing(consumer, "the transaction was rolled back");
        Probe.send(session, probe.queue(session), "of the next");
        session.commit();
        probe.left("of the next");
    }
}
