package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** The acknowledge modes, recovery and redelivery (6.2.10, 6.2.11, 3.6, 3.10). */
final class AcknowledgeTests {
    @Rule(clause = "6.2.10",
            says = "AUTO_ACKNOWLEDGE: a message is acknowledged once receive has returned it.")
    void autoAcknowledgesAtReceive(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        Session session = probe.session();
        Probe.expect(session.createConsumer(probe.queue(session)), "a", "b");
        session.close();
        probe.left("c");
    }

    @Rule(clause = "6.2.10",
            says = "AUTO_ACKNOWLEDGE: a message is acknowledged once its listener has returned.")
    void autoAcknowledgesAfterTheListener(Probe probe) throws Exception {
        Session session = probe.session();
        BlockingQueue<Message> heard = new LinkedBlockingQueue<>();
        session.createConsumer(probe.queue(session)).setMessageListener(heard::add);
        probe.fill("a", "b");
        Probe.heard(heard);
        Probe.heard(heard);
        session.close();
        probe.left();
    }

    @Rule(clause = "6.2.10",
            says = "DUPS_OK_ACKNOWLEDGE: messages that were received are acknowledged when the session is closed.")
    void dupsOkAcknowledgesLazily(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        Session session = probe.session(Session.DUPS_OK_ACKNOWLEDGE);
        Probe.expect(session.createConsumer(probe.queue(session)), "a", "b");
        session.close();
        probe.left("c");
    }

    @Rule(clause = "6.2.10",
            says = "DUPS_OK_ACKNOWLEDGE: messages of a listener are acknowledged, without help of the application.")
    void dupsOkAcknowledgesAfterTheListener(Probe probe) throws Exception {
        Session session = probe.session(Session.DUPS_OK_ACKNOWLEDGE);
        BlockingQueue<Message> heard = new LinkedBlockingQueue<>();
        session.createConsumer(probe.queue(session)).setMessageListener(heard::add);
        probe.fill("a", "b", "c");
        for (int count = 0; count < 3; count++) {
            Probe.heard(heard);
        }
        session.close();
        probe.left();
    }

    @Rule(clause = "6.2.10",
            says = "CLIENT_ACKNOWLEDGE: acknowledging a message acknowledges all that its session was delivered.")
    void clientAcknowledgesAllOfTheSession(Probe probe) throws Exception {
        probe.fill("a", "b", "c", "d");
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        Probe.expect(session.createConsumer(probe.queue(session)), "a", "b", "c").acknowledge();
        session.close();
        probe.left("d");
    }

    @Rule(clause = "6.2.10",
            says = "CLIENT_ACKNOWLEDGE: acknowledging an earlier message acknowledges the later ones as well.")
    void clientAcknowledgesLaterMessagesToo(Probe probe) throws Exception {
        probe.fill("a", "b", "c", "d");
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Message first = Probe.expect(consumer, "a");
        Probe.expect(consumer, "b", "c");
        first.acknowledge();
        session.close();
        probe.left("d");
    }

    @Rule(clause = "6.2.10",
            says = "CLIENT_ACKNOWLEDGE: acknowledging a message covers all consumers of its session, and no other session.")
    void clientAcknowledgesAllConsumers(Probe probe) throws Exception {
        Connection connection = probe.connect();
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Session other = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        String[] names = {"a", "b", "c"};
        for (String each : names) {
            Probe.send(session, session.createQueue(probe.queueName(each)), each);
        }
        Message last = null;
        for (String each : new String[] {"a", "b"}) {
            last = Probe.expect(session.createConsumer(session.createQueue(probe.queueName(each))), each);
        }
        Probe.expect(other.createConsumer(other.createQueue(probe.queueName("c"))), "c");
        last.acknowledge();
        session.close();
        other.close();
        Session reader = connection.createSession();
        for (String each : new String[] {"a", "b"}) {
            Check.nothing(reader.createConsumer(reader.createQueue(probe.queueName(each))), "it is acknowledged");
        }
        Probe.expectAgain(reader.createConsumer(reader.createQueue(probe.queueName("c"))), "c");
    }

    @Rule(clause = "6.2.10",
            says = "CLIENT_ACKNOWLEDGE: without acknowledge, messages are delivered again in their order.")
    void withoutAcknowledgeMessagesComeAgain(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        Probe.expect(session.createConsumer(probe.queue(session)), "a", "b");
        session.close();
        Session again = probe.session();
        MessageConsumer consumer = again.createConsumer(probe.queue(again));
        Probe.expectAgain(consumer, "a");
        Probe.expectAgain(consumer, "b");
        Probe.expect(consumer, "c");
    }

    @Rule(clause = "6.2.10",
            says = "CLIENT_ACKNOWLEDGE: acknowledging a message twice is no error.")
    void acknowledgeMayBeRepeated(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Message first = Probe.expect(consumer, "a");
        first.acknowledge();
        first.acknowledge();
        Probe.expect(consumer, "b").acknowledge();
        session.close();
        probe.left("c");
    }

    @Rule(clause = "8.8",
            says = "CLIENT_ACKNOWLEDGE: messages may be acknowledged after their consumer was closed.")
    void acknowledgeAfterTheConsumerClosed(Probe probe) throws Exception {
        probe.fill("a", "b");
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Message message = Probe.expect(consumer, "a");
        consumer.close();
        message.acknowledge();
        session.close();
        probe.left("b");
    }

