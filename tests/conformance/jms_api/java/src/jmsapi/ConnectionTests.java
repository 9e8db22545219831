package jmsapi;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionMetaData;
import jakarta.jms.ExceptionListener;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Logins, client identifiers, metadata and exception listeners (6.1.1, 6.1.2, 6.1.6, 6.1.7). */
final class ConnectionTests {
    @Rule(clause = "6.1.1",
            says = "A login that the provider rejects is reported by a JMSSecurityException.")
    void rejectedLoginIsASecurityException(Probe probe) throws Exception {
        if (Settings.USER.isEmpty()) {
            throw new NotApplicable(NotApplicable.Kind.OPTION_MISSING, "needs --user");
        }
        Check.raises(JMSSecurityException.class, "a login of a user who does not exist", () -> {
            Connection connection = probe.keep(Probe.factory().createConnection(probe.name(), "no password"));
            connection.start();
        });
    }

    @Rule(clause = "6.1.2",
            says = "The client identifier that an application sets is that of the connection.")
    void clientIdIsTheOneThatWasSet(Probe probe) throws Exception {
        Connection connection = probe.connectAs(probe.name());
        Check.equal("getClientID()", probe.name(), connection.getClientID());
    }

    @Rule(clause = "6.1.2",
            says = "The client identifier of a connection factory is that of its connections.")
    void clientIdMayBeConfigured(Probe probe) throws Exception {
        Connection connection = probe.connect("jms.clientID=" + probe.name());
        Check.equal("getClientID()", probe.name(), connection.getClientID());
    }

    @Rule(clause = "6.1.2",
            says = "An attempt to change a client identifier that an administrator configured is an"
                    + " IllegalStateException.")
    void configuredClientIdCannotBeChanged(Probe probe) throws Exception {
        Connection connection = probe.stopped("jms.clientID=" + probe.name());
        Check.raises(IllegalStateException.class, "setClientID()", () -> connection.setClientID(probe.name("b")));
        Check.equal("getClientID()", probe.name(), connection.getClientID());
    }

    @Rule(clause = "6.1.2",
            says = "A client identifier cannot be set any more once the connection was used.")
    void clientIdCannotBeSetAfterUse(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        connection.createSession();
        Check.raises(IllegalStateException.class, "setClientID() after createSession()",
                () -> connection.setClientID(probe.name()));
        Connection started = probe.connect();
        Check.raises(IllegalStateException.class, "setClientID() after start()",
                () -> started.setClientID(probe.name()));
    }

    @Rule(clause = "6.1.2",
            says = "A client identifier that another connection uses is rejected by an InvalidClientIDException.")
    void clientIdInUseIsInvalid(Probe probe) throws Exception {
        probe.connectAs(probe.name());
        Connection second = probe.stopped();
        Check.raises(InvalidClientIDException.class, "setClientID() of an identifier in use", () -> {
            second.setClientID(probe.name());
            second.start();
        });
    }

    @Rule(clause = "6.1.2",
            says = "The attempt to use a client identifier twice does no harm to the connection that has it.")
    void clientIdInUseStaysInUse(Probe probe) throws Exception {
        Connection first = probe.connectAs(probe.name());
        Connection second = probe.stopped();
        Check.raises(JMSException.class, "setClientID() of an identifier in use", () -> {
            second.setClientID(probe.name());
            second.start();
        });
        Session session = first.createSession();
        Probe.send(session, probe.queue(session), "a");
        Probe.expect(session.createConsumer(probe.queue(session)), "a");
    }

    @Rule(clause = "6.1.2",
            says = "A client identifier may be used again once its connection is closed.")
    void clientIdIsFreeAfterClose(Probe probe) throws Exception {
        for (int round = 0; round < 3; round++) {
            Connection connection = probe.connectAs(probe.name());
            connection.createSession();
            connection.close();
        }
    }

