"""State that all connections share: container-ids, link names, the round of work, and the stop."""

from collections.abc import Callable

import pytest

from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.amqp.limits import Limits
from broker.amqp.performatives import Attach, Begin, Close, Detach, End, Flow, Open
from broker.amqp.terminus import LINK_DETACH, Source, Target
from broker.amqp.types import Symbol, UInt
from tests.support.broker import Broker, Client
from tests.support.frames import (
    Header,
    Transfer,
    attach_receiver,
    attach_sender,
    flow,
    frame,
    message,
    opening,
)

Fields = dict[str, object]


def sole(**policies: int) -> Fields:
    """Return the fields of an open that asks for sole use of its container-id."""
    properties = {f"sole-connection-{name}-policy": UInt(value) for name, value in policies.items()}
    return {"desired_capabilities": ["sole-connection-for-container"], "properties": properties}


SOLE = sole()
CLOSING = sole(enforcement=1)
WEAK = sole(detection=1)
WEAK_CLOSING = sole(enforcement=1, detection=1)
STOPPING = ConnectionFault(CONNECTION_FORCED, "the broker is stopping")


def refused(broker: Broker, container_id: str = "client", **fields: object) -> Close:
    """Dial with `fields`, check that the connection is refused, and return the broker's close."""
    client = broker.dial()
    client.send_bytes(opening(container_id, **fields))
    client.expect(Header)
    ours = client.expect(Open)
    assert ours.properties == {"amqp:connection-establishment-failed": True}
    close = client.expect_last(Close)
    assert close.error is not None
    client.send(Close())
    assert client.is_closed()
    return close


def in_use(broker: Broker, container_id: str = "client", **fields: object) -> bool:
    """Return whether a new connection is refused because of its container-id (CON-03)."""
    close = refused(broker, container_id, **fields)
    assert close.error is not None
    return close.error.condition == "amqp:invalid-field" and close.error.info == {
        "invalid-field": Symbol("container-id")
    }


# -- container-ids


@pytest.mark.requirement("CON-01", "CON-06")
def test_without_the_capability_connections_share_a_container_id() -> None:
    broker = Broker()
    clients = [broker.connect("shared") for _ in range(3)]
    assert [client.peer.container_id for client in clients] == ["shared"] * 3
    assert broker.container.peer_count() == 3
    for client in clients:
        client.begin()


REFUSALS = [
    pytest.param(SOLE, SOLE, id="both want to be the only one"),
    pytest.param(SOLE, {}, id="the holder wants to be the only one"),
    pytest.param({}, SOLE, id="the newcomer wants to be the only one"),
    pytest.param(SOLE, CLOSING, id="the newcomer would close a holder that would not"),
]


@pytest.mark.requirement("CON-02", "CON-03", "CON-05")
@pytest.mark.parametrize(("holder", "newcomer"), REFUSALS)
def test_a_newcomer_is_refused(holder: Fields, newcomer: Fields) -> None:
    broker = Broker()
    first = broker.session("client", **holder)
    assert in_use(broker, "client", **newcomer)
    first.expect_nothing()
    assert broker.container.peer_count() == 1
    stats = broker.stats
    assert (stats.connections_opened, stats.connections_refused) == (1, 1)
    assert (stats.connections_closed, stats.authentication_failures) == (0, 0)
    reason = "amqp:invalid-field: container-id client is in use"
    assert broker.watcher.events == ["opened client", f"refused client: {reason}"]


@pytest.mark.requirement("CON-03")
def test_what_is_pipelined_behind_a_refused_open_does_nothing() -> None:
    broker = Broker()
    broker.connect("client", **SOLE)
    client = broker.dial()
    begin = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)
    client.send_bytes(
        opening("client") + frame(begin) + frame(attach_sender("new")) + frame(Close())
    )
    assert [type(body) for body in client.bodies()] == [Header, Open, Close]
    assert client.is_closed()
    assert broker.router.queues == {}
    assert broker.container.link_count() == 0


@pytest.mark.requirement("CON-02")
def test_another_container_id_is_another_matter() -> None:
    broker = Broker()
    broker.connect("one", **SOLE)
    broker.connect("other", **SOLE)
    broker.connect("One", **SOLE)
    assert broker.container.peer_count() == 3


ENDS: list[object] = [
    pytest.param(lambda client: client.send(Close()), id="closed by the peer"),
    pytest.param(Client.hang_up, id="lost"),
    pytest.param(lambda client: client.send(End(), channel=99), id="being closed for a fault"),
    pytest.param(lambda client: client.broker.advance(60_000), id="being closed as idle"),
]


