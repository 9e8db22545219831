"""One client from its first to its last byte: login, links, dynamic nodes, and cleaning up."""

from collections.abc import Callable

import pytest

from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.limits import CONTROLS_AT_ONCE, Limits
from broker.amqp.performatives import Attach, Close, Detach, End, Flow, Open
from broker.amqp.sasl_frames import (
    SASL_AUTH,
    SASL_OK,
    SASL_SYS_TEMP,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
)
from broker.amqp.terminus import LINK_DETACH, Source, Target
from broker.amqp.types import Described, ULong
from broker.links.peer import Peer
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker, Client, Doorman, entrance
from tests.support.frames import (
    Disposition,
    Header,
    Transfer,
    attach_receiver,
    attach_sender,
    frame,
    message,
    opening,
    sasl_frame,
)

PASSWORDS = {"ada": "engine"}
RIGHT = b"\0ada\0engine"
WRONG = b"\0ada\0motor"


def offered_by(broker: Broker) -> list[str]:
    return broker.container.authenticator.begin(entrance()).mechanisms()


def login(broker: Broker, mechanism: str, response: bytes | None = None) -> Client:
    """Send the SASL header and an init; return the client after it has read the mechanisms."""
    client = broker.dial()
    init = SaslInit(mechanism=mechanism, initial_response=response)
    client.send_bytes(SASL_HEADER + sasl_frame(init))
    assert client.expect(Header).data == SASL_HEADER
    assert client.expect(SaslMechanisms).mechanisms == offered_by(broker)
    return client


# -- authentication

ENTRIES = [
    pytest.param("ANONYMOUS", None, "", id="anybody"),
    pytest.param("ANONYMOUS", b"trace", "", id="anybody, with a trace"),
    pytest.param("PLAIN", RIGHT, "ada", id="a user with the password"),
]


@pytest.mark.parametrize(("mechanism", "response", "user"), ENTRIES)
def test_after_authentication_comes_open(mechanism: str, response: bytes | None, user: str) -> None:
    broker = Broker(authenticator=Doorman(PASSWORDS))
    client = login(broker, mechanism, response)
    assert client.expect_last(SaslOutcome).code == SASL_OK
    assert client.peer.identity.user == user
    client.send_bytes(opening("client"))
    assert client.expect(Header).data == AMQP_HEADER
    client.expect_last(Open)
    assert client.peer.is_open
    assert broker.stats.authentication_failures == 0


REJECTIONS = [
    pytest.param("PLAIN", WRONG, id="a wrong password"),
    pytest.param("PLAIN", b"\0bob\0engine", id="an unknown user"),
    pytest.param("ANONYMOUS", None, id="nobody"),
    pytest.param("SCRAM-SHA-256", b"n,,n=ada", id="a mechanism that is not offered"),
]


@pytest.mark.parametrize(("mechanism", "response"), REJECTIONS)
def test_not_let_in_is(mechanism: str, response: bytes | None) -> None:
    broker = Broker(authenticator=Doorman(PASSWORDS, anonymous=False))
    client = login(broker, mechanism, response)
    assert client.expect_last(SaslOutcome).code == SASL_AUTH
    assert client.is_closed()
    client.send_bytes(opening("client"))
    client.expect_nothing()
    assert broker.stats.authentication_failures == 1
    assert [event.split(":")[0] for event in broker.watcher.events] == ["refused "]
    assert (broker.stats.connections_opened, broker.stats.connections_closed) == (0, 0)


@pytest.mark.attack("A3")
def test_the_sasl_layer_may_not_be_left_out_where_nobody_is_anonymous() -> None:
    broker = Broker(authenticator=Doorman(PASSWORDS, anonymous=False))
    client = broker.dial()
    client.send_bytes(opening("client"))
    assert client.expect_last(Header).data == SASL_HEADER
    assert client.is_closed()
    assert broker.stats.connections_opened == 0