    @Rule(clause = "10.3",
            says = "An empty client identifier, or none, is rejected by an InvalidClientIDException.")
    void emptyClientIdIsInvalid(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        Check.raises(InvalidClientIDException.class, "setClientID(\"\")", () -> connection.setClientID(""));
        Check.raises(InvalidClientIDException.class, "setClientID(null)", () -> connection.setClientID(null));
    }

    @Rule(clause = "6.1.6",
            says = "The metadata of a connection names the version of JMS, the provider and its version.")
    void metadataNamesVersionAndProvider(Probe probe) throws Exception {
        ConnectionMetaData metadata = probe.connect().getMetaData();
        Check.that(metadata.getJMSMajorVersion() >= 2, "major version 2 or later", metadata.getJMSMajorVersion());
        String version = metadata.getJMSMajorVersion() + "." + metadata.getJMSMinorVersion();
        Check.equal("getJMSVersion()", version, metadata.getJMSVersion());
        String provider = metadata.getJMSProviderName();
        Check.that(provider != null && !provider.isEmpty(), "a name of the provider", provider);
        String release = metadata.getProviderVersion();
        Check.that(release != null && !release.isEmpty(), "a version of the provider", release);
    }

    @Rule(clause = "3.5.9",
            says = "The metadata lists the JMSX properties, among them those that every provider must support.")
    void metadataListsJmsxProperties(Probe probe) throws Exception {
        List<Object> names = Probe.listed(probe.connect().getMetaData().getJMSXPropertyNames());
        for (String name : List.of("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount")) {
            Check.that(names.contains(name), name + " among getJMSXPropertyNames()", names);
        }
    }

    @Rule(clause = "6.1.7",
            says = "A connection returns the exception listener that was set, and null if there is none.")
    void exceptionListenerIsReturned(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        Check.equal("getExceptionListener() at first", null, connection.getExceptionListener());
        ExceptionListener listener = failure -> { };
        connection.setExceptionListener(listener);
        Check.that(connection.getExceptionListener() == listener, "the listener that was set",
                connection.getExceptionListener());
        connection.setExceptionListener(null);
        Check.equal("getExceptionListener() after null", null, connection.getExceptionListener());
    }

    @Rule(clause = "6.1.7",
            says = "An exception that a call throws is not given to the exception listener as well.")
    void thrownExceptionIsNotReportedTwice(Probe probe) throws Exception {
        Connection connection = probe.stopped();
        List<JMSException> told = Collections.synchronizedList(new ArrayList<>());
        connection.setExceptionListener(told::add);
        connection.start();
        Session session = connection.createSession();
        Check.raises(JMSException.class, "createConsumer() with a selector of wrong syntax",
                () -> session.createConsumer(probe.queue(session), "a ="));
        Check.raises(JMSException.class, "unsubscribe() of an unknown name", () -> session.unsubscribe(probe.name()));
        Probe.send(session, probe.queue(session), "a");
        Probe.expect(session.createConsumer(probe.queue(session)), "a");
        Check.equal("the exceptions that the listener got", List.of(), told);
    }

    @Rule(clause = "6.1.1",
            says = "A connection works for several sessions, of whatever modes, at once.")
    void connectionHasManySessions(Probe probe) throws Exception {
        Connection connection = probe.connect();
        List<Session> sessions = new ArrayList<>();
        for (int place = 0; place < 12; place++) {
            sessions.add(connection.createSession(place % 4));
        }
        for (int place = 0; place < 12; place++) {
            Session session = sessions.get(place);
            Check.equal("the mode of session " + place, place % 4, session.getAcknowledgeMode());
            Probe.send(session, session.createQueue(probe.queueName("q" + place)), "a" + place);
            if (session.getTransacted()) {
                session.commit();
            }
        }
        Session reader = connection.createSession();
        for (int place = 0; place < 12; place++) {
            Probe.expect(reader.createConsumer(reader.createQueue(probe.queueName("q" + place))), "a" + place);
        }
    }
}