@pytest.mark.requirement("CON-04")
@pytest.mark.parametrize("end", ENDS)
def test_a_container_id_is_free_once_its_holder_is(end: Callable[[Client], None]) -> None:
    """The broker's close frees the container-id, even if the peer never answers it."""
    broker = Broker(limits=Limits(idle_time_out_ms=60_000))
    for _ in range(3):
        end(broker.connect("client", **SOLE))
    broker.connect("client", **SOLE)


@pytest.mark.requirement("CON-04")
def test_a_refused_connection_holds_no_container_id() -> None:
    broker = Broker()
    first = broker.connect("client")
    assert in_use(broker, "client", **SOLE)
    broker.connect("client")
    first.hang_up()
    assert in_use(broker, "client", **SOLE)


def closed_for_another(client: Client) -> None:
    close = client.expect_close("amqp:resource-locked")
    assert close.error is not None
    assert close.error.info == {"sole-connection-enforcement": True}


TAKEOVERS = [
    pytest.param(CLOSING, CLOSING, id="by another that would"),
    pytest.param(CLOSING, SOLE, id="by another that would not"),
    pytest.param(CLOSING, {}, id="by one that does not ask to be the only one"),
    pytest.param({}, CLOSING, id="having no policy itself"),
]


@pytest.mark.requirement("CON-05")
@pytest.mark.parametrize(("holder", "newcomer"), TAKEOVERS)
def test_a_holder_makes_way(holder: Fields, newcomer: Fields) -> None:
    broker = Broker()
    broker.fill("q", 1)
    first = broker.session("client", **holder)
    first.attach_receiver("q", credit=1)
    first.expect_deliveries(b"0")
    second = broker.session("client", **newcomer)
    closed_for_another(first)
    assert broker.container.link_count() == 0
    second.attach_receiver("q", credit=1)
    second.expect_deliveries(b"0")
    first.send(Close())
    assert first.is_closed()
    second.expect_nothing()
    assert broker.container.peer_count() == 1


@pytest.mark.requirement("CON-05")
def test_every_holder_makes_way() -> None:
    broker = Broker()
    holders = [broker.connect("client") for _ in range(3)]
    broker.connect("client", **CLOSING)
    for holder in holders:
        closed_for_another(holder)


@pytest.mark.requirement("CON-05")
def test_a_holder_that_is_no_rival_stays() -> None:
    broker = Broker()
    rival = broker.connect("client", **WEAK_CLOSING)
    sharing = broker.session("client")
    broker.connect("client", **WEAK)
    closed_for_another(rival)
    sharing.attach_receiver("q")
    sharing.expect_nothing()


@pytest.mark.requirement("CON-02", "CON-05")
def test_our_open_tells_which_policies_are_in_force() -> None:
    broker = Broker(product={"product": "test"})
    client = broker.dial()
    client.send_bytes(opening("client", **WEAK_CLOSING))
    client.expect(Header)
    ours = client.expect_last(Open)
    assert "sole-connection-for-container" in ours.offered_capabilities
    assert ours.properties == {
        "product": "test",
        "sole-connection-enforcement-policy": UInt(1),
        "sole-connection-detection-policy": UInt(1),
    }
    other = broker.dial()
    other.send_bytes(opening("other", **SOLE))
    other.expect(Header)
    assert other.expect_last(Open).properties == {"product": "test"}


@pytest.mark.requirement("CON-05")
def test_a_policy_that_is_none_is_refused_and_blames_no_container_id() -> None:
    broker = Broker()
    policy = {"sole-connection-enforcement-policy": UInt(2)}
    close = refused(broker, "client", properties=policy)
    assert close.error is not None
    assert (close.error.condition, close.error.info) == ("amqp:invalid-field", {})
    assert broker.stats.connections_refused == 1


# -- link names


def stolen(client: Client, handle: int = 0) -> None:
    """Check that the next frame detaches `handle` because another link has taken its name."""
    detach = client.expect(Detach)
    assert (detach.handle, detach.closed) == (handle, True)
    assert detach.error is not None
    assert detach.error.condition == "amqp:link:stolen"


@pytest.mark.requirement("SUB-37")
@pytest.mark.parametrize("channel", [0, 1], ids=["in the same session", "in another session"])
def test_a_link_name_attached_again_is_stolen(channel: int) -> None:
    broker = Broker()
    client = broker.session()
    client.attach_receiver("q", name="mine")
    client.begin(1)
    client.send(attach_receiver("q", name="mine", handle=7), channel=channel)
    stolen(client)
    client.expect_last(Attach)
    client.send(Detach(handle=0, closed=True))
    client.expect_nothing()
    assert broker.container.link_count() == 1
    assert (broker.stats.links_attached, broker.stats.links_stolen) == (2, 1)