class Puzzled(Doorman):
    """An authenticator that cannot decide about any client."""

    def authenticate(self, peer: Peer, mechanism: str, response: bytes) -> None:  # noqa: ARG002
        peer.undecided("the users file cannot be read")


def test_who_cannot_be_judged_now_may_try_again() -> None:
    broker = Broker(authenticator=Puzzled(PASSWORDS))
    client = login(broker, "PLAIN", RIGHT)
    assert client.expect_last(SaslOutcome).code == SASL_SYS_TEMP
    assert client.is_closed()
    assert broker.watcher.events == ["refused : the users file cannot be read"]
    assert broker.stats.authentication_failures == 0


class Broken(Doorman):
    """An authenticator with a bug."""

    def authenticate(self, peer: Peer, mechanism: str, response: bytes) -> None:  # noqa: ARG002
        raise RuntimeError("with a secret in it")


@pytest.mark.attack("S10")
def test_a_bug_ends_one_connection_and_is_reported() -> None:
    broker = Broker(authenticator=Broken(PASSWORDS))
    other = broker.session("other")
    client = login(broker, "PLAIN", RIGHT)
    client.expect_nothing()
    assert client.is_closed()
    assert [str(error) for error in broker.watcher.errors] == ["with a secret in it"]
    other.attach_sender("q")


# -- an authenticator that answers late


def slow_login(
    response: bytes = RIGHT, limits: Limits | None = None
) -> tuple[Broker, Doorman, Client]:
    """Return a client whose password is still being checked, its broker and its authenticator."""
    doorman = Doorman(PASSWORDS, slow=True)
    broker = Broker(authenticator=doorman, limits=limits)
    return broker, doorman, login(broker, "PLAIN", response)


def test_what_is_pipelined_waits_for_the_outcome() -> None:
    _, doorman, client = slow_login()
    client.send_bytes(opening("client"))
    client.send_bytes(frame(Close()))
    client.expect_nothing()
    doorman.answer()
    assert client.expect(SaslOutcome).code == SASL_OK
    assert [type(body) for body in client.bodies()] == [Header, Open, Close]
    assert client.is_closed()


@pytest.mark.attack("A3")
def test_what_is_pipelined_behind_a_rejected_password_is_never_read() -> None:
    broker, doorman, client = slow_login(WRONG)
    client.send_bytes(opening("client"))
    doorman.answer()
    assert client.expect_last(SaslOutcome).code == SASL_AUTH
    assert client.is_closed()
    assert broker.container.peer_count() == 0


def test_an_answer_for_a_peer_that_has_gone_is_not_sent() -> None:
    broker, doorman, client = slow_login()
    client.send_bytes(opening("client"))
    client.hang_up()
    doorman.answer()
    client.expect_nothing()
    assert broker.watcher.events == []
    assert broker.container.peer_count() == 0


def test_a_peer_is_left_where_the_answer_takes_too_long() -> None:
    broker, doorman, client = slow_login(limits=Limits(handshake_timeout_ms=10_000))
    client.send_bytes(opening("client"))
    broker.advance(9_999)
    assert not client.is_closed()
    broker.advance(1)
    assert client.is_closed()
    doorman.answer()
    client.expect_nothing()
    assert broker.stats.connections_opened == 0


# -- links that are refused


UNKNOWN = Target(
    dynamic=True, dynamic_node_properties={"lifetime-policy": Described(ULong(0x2F), [])}
)

REFUSALS = [
    pytest.param(attach_sender(target=UNKNOWN), "amqp:invalid-field", id="another lifetime"),
    pytest.param(
        attach_receiver(unsettled=b"\xc1\x05\x02\xa1\x01t\x40"),
        "amqp:invalid-field",
        id="deliveries to be resumed under texts",
    ),
    pytest.param(attach_receiver("closed"), "amqp:not-found", id="receiving from nowhere"),
    pytest.param(attach_sender("closed"), "amqp:not-found", id="sending to nowhere"),
    pytest.param(attach_sender(""), "amqp:invalid-field", id="no possible address"),
    pytest.param(
        Attach(name="lookup", handle=0, role=True, target=Target()),
        "amqp:not-found",
        id="a lookup of a subscription",
    ),
    pytest.param(
        Attach(name="aimless", handle=0, role=False, source=Source()),
        "amqp:invalid-field",
        id="no target",
    ),
]


