"""Attack classes R1 to R5 (docs/design/hostile-input.md), each beside a healthy client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.errors import (
    FRAMING_ERROR,
    HANDLE_IN_USE,
    RESOURCE_LIMIT_EXCEEDED,
)
from broker.amqp.limits import Limits
from broker.amqp.outcomes import Rejected
from broker.amqp.performatives import Begin, Detach
from broker.amqp.terminus import LINK_DETACH, Source
from broker.app import App
from broker.routing.credit.memory import ENTRY_BYTES
from broker.settings import MEMORY, given_settings
from tests.scenario.test_attacks_transport import running
from tests.support.access import ADA, session_as
from tests.support.broker import Broker, Client
from tests.support.frames import (
    Body,
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    frame,
    message,
)
from tests.support.healthy import QUEUE, NoHarm
from tests.support.socket_client import SocketClient
from tests.support.subscriptions import subscribing
from tests.support.tls_listening import until
from tests.support.transactions import COORDINATOR_HANDLE, Controller, condition_of, declare
from tests.unit.links.test_user_limits import limited
from tests.unit.net.test_socket_protocol import attach_reader, fill_link
from tests.unit.net.test_socket_protocol import message as large_message

MEMORY_MAX: Final = 64_000
BODY: Final = bytes(1000)
OURS: Final = 2
"""Links of the healthy client."""

Attack = Callable[[Client], None]


def errors_in(bodies: list[Body | None]) -> set[str]:
    """Return the conditions of the errors that a client was told."""
    told = [getattr(body, "error", None) for body in bodies if body is not None]
    return {str(error.condition) for error in told if error is not None}


def small_broker(credit: int = 100) -> Broker:
    """Return a broker with a budget of 64 KB for all clients."""
    broker = Broker(memory_max=MEMORY_MAX, credit=credit)
    broker.container.memory_guard.begin()
    return broker


# -- R1


def many_sessions(client: Client) -> None:
    for channel in range(1, 12):
        begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
        client.send(begin, channel=channel)


def many_links(client: Client) -> None:
    for handle in range(12):
        client.send(attach_receiver(handle=handle, name=f"{handle}"))


def largest_handle(client: Client) -> None:
    client.send(attach_receiver(handle=2**32 - 1))


def one_handle(client: Client) -> None:
    client.send(attach_receiver(), attach_receiver(name="another"))


def come_and_go(client: Client) -> None:
    pair = frame(attach_receiver()) + frame(Detach(handle=0, closed=True))
    client.send_bytes(pair * 200)


@pytest.mark.attack("R1")
@pytest.mark.parametrize(
    ("attack", "condition"),
    [
        pytest.param(many_sessions, FRAMING_ERROR, id="sessions"),
        pytest.param(many_links, FRAMING_ERROR, id="links"),
        pytest.param(largest_handle, FRAMING_ERROR, id="the largest handle"),
        pytest.param(one_handle, HANDLE_IN_USE, id="a handle that is in use"),
        pytest.param(come_and_go, None, id="links that come and go"),
    ],
)
def test_sessions_and_links_are_bounded(
    no_harm: NoHarm, attack: Attack, condition: str | None
) -> None:
    """R1: the limits are ten, and what the attacker held ends with its connection."""
    broker = Broker(limits=Limits(channel_max=9, handle_max=9))
    with no_harm.beside(broker) as healthy:
        for _ in range(3):
            attacker = broker.session("attacker")
            attack(attacker)
            healthy.exchange()
            assert errors_in(attacker.bodies()) == ({condition} if condition else set())
            attacker.hang_up()
        assert broker.container.link_count() == OURS
        assert broker.container.peer_count() == 1


# -- R2


def queues(client: Client, number: int) -> None:
    client.send(attach_sender(f"q{number}", name=f"{number}", handle=number))


def temporary_queues(client: Client, number: int) -> None:
    source = Source(dynamic=True)
    client.send(attach_receiver(source=source, name=f"{number}", handle=number))


def subscriptions(client: Client, number: int) -> None:
    client.send(subscribing("durable", f"{number}", handle=number))


def queues_by_the_relay(client: Client, number: int) -> None:
    if number == 0:
        client.attach_sender(None)
    client.transfer(number, payload=message(to=f"q{number}"))


@pytest.mark.attack("R2")
@pytest.mark.parametrize("make", [queues, temporary_queues, subscriptions, queues_by_the_relay])
def test_nodes_of_a_user_are_bounded(no_harm: NoHarm, make: Callable[[Client, int], None]) -> None:
    """R2: five for each user; another user is not affected."""
    broker = limited(nodes=5, subscriptions=5)
    with no_harm.beside(broker) as healthy:
        attacker = session_as(broker, ADA)
        for number in range(20):
            make(attacker, number)
            healthy.exchange()
        bodies = attacker.bodies()
        rejected = [
            body.state.error.condition
            for body in bodies
            if isinstance(body, Disposition)
            and isinstance(body.state, Rejected)
            and body.state.error is not None
        ]
        assert errors_in(bodies) | set(rejected) == {RESOURCE_LIMIT_EXCEEDED}
        assert len(broker.router.queues) + len(broker.router.subscriptions.named) <= 5 + 1


@pytest.mark.attack("R2")
def test_nodes_that_are_created_by_naming_them_are_bounded(no_harm: NoHarm) -> None:
    """R2: without limits for users."""
    broker = Broker()
    broker.router.population.auto_create_max = 10
    with no_harm.beside(broker) as healthy:
        attacker = broker.session("attacker")
        for number in range(30):
            queues(attacker, number)
            healthy.exchange()
        assert errors_in(attacker.bodies()) == {RESOURCE_LIMIT_EXCEEDED}
        assert len(broker.router.queues) == 10


# -- R3


@pytest.mark.attack("R3")
def test_a_client_that_never_settles_gets_no_more(no_harm: NoHarm) -> None:
    """R3: it holds a quarter of the memory, and gives everything back when it ends."""
    broker = small_broker()
    with no_harm.beside(broker) as healthy:
        owner = broker.session("owner")
        owner.attach_sender("large")
        most = MEMORY_MAX // 4 // (int(ENTRY_BYTES) + len(message(BODY))) + 1
        for number in range(most + 5):
            owner.transfer(number, payload=message(BODY))
        attacker = broker.session("attacker")
        attacker.attach_receiver("large", credit=2**31)
        assert sum(isinstance(body, Transfer) for body in attacker.bodies()) == most
        healthy.exchange()
        attacker.hang_up()
        assert broker.queue("large").backlogs.waiting == most + 5


@pytest.mark.attack("R3")
def test_suspended_links_leave_nothing(no_harm: NoHarm) -> None:
    """R3: temporary queues whose links are suspended, and that nobody comes back to."""
    broker = Broker()
    with no_harm.beside(broker) as healthy:
        attacker = broker.session("attacker")
        for number in range(100):
            source = Source(dynamic=True, timeout=5, expiry_policy=LINK_DETACH)
            attacker.send(attach_receiver(source=source, name=f"{number}", handle=number))
            attacker.send(Detach(handle=number, closed=False))
        healthy.exchange()
        assert len(broker.router.queues) == 101
        broker.advance(5000)
        assert list(broker.router.queues) == [QUEUE]


# -- R4


@pytest.mark.attack("R4")
@pytest.mark.parametrize("reads", ["deliveries", "answers"])
async def test_a_client_that_does_not_read_is_cut_off(
    no_harm: NoHarm, tmp_path: Path, reads: str
) -> None:
    """R4: what it does not read stops, then the reading of its requests, then the connection."""
    app = App(
        given_settings(port=0, users_file=tmp_path / "no", store=MEMORY, stall_timeout_ms=100)
    )
    async with (
        running(app),
        no_harm.beside_sockets(lambda: SocketClient(app.port, local="127.0.0.9")) as healthy,
        SocketClient(app.port, read_limit=1000) as attacker,
        SocketClient(app.port) as sender,
    ):
        await attach_reader(attacker)
        if reads == "deliveries":
            await fill_link(sender)
            for number in range(40):
                sender.send_bytes(large_message(number))
                await sender.writer.drain()
        else:
            attach = attach_sender("q", name="n" * 60_000, handle=1)
            pair = frame(attach) + frame(Detach(handle=1, closed=True))
            attacker.send_bytes(pair * 400)
        await healthy.exchange()
        await until(lambda: app.stats.connections_stalled == 1)
        await healthy.newcomer()


# -- R5


def fill_with_operations(controller: Controller) -> str:
    txn_id = controller.declare()
    for _ in range(12):
        controller.try_to_post(txn_id)
    return controller.fail_to_commit(txn_id)


def fill_with_bytes(controller: Controller) -> str:
    txn_id = controller.declare()
    for _ in range(5):
        controller.try_to_post(txn_id, bytes(2000))
    return controller.fail_to_commit(txn_id)


def keep_many_open(controller: Controller) -> str:
    for _ in range(5):
        controller.declare()
    return condition_of(controller.command(declare()))


def keep_one_open(controller: Controller) -> str:
    controller.post(controller.declare())
    controller.client.broker.advance(300_000)
    detach = controller.client.expect_detach("amqp:transaction:rollback", handle=COORDINATOR_HANDLE)
    assert detach.error is not None
    return RESOURCE_LIMIT_EXCEEDED


@pytest.mark.attack("R5")
@pytest.mark.parametrize(
    "attack", [fill_with_operations, fill_with_bytes, keep_many_open, keep_one_open]
)
def test_transactions_are_bounded(no_harm: NoHarm, attack: Callable[[Controller], str]) -> None:
    """R5: in number, operations, bytes and time."""
    limits = Limits(
        idle_time_out_ms=0,
        transactions_max=5,
        transaction_operations_max=10,
        transaction_bytes_max=5000,
    )
    broker = Broker(limits=limits)
    with no_harm.beside(broker) as healthy:
        for _ in range(3):
            attacker = Controller(broker, "attacker")
            attacker.client.attach_sender("q")
            assert attack(attacker) == RESOURCE_LIMIT_EXCEEDED
            healthy.exchange()
            attacker.client.hang_up()
        assert broker.queue().contents() == 0
        assert broker.router.memory.transactions == 0


@pytest.mark.attack("R5")
def test_transactions_of_all_clients_have_a_quarter_of_the_memory(no_harm: NoHarm) -> None:
    """R5: the largest can only be rolled back, and a small one is committed."""
    broker = small_broker()
    with no_harm.beside(broker) as healthy:
        attacker, other = Controller(broker, "attacker"), Controller(broker, "other")
        for each in (attacker, other):
            each.client.attach_sender("q")
        small, large_ = other.declare(), attacker.declare()
        other.post(small, BODY)
        while not broker.stats.transactions_given_up:
            attacker.try_to_post(large_, BODY)
        healthy.exchange()
        assert attacker.fail_to_commit(large_) == RESOURCE_LIMIT_EXCEEDED
        other.commit(small)