@pytest.mark.requirement("SUB-37")
def test_stealing_from_another_connection_loses_no_message() -> None:
    broker = Broker()
    broker.fill("q", 3)
    first = broker.session("client")
    first.attach_receiver("q", name="mine", credit=2)
    first.expect_deliveries(b"0", b"1")
    second = broker.session("client")
    second.attach_receiver("q", name="mine", credit=3)
    stolen(first)
    second.expect_deliveries(b"0", b"1", b"2")
    first.hang_up()
    third = broker.session("client")
    third.attach_receiver("q", name="mine", credit=3)
    stolen(second)
    third.expect_deliveries(b"0", b"1", b"2")
    assert broker.container.link_count() == 1


@pytest.mark.requirement("SUB-37")
def test_a_sender_is_stolen_in_the_middle_of_a_message() -> None:
    broker = Broker()
    first = broker.session("client")
    first.attach_sender("q", name="mine")
    whole = message(b"whole")
    first.send(Transfer(more=True, payload=whole[:5]))
    second = broker.session("client")
    second.attach_sender("q", name="mine")
    stolen(first)
    first.send(Transfer(delivery_id=None, tag=None, payload=whole[5:]))
    first.expect_nothing()
    assert broker.queue().backlogs.waiting == 0
    second.transfer(settled=True)
    assert broker.queue().backlogs.waiting == 1


NEIGHBOURS = [
    pytest.param("client", attach_sender("q", name="mine", handle=1), id="of the other role"),
    pytest.param("client", attach_receiver("q", name="Mine", handle=1), id="of another name"),
    pytest.param("other", attach_receiver("q", name="mine", handle=1), id="of another container"),
]


@pytest.mark.requirement("SUB-37")
@pytest.mark.parametrize(("container_id", "attach"), NEIGHBOURS)
def test_a_link_does_not_disturb_one(container_id: str, attach: Attach) -> None:
    broker = Broker()
    first = broker.session("client")
    first.attach_receiver("q", name="mine")
    broker.session(container_id).attach(attach)
    first.expect_nothing()
    assert broker.container.link_count() == 2


REFUSED_THIEVES = [
    attach_receiver(name="mine", source=Source()),
    attach_receiver("$tmp/queue/x", name="mine"),
]


@pytest.mark.requirement("SUB-37")
@pytest.mark.parametrize("attach", REFUSED_THIEVES, ids=["of no address", "of no node"])
def test_an_attach_that_is_refused_steals_nothing(attach: Attach) -> None:
    broker = Broker()
    first = broker.session("client")
    first.attach_receiver("q", name="mine")
    second = broker.session("client")
    second.send(attach)
    assert [type(body) for body in second.bodies()] == [Attach, Detach]
    first.expect_nothing()
    assert broker.container.link_count() == 1
    assert broker.stats.links_stolen == 0


def test_a_name_is_free_after_detach() -> None:
    broker = Broker()
    client = broker.session()
    for _ in range(3):
        client.attach_receiver("q", name="mine")
        client.send(Detach(handle=0, closed=True))
        assert client.expect_last(Detach).error is None
    assert broker.container.link_count() == 0
    assert broker.stats.links_stolen == 0


DYNAMIC_TARGET = Target(dynamic=True, expiry_policy=LINK_DETACH, capabilities=["temporary-queue"])
DYNAMIC_SOURCE = Source(dynamic=True, expiry_policy=LINK_DETACH, capabilities=["temporary-queue"])


@pytest.mark.requirement("TMP-03", "SUB-37")
@pytest.mark.parametrize("direction", ["send", "receive"])
def test_a_temporary_node_ends_with_its_link_though_the_thief_wants_it(direction: str) -> None:
    """Otherwise the new link would be attached to a deleted node, and lose messages."""
    broker = Broker()
    client = broker.session()
    if direction == "send":
        made = client.attach(attach_sender(name="mine", target=DYNAMIC_TARGET)).target
        client.expect(Flow)
        assert isinstance(made, Target)
        again = attach_sender(made.address, name="mine", handle=1)
    else:
        source = client.attach(attach_receiver(name="mine", source=DYNAMIC_SOURCE)).source
        assert source is not None
        again = attach_receiver(source.address, name="mine", handle=1)
    client.send(again)
    stolen(client)
    client.expect_refusal("amqp:not-found")
    client.expect_nothing()
    assert broker.router.queues == {}
    assert broker.container.link_count() == 0
    client.send(Detach(handle=0, closed=True), Detach(handle=1, closed=True))
    client.attach_receiver("q", name="mine")