@pytest.mark.requirement("DST-02")
@pytest.mark.parametrize(("attach", "condition"), REFUSALS)
def test_a_link_is_refused(attach: Attach, condition: str) -> None:
    """The broker attaches without the terminus and detaches; it creates nothing and goes on."""
    broker = Broker(patterns=[("closed", AddressPolicy(auto_create=False))])
    broker.router.create(broker.router.parse("a-topic", "topic"), broker.journal.batch)
    client = broker.session()
    client.send(attach)
    client.expect_refusal(condition)
    client.expect_nothing()
    assert broker.container.link_count() == 0
    assert (broker.stats.links_refused, broker.stats.links_attached) == (1, 0)
    assert broker.router.queues == {}
    client.send(Detach(handle=attach.handle, closed=True))
    client.attach_receiver("q")
    assert broker.container.link_count() == 1


def test_links_that_come_and_go_without_end_leave_turns_to_other_clients() -> None:
    broker = Broker()
    client = broker.session()
    pair = frame(attach_sender()) + frame(Detach(handle=0, closed=True))
    transfer = frame(Transfer(settled=True, payload=message(b"behind")))
    client.peer.receive(pair * CONTROLS_AT_ONCE + frame(attach_sender()) + transfer)
    turns = 0
    while client.transport.paused:
        turns += 1
        answers = [body for body in client.bodies() if isinstance(body, Attach | Detach)]
        assert len(answers) <= CONTROLS_AT_ONCE
        other = broker.session("other")
        other.attach_sender()
        other.hang_up()
        broker.advance(0)
    assert turns == 2
    assert [type(body) for body in client.bodies()] == [Detach, Attach, Flow]
    assert broker.queue().backlogs.waiting == 1, "the transfer behind them"


def test_what_a_receiver_remembers_of_former_deliveries_is_not_resumed() -> None:
    broker = Broker()
    broker.fill("q", 1)
    client = broker.session()
    assert client.attach_receiver("q", unsettled=b"\xc1\x01\x00", credit=1).unsettled is None
    client.expect_deliveries(b"0")


def test_a_link_offers_nothing_that_is_not_there() -> None:
    desired = ["SHARED-SUBS"]
    client = Broker().session()
    sender = client.attach_sender("q", desired_capabilities=desired)
    receiver = client.attach_receiver("q", handle=1, desired_capabilities=desired)
    assert sender.offered_capabilities == []
    assert receiver.offered_capabilities == []


# -- dynamic nodes

DELETE_ON_CLOSE: dict[str, object] = {"lifetime-policy": Described(ULong(0x2B), [])}

KINDS = [
    pytest.param(["temporary-queue"], "queue", id="temporary queue"),
    pytest.param(["temporary-topic"], "topic", id="temporary topic"),
    pytest.param([], "queue", id="node of no certain kind"),
]


@pytest.mark.requirement("TMP-01")
@pytest.mark.parametrize(("capabilities", "kind"), KINDS)
def test_a_dynamic_target_makes_a(capabilities: list[str], kind: str) -> None:
    broker = Broker(policy=AddressPolicy(auto_create=False))
    client = broker.session()
    addresses = []
    for handle in range(2):
        asked = Target(
            dynamic=True,
            expiry_policy="link-detach",
            dynamic_node_properties=DELETE_ON_CLOSE,
            capabilities=capabilities,
        )
        answer = client.attach(attach_sender(target=asked, name=f"{handle}", handle=handle))
        client.expect(Flow)
        made = answer.target
        assert isinstance(made, Target)
        assert made.address is not None
        assert (made.dynamic, made.expiry_policy) == (True, "link-detach")
        assert made.dynamic_node_properties == DELETE_ON_CLOSE
        assert made.capabilities == capabilities
        assert broker.router.find_named(made.address, kind) is not None
        addresses.append(made.address)
    assert len(addresses[0]) > 20
    assert addresses[0] != addresses[1]


