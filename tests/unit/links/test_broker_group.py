"""Clients of a broker in a group: redirected by a standby, held while none leads, then served."""

from __future__ import annotations

from typing import Final

import pytest

from broker.amqp.errors import CONNECTION_FORCED, CONNECTION_REDIRECT, ConnectionFault
from broker.amqp.frames import AMQP_HEADER
from broker.amqp.performatives import Begin, Close, Open
from broker.links.broker_group import HOLD_MS, BrokerGroup
from storage.members import StoredMember
from tests.support.broker import Broker, Client
from tests.support.frames import Header, frame, opening

ONE = StoredMember("one", {"amqp": ("one.example", 5672)})
TWO = StoredMember("two", {"amqp": ("two.example", 5673), "wss": ("two.example", 443)})
BARE = StoredMember("bare", {"amqps": ("bare.example", 5671)})
GONE = StoredMember("gone", {"amqp": ("gone.example", 5674)}, is_up=False)
BEGIN = frame(Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10))
CLOSE = frame(Close())


class Member:
    """A broker named `one` in a group in which none leads so far."""

    def __init__(self) -> None:
        self.broker: Final = Broker()
        self.group: Final = BrokerGroup("one", self.broker.router.timer_queue)
        self.broker.container.group = self.group


@pytest.fixture
def member() -> Member:
    return Member()


def opened(member: Member, *more: bytes) -> Client:
    """Return a client that has sent its open, and `more` behind it."""
    client = member.broker.dial()
    client.send_bytes(opening("client") + b"".join(more))
    assert client.expect(Header).data == AMQP_HEADER
    return client


def test_a_standby_names_the_leader(member: Member) -> None:
    member.group.another_leads("two", [ONE, TWO])
    client = opened(member)
    client.expect(Open)
    error = client.expect(Close).error
    assert error is not None
    assert error.condition == CONNECTION_REDIRECT
    told = {str(key): str(value) for key, value in error.info.items()}
    assert told["network-host"] == told["hostname"] == "two.example"
    assert "5673" in told["port"]
    assert member.broker.stats.connections_opened == 0


NO_ADDRESS = [
    # the members that are known
    pytest.param([ONE], id="an unknown leader"),
    pytest.param([BARE], id="a leader with addresses of other kinds"),
]


@pytest.mark.parametrize("members", NO_ADDRESS)
def test_a_client_is_sent_nowhere_else_than_to_a_listener_of_its_kind(
    member: Member, members: list[StoredMember]
) -> None:
    member.group.another_leads("bare", members)
    client = opened(member)
    client.expect(Open)
    error = client.expect(Close).error
    assert error is not None
    assert error.condition == CONNECTION_FORCED
    assert error.description == "this broker stands by, bare leads"


def test_a_client_is_held_until_this_broker_leads(member: Member) -> None:
    client = opened(member, BEGIN)
    client.expect_nothing()
    client.send_bytes(BEGIN)
    member.broker.advance(int(HOLD_MS) - 1)
    client.expect_nothing()
    member.group.lead([ONE, TWO])
    member.broker.container.run_round()
    assert "failover-server-list" in client.expect(Open).properties
    client.expect(Begin)
    assert client.peer.is_open
    assert member.group.held_count() == 0


def test_a_client_is_held_until_another_broker_leads(member: Member) -> None:
    client = opened(member)
    member.group.another_leads("two", [TWO])
    member.broker.container.run_round()
    client.expect(Open)
    error = client.expect(Close).error
    assert error is not None
    assert error.condition == CONNECTION_REDIRECT
    client.send_bytes(CLOSE)
    assert client.peer.connection.is_over


def test_a_client_is_held_for_ten_seconds_at_most(member: Member) -> None:
    client = opened(member)
    member.broker.advance(int(HOLD_MS))
    client.expect(Open)
    error = client.expect(Close).error
    assert error is not None
    assert (error.condition, error.description) == (
        CONNECTION_FORCED,
        "no broker of the group leads",
    )
    assert member.group.held_count() == 0


def test_a_client_that_leaves_is_forgotten(member: Member) -> None:
    client = opened(member)
    assert member.group.held_count() == 1
    client.peer.lost()
    assert member.group.held_count() == 0
    member.group.lead([ONE])
    member.broker.advance(int(HOLD_MS))


def test_a_standby_that_stops_closes_the_connections_of_those_that_wait(
    member: Member,
) -> None:
    client = opened(member)
    member.group.stop()
    member.broker.container.run_round()
    client.expect(Open)
    error = client.expect(Close).error
    assert error is not None
    assert error.description == "the broker is stopping"


def test_clients_of_a_broker_that_hands_over_are_sent_to_its_heir(member: Member) -> None:
    member.group.lead([ONE, TWO])
    client = opened(member)
    client.expect(Open)
    member.group.another_leads("two", member.group.members)
    member.broker.container.close_all(ConnectionFault(CONNECTION_FORCED, "the broker is stopping"))
    member.broker.container.run_round()
    error = client.expect(Close).error
    assert error is not None
    assert error.condition == CONNECTION_REDIRECT
    assert error.description == "this broker stands by, two leads at two.example:5673"


WISHES = [
    # the member that wants to lead, whether this broker is preferred, the heir
    pytest.param("two", False, "two", id="a preferred one"),
    pytest.param("two", True, "", id="a preferred one, as this broker is"),
    pytest.param("one", False, "", id="this broker, before it led"),
    pytest.param("", False, "", id="none"),
]


@pytest.mark.parametrize(("wishing", "prefers", "heir"), WISHES)
def test_the_lead_is_handed_to_a_preferred_member(
    wishing: str, *, prefers: bool, heir: str
) -> None:
    group = BrokerGroup("one", Broker().router.timer_queue, prefers=prefers)
    heirs: list[str] = []
    group.hand_over = lambda: heirs.append(group.heir)
    members = [
        StoredMember(name, {}, wants_to_lead=name == wishing) for name in ("one", "three", "two")
    ]
    group.lead(members)
    for _ in range(2):
        group.know(members)
    assert heirs == ([heir] if heir else [])


LISTS = [
    # the kind of listener, the members, the hosts that a client is told, in their order
    pytest.param("amqp", [BARE, TWO, ONE], ["one", "two"], id="this broker first"),
    pytest.param("amqp", [GONE, ONE, TWO], ["one", "two", "gone"], id="those that are up next"),
    pytest.param("amqp", [GONE, ONE], ["one", "gone"], id="one that may come back"),
    # Qpid JMS would forget all other addresses that it has
    pytest.param("amqp", [ONE], [], id="none but this one"),
    pytest.param("ws", [ONE, TWO], [], id="none of this kind"),
]


@pytest.mark.parametrize(("kind", "members", "hosts"), LISTS)
def test_clients_of_the_leader_are_told_the_addresses_of_all_members(
    member: Member, kind: str, members: list[StoredMember], hosts: list[str]
) -> None:
    member.group.lead(members)
    servers = member.group.properties(kind).get("failover-server-list", [])
    assert isinstance(servers, list)
    told = [{str(key): str(value) for key, value in each.items()}["hostname"] for each in servers]
    assert told == [f"{host}.example" for host in hosts]