# -- the round


def test_what_comes_in_one_piece_goes_out_in_one_write() -> None:
    broker = Broker()
    consumers = [broker.session(f"consumer {number}") for number in range(3)]
    for consumer in consumers:
        consumer.attach_receiver("t", kind="topic", credit=50)
    bystander = broker.session("bystander")
    sender = broker.session("sender")
    sender.attach_sender("t", kind="topic")
    everybody = [*consumers, sender, bystander]
    writes = [client.transport.writes for client in everybody]
    sender.send(*[Transfer(delivery_id=each, payload=message(b"%d" % each)) for each in range(50)])
    after = [client.transport.writes for client in everybody]
    assert [b - a for a, b in zip(writes, after, strict=True)] == [1, 1, 1, 1, 0]
    for consumer in consumers:
        consumer.expect_deliveries(*[b"%d" % each for each in range(50)])


def test_a_round_goes_on_until_nothing_is_left() -> None:
    """Output that is written makes room for more, which another client's message may cause."""
    broker = Broker(credit=70)  # enough that no flow is sent between the deliveries
    client = broker.session()
    client.attach_sender("q")
    client.attach_receiver("q", handle=1, credit=30)
    big = b"x" * 100_000
    client.send(
        *[
            Transfer(delivery_id=each, settled=True, payload=message(b"%d" % each + big))
            for each in range(30)
        ]
    )
    client.expect_deliveries(*[b"%d" % each + big for each in range(30)])
    assert broker.container.touched == []


def test_a_round_without_work_writes_nothing() -> None:
    broker = Broker()
    client = broker.session()
    writes = client.transport.writes
    broker.container.run_round()
    broker.container.tick()
    assert client.transport.writes == writes


def test_a_tick_does_what_is_due_and_writes_it() -> None:
    broker = Broker(limits=Limits(idle_time_out_ms=5000))
    client = broker.session()
    broker.clock.advance(4999)
    broker.container.tick()
    client.expect_nothing()
    broker.clock.advance(1)
    client.expect_nothing()
    broker.container.tick()
    client.expect_close("amqp:resource-limit-exceeded")


def test_no_two_connections_have_one_number() -> None:
    broker = Broker()
    numbers = []
    for _ in range(5):
        client = broker.dial()
        numbers.append(client.peer.id)
        client.hang_up()
    assert sorted(set(numbers)) == numbers


# -- the stop


def test_a_stop_closes_every_connection() -> None:
    broker = Broker()
    broker.fill("q", 1)
    clients = [broker.session(name) for name in ("a", "b", "b")]
    clients[0].attach_receiver("q", credit=1)
    clients[0].expect_deliveries(b"0")
    broker.container.close_all(STOPPING)
    broker.container.run_round()
    for client in clients:
        client.expect_close("amqp:connection:forced")
    assert broker.container.link_count() == 0
    assert broker.queue().backlogs.waiting == 1
    broker.container.close_all(STOPPING)
    broker.container.run_round()
    for client in clients:
        client.expect_nothing()
        client.send(Close())
        assert client.is_closed()
    assert broker.container.peer_count() == 0
    assert broker.watcher.events[-1] == f"closed b: {STOPPING}"


def test_nobody_is_let_in_during_a_stop() -> None:
    broker = Broker()
    waiting = broker.dial()
    waiting.send_bytes(opening()[:8])
    waiting.expect(Header)
    broker.container.close_all(STOPPING)
    close = refused(broker)
    assert close.error is not None
    assert close.error.condition == "amqp:connection:forced"
    waiting.send(Open(container_id="late"))
    assert waiting.expect(Open).properties == {"amqp:connection-establishment-failed": True}
    waiting.expect_close("amqp:connection:forced")
    assert broker.container.peer_count() == 0
    assert broker.stats.connections_refused == 2
    assert broker.stats.connections_opened == 0


def test_counts_follow_what_is_there() -> None:
    broker = Broker()
    container = broker.container
    client = broker.dial()
    assert container.peer_count() == 0
    client.send_bytes(opening())
    assert (container.peer_count(), container.link_count()) == (1, 0)
    client.frames()
    client.begin()
    client.attach_sender("q")
    client.attach_receiver("q", handle=1)
    assert (container.peer_count(), container.link_count()) == (1, 2)
    client.send(flow(), End())
    assert (container.peer_count(), container.link_count()) == (1, 0)
    client.hang_up()
    assert container.peer_count() == 0