ENDS = [
    pytest.param(lambda client: client.send(Detach(handle=0, closed=True)), id="its link ends"),
    pytest.param(
        lambda client: client.send(Detach(handle=0)), id="its link is detached, and that is its end"
    ),
    pytest.param(lambda client: client.send(End()), id="its session ends"),
    pytest.param(lambda client: client.send(Close()), id="its connection is closed"),
    pytest.param(Client.hang_up, id="its connection is lost"),
]


@pytest.mark.requirement("TMP-03")
@pytest.mark.parametrize("dynamic", ["target", "source"])
@pytest.mark.parametrize("end", ENDS)
def test_a_dynamic_node_is_destroyed_when(dynamic: str, end: Callable[[Client], None]) -> None:
    broker = Broker()
    client = broker.session()
    if dynamic == "target":
        asked = Target(dynamic=True, expiry_policy=LINK_DETACH)
        target = client.attach(attach_sender(target=asked)).target
        assert isinstance(target, Target)
        address = target.address
    else:
        wanted = Source(dynamic=True, expiry_policy=LINK_DETACH)
        source = client.attach(attach_receiver(source=wanted)).source
        assert source is not None
        address = source.address
    other = broker.session("other")
    other.attach_sender(address)
    other.transfer(settled=True)
    end(client)
    detach = other.expect_last(Detach)
    assert detach.closed
    assert detach.error is not None
    assert detach.error.condition == "amqp:resource-deleted"
    assert (broker.router.queues, broker.container.link_count()) == ({}, 0)
    other.send(Detach(handle=0, closed=True), attach_sender(address))
    other.expect_refusal("amqp:not-found")


@pytest.mark.requirement("TMP-03")
def test_the_owners_other_links_to_it_end_too() -> None:
    broker = Broker()
    client = broker.session()
    target = client.attach(attach_sender(target=Target(dynamic=True))).target
    client.expect(Flow)
    assert isinstance(target, Target)
    client.attach_receiver(target.address, handle=1, credit=5)
    client.transfer(settled=True)
    client.expect_deliveries(b"hello")
    client.send(Detach(handle=0, closed=True))
    ended = [body for body in client.bodies() if isinstance(body, Detach)]
    assert sorted((each.handle, each.error is None) for each in ended) == [(0, True), (1, False)]
    client.send(Disposition(first=0))
    client.expect_nothing()
    assert broker.container.link_count() == 0


@pytest.mark.attack("Z2")
def test_nobody_else_consumes_from_a_temporary_queue() -> None:
    broker = Broker()
    client = broker.session("client")
    wanted = Target(dynamic=True, capabilities=["temporary-queue"])
    target = client.attach(attach_sender(target=wanted)).target
    assert isinstance(target, Target)
    other = broker.session("client")  # the same container, another connection
    for handle, mode in enumerate(["move", "copy"]):
        asked = Source(address=target.address, distribution_mode=mode)
        other.send(attach_receiver(source=asked, handle=handle, name=mode))
        other.expect_refusal("amqp:resource-locked")


# -- the end of a connection