    @Rule(clause = "3.6",
            says = "In automatic modes a call of acknowledge is ignored.")
    void acknowledgeIsIgnoredInAutomaticModes(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        Connection connection = probe.connect();
        for (int mode : new int[] {Session.AUTO_ACKNOWLEDGE, Session.DUPS_OK_ACKNOWLEDGE}) {
            Session session = connection.createSession(mode);
            Message message = Probe.next(session.createConsumer(probe.queue(session)));
            message.acknowledge();
            message.acknowledge();
            session.close();
        }
        probe.left("c");
    }

    @Rule(clause = "6.2.10",
            says = "Recover delivers again from the first message that was not acknowledged, marked and counted.")
    void recoverBeginsAtTheFirstUnacknowledged(Probe probe) throws Exception {
        probe.fill("a", "b", "c", "d");
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Probe.expect(consumer, "a").acknowledge();
        Probe.expect(consumer, "b", "c");
        session.recover();
        Message first = Probe.expectAgain(consumer, "b");
        Check.equal("JMSXDeliveryCount", 2, Probe.deliveryCount(first));
        Probe.expectAgain(consumer, "c");
        Message last = Probe.expect(consumer, "d");
        Check.equal("JMSRedelivered of a message that was not delivered", false, last.getJMSRedelivered());
        last.acknowledge();
        session.close();
        probe.left();
    }

    @Rule(clause = "6.2.10",
            says = "Recover works for several consumers of a session, each with its messages in their order.")
    void recoverCoversAllConsumers(Probe probe) throws Exception {
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer[] consumers = new MessageConsumer[2];
        for (int place = 0; place < 2; place++) {
            Probe.send(session, session.createQueue(probe.queueName("q" + place)), "a", "b");
            consumers[place] = session.createConsumer(session.createQueue(probe.queueName("q" + place)));
            Probe.expect(consumers[place], "a", "b");
        }
        session.recover();
        for (MessageConsumer consumer : consumers) {
            Probe.expectAgain(consumer, "a");
            Probe.expectAgain(consumer, "b");
        }
    }

    @Rule(clause = "6.2.10",
            says = "Recover in an automatic mode is no error, and does not bring back acknowledged messages.")
    void recoverInAutomaticModes(Probe probe) throws Exception {
        probe.fill("a", "b");
        Session session = probe.session();
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Probe.expect(consumer, "a");
        session.recover();
        Probe.expect(consumer, "b");
        session.recover();
        Check.nothing(consumer, "all is acknowledged");
    }

    @Rule(clause = "6.2.10",
            says = "A listener may recover its session: the message comes again, counted each time.")
    void listenerMayRecover(Probe probe) throws Exception {
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        session.createConsumer(probe.queue(session)).setMessageListener(message -> probe.within(() -> {
            int count = Probe.deliveryCount(message);
            if (count < 3) {
                session.recover();
            } else {
                message.acknowledge();
            }
            heard.add(Probe.text(message) + " " + count + " " + message.getJMSRedelivered());
        }));
        probe.fill("a");
        for (String expected : new String[] {"a 1 false", "a 2 true", "a 3 true"}) {
            Check.equal("the call", expected, Probe.heard(heard));
        }
        session.close();
        probe.left();
    }

    @Rule(clause = "3.10",
            says = "A message that its consumer has changed is redelivered as it was sent.")
    void changedMessageIsRedeliveredUnchanged(Probe probe) throws Exception {
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        TextMessage sent = session.createTextMessage("a");
        sent.setStringProperty("colour", "red");
        session.createProducer(probe.queue(session)).send(sent);
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        TextMessage message = (TextMessage) Probe.expect(consumer, "a");
        message.clearBody();
        message.setText("changed");
        message.clearProperties();
        message.setStringProperty("colour", "blue");
        session.recover();
        Message again = Probe.expectAgain(consumer, "a");
        Check.equal("the property", "red", again.getStringProperty("colour"));
    }

    @Rule(clause = "6.2.11",
            says = "A message that was acknowledged is never delivered again, to whichever consumer.")
    void acknowledgedMessageNeverComesAgain(Probe probe) throws Exception {
        probe.fill("a", "b", "c");
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        Probe.expect(consumer, "a", "b").acknowledge();
        session.recover();
        Probe.expect(consumer, "c");
        session.recover();
        Probe.expectAgain(consumer, "c").acknowledge();
        consumer.close();
        Check.nothing(session.createConsumer(probe.queue(session)), "all is acknowledged");
        session.close();
        probe.left();
    }

    @Rule(clause = "3.5.11",
            says = "JMSXDeliveryCount is 1 at the first delivery and grows by one with each further delivery.")
    void deliveriesAreCounted(Probe probe) throws Exception {
        probe.fill("a");
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(probe.queue(session));
        for (int count = 1; count <= 4; count++) {
            Message message = Probe.expect(consumer, "a");
            Check.equal("JMSXDeliveryCount", count, Probe.deliveryCount(message));
            Check.equal("JMSRedelivered", count > 1, message.getJMSRedelivered());
            session.recover();
        }
    }

    @Rule(clause = "6.2.10",
            says = "Acknowledge of a message after its session was closed does not acknowledge anything.")
    void lateAcknowledgeHasNoEffect(Probe probe) throws Exception {
        probe.fill("a");
        Session session = probe.session(Session.CLIENT_ACKNOWLEDGE);
        Message message = Probe.expect(session.createConsumer(probe.queue(session)), "a");
        session.close();
        Check.raises(IllegalStateException.class, "acknowledge()", message::acknowledge);
        probe.left("a");
    }
}