def busy(broker: Broker) -> Client:
    """Return a client with links of every kind, unsettled deliveries, and half a message."""
    client = broker.session()
    client.attach_receiver("q", credit=2)
    client.expect_deliveries(b"0", b"1")
    client.attach_receiver(
        "q", name="browser", handle=1, source=Source(distribution_mode="copy", address="q")
    )
    client.attach_receiver("t", name="subscriber", handle=2, kind="topic", credit=9)
    client.attach_sender(None, name="relay", handle=3)
    client.attach_sender("q", name="partial", handle=4)
    client.send(Transfer(handle=4, more=True, payload=message(b"half")[:6]))
    client.attach(attach_sender(name="temporary", handle=5, target=Target(dynamic=True)))
    client.expect(Flow)
    client.begin(1)
    client.attach(attach_receiver("q", name="elsewhere"), channel=1)
    client.frames()
    return client


def close_from_here(client: Client) -> None:
    client.peer.connection.close(ConnectionFault(CONNECTION_FORCED, "enough"))
    client.broker.container.run_round()
    client.send(Close())


def close_unanswered(client: Client) -> None:
    client.peer.connection.close(ConnectionFault(CONNECTION_FORCED, "enough"))
    client.broker.advance(0)
    client.broker.advance(2000)


FINISHES = [
    pytest.param(Client.hang_up, "connection lost", id="lost"),
    pytest.param(lambda client: client.send(Close()), "closed by the peer", id="closed"),
    pytest.param(close_from_here, "amqp:connection:forced: enough", id="closed by us"),
    pytest.param(close_unanswered, "amqp:connection:forced: enough", id="not answering our close"),
    pytest.param(
        lambda client: client.send(Transfer(handle=99), Close()),
        "closed by the peer",
        id="closed after a fault",
    ),
]


@pytest.mark.requirement("CON-04", "RCV-08")
@pytest.mark.parametrize(("finish", "reason"), FINISHES)
def test_nothing_is_left_of_a_connection(finish: Callable[[Client], None], reason: str) -> None:
    broker = Broker()
    broker.fill("q", 3)
    client = busy(broker)
    assert (broker.container.peer_count(), broker.container.link_count()) == (1, 7)
    finish(client)
    assert (broker.container.peer_count(), broker.container.link_count()) == (0, 0)
    assert (list(broker.router.queues), list(broker.router.topics)) == (["q"], ["t"])
    queue = broker.queue()
    assert (queue.backlogs.waiting, queue.consumers.attached, queue.producers) == (3, [], [])
    assert broker.router.topics["t"].subscriptions == []
    stats = broker.stats
    assert stats.connections_opened == stats.connections_closed == 2
    assert stats.links_attached == 8  # seven of this client, and one of the filler's
    assert broker.watcher.events[-1] == f"closed client: {reason}"
    assert broker.watcher.errors == []
    after = broker.session("client")
    after.attach_receiver("q", credit=9)
    after.expect_deliveries(b"0", b"1", b"2")


@pytest.mark.parametrize(("finish", "reason"), FINISHES)
def test_the_end_comes_once(finish: Callable[[Client], None], reason: str) -> None:
    """Events of the socket or the clock after the end of a connection have no effect."""
    broker = Broker()
    client = broker.session()
    finish(client)
    client.frames()
    for _ in range(2):
        client.hang_up()
        client.send_bytes(opening("client"))
        client.peer.output_drained()
        broker.advance(10**6)
    client.expect_nothing()
    assert broker.watcher.events == ["opened client", f"closed client: {reason}"]
    assert broker.stats.connections_closed == 1
    assert broker.router.timer_queue.next_deadline_ms() == -1


def test_a_connection_that_never_opened_is_not_reported() -> None:
    broker = Broker()
    for data in (b"", AMQP_HEADER[:4], AMQP_HEADER, SASL_HEADER):
        client = broker.dial()
        client.send_bytes(data)
        client.hang_up()
    assert broker.watcher.events == []
    assert set(broker.stats.as_dict().values()) == {0}


def test_a_container_has_a_name_that_a_database_can_keep() -> None:
    client = Broker().dial()
    client.send_bytes(opening("c\0"))
    client.expect(Header)
    client.expect(Open)
    close = client.expect_last(Close)
    assert close.error is not None
    assert close.error.description == "a container-id has no NUL"
