"""Attack classes R6 to R10 (docs/design/hostile-input.md), each beside a healthy client."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.errors import (
    RESOURCE_LIMIT_EXCEEDED,
)
from broker.amqp.limits import STREAMED_FROM, Limits
from broker.amqp.outcomes import Accepted, Modified, Rejected, Released
from broker.amqp.performatives import RECEIVER, Attach, Close, Detach, End, Flow
from broker.amqp.terminus import Target
from broker.app import App
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.context import RELEASED_IN_TURN, SWEPT_IN_TURN
from broker.settings import MEMORY, given_settings
from storage.batch import Batch
from tests.scenario.test_attacks_resources import BODY, MEMORY_MAX, OURS, errors_in, small_broker
from tests.scenario.test_attacks_transport import running
from tests.support.broker import Broker
from tests.support.clock import WALL_START_MS
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    message,
)
from tests.support.healthy import NoHarm, session_of
from tests.support.large import StreamingBroker, large, pieces
from tests.support.management import MANAGEMENT, request
from tests.support.routing import new_message
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import until

# -- R6


@pytest.mark.attack("R6")
@pytest.mark.parametrize(
    "state", [Modified(delivery_failed=True), Released()], ids=["failed", "released"]
)
def test_a_message_that_comes_back_ends_or_pauses(
    no_harm: NoHarm, state: Modified | Released
) -> None:
    """R6: a failed one is moved after five attempts, and a link that releases it must wait."""
    broker = Broker(policy=AddressPolicy(max_delivery_count=5))
    with no_harm.beside(broker) as healthy:
        broker.fill("q", 1)
        attacker = broker.session("attacker")
        attacker.attach_receiver("q", credit=1000)
        attempts = 0
        while any(isinstance(body, Transfer) for body in attacker.bodies()):
            attempts += 1
            assert attempts <= 20, "it comes without end"
            attacker.send(Disposition(role=RECEIVER, first=attempts - 1, settled=True, state=state))
            healthy.exchange()
        assert attempts == (5 if isinstance(state, Modified) else 10)
        moved = broker.queue("DLQ").contents() if "DLQ" in broker.router.queues else 0
        assert moved == isinstance(state, Modified)


@pytest.mark.attack("R6")
def test_a_dead_letter_queue_moves_nothing_to_itself(no_harm: NoHarm) -> None:
    """R6: a consumer of it rejects what it gets."""
    broker = Broker()
    with no_harm.beside(broker) as healthy:
        broker.fill("DLQ", 3)
        attacker = broker.session("attacker")
        attacker.attach_receiver("DLQ", credit=1000)
        attacker.frames()
        attacker.send(Disposition(role=RECEIVER, first=0, last=2, settled=True, state=Rejected()))
        healthy.exchange()
        attacker.expect_nothing()
        assert broker.queue("DLQ").contents() == 0


# -- R7


@pytest.mark.attack("R7")
def test_messages_that_fall_due_at_one_moment_leave_turns_to_others(no_harm: NoHarm) -> None:
    """R7: the healthy client is served between two turns, and each turn is bounded."""
    broker = Broker()
    due = int(RELEASED_IN_TURN) * 2 + 5
    with no_harm.beside(broker) as healthy:
        broker.fill("q", 1)
        for _ in range(due):
            broker.queue().put(new_message(deliver_at_ms=WALL_START_MS + 1000), Batch())
        broker.advance(1000)
        turns = 1
        while broker.queue().backlogs.waiting < due + 1:
            assert broker.queue().backlogs.waiting <= turns * RELEASED_IN_TURN + 1
            healthy.exchange()
            broker.advance(0)
            turns += 1
        assert turns >= 3


@pytest.mark.attack("R7")
def test_messages_that_expire_at_one_moment_leave_turns_to_others(no_harm: NoHarm) -> None:
    """R7: a sweep looks at 10,000."""
    broker = Broker()
    count = int(SWEPT_IN_TURN) + 2000
    with no_harm.beside(broker) as healthy:
        broker.fill("q", 1)
        for _ in range(count):
            broker.queue().put(new_message(expires_at_ms=WALL_START_MS + 10), Batch())
        broker.advance(1000)
        assert count - SWEPT_IN_TURN <= broker.queue().contents() < count
        healthy.exchange()
        broker.advance(1000)
        broker.advance(1000)
        assert broker.queue().contents() <= 1


IMPOSSIBLE: Final = [2**63 - 1, -(2**63), -1, 0, 1]


@pytest.mark.attack("R7")
@pytest.mark.parametrize("at_ms", IMPOSSIBLE)
def test_an_impossible_time_breaks_nothing(no_harm: NoHarm, at_ms: int) -> None:
    """R7: a message with it waits, is delivered, or is rejected."""
    broker = Broker(limits=Limits(idle_time_out_ms=0))
    with no_harm.beside(broker) as healthy:
        attacker = broker.session("attacker")
        attacker.attach_sender("q")
        annotations: dict[str, object] = {"x-opt-delivery-time": at_ms}
        attacker.transfer(payload=message(annotations=annotations, ttl=2**32 - 1))
        assert isinstance(attacker.expect(Disposition).state, Accepted | Rejected)
        for _ in range(5):
            broker.advance(3_600_000)
            healthy.exchange()


# -- R8


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone


@pytest.mark.attack("R8")
async def test_connections_that_come_and_go_leave_nothing(no_harm: NoHarm, tmp_path: Path) -> None:
    """R8: 200, of which half end without a close, and some before the open."""
    app = App(given_settings(port=0, users_file=tmp_path / "none", store=MEMORY))
    async with (
        running(app),
        no_harm.beside_sockets(lambda: SocketClient(app.port, local="127.0.0.9")) as healthy,
    ):
        before = descriptors()
        for number in range(200):
            async with SocketClient(app.port) as attacker:
                if number % 4:
                    await attacker.open(f"{number}")
                if number % 2:
                    attacker.send(Close())
                else:
                    attacker.writer.transport.abort()
            if number % 20 == 0:
                await healthy.exchange()
        await healthy.newcomer()
        await until(lambda: len(app.listeners.connections) == 1)
        await asyncio.sleep(0)
        assert descriptors() <= before
        assert app.container.link_count() == OURS


# -- R9


@pytest.mark.attack("R9")
def test_requests_to_management_wait_for_their_answers(no_harm: NoHarm) -> None:
    """R9: the attacker takes no answer; 100 of them wait, and further requests are rejected."""
    broker = Broker()
    with no_harm.beside(broker) as healthy:
        attacker = broker.session("attacker")
        attacker.attach_sender(MANAGEMENT)
        attacker.attach(attach_receiver(MANAGEMENT, handle=1, target=Target(address="here")))
        states: list[object] = []
        for number in range(150):
            payload = request("GET-TYPES", "org.amqp.management")
            attacker.transfer(number, payload=payload)
            states += [each.state for each in attacker.bodies() if isinstance(each, Disposition)]
            healthy.exchange()
        assert sum(isinstance(state, Rejected) for state in states) == 50


@pytest.mark.attack("R9")
def test_few_requests_to_management_are_sent_ahead(no_harm: NoHarm) -> None:
    """R9: more than the credit of eight end the link."""
    broker = Broker()
    with no_harm.beside(broker) as healthy:
        attacker = broker.session("attacker")
        attacker.send(attach_sender(MANAGEMENT))
        attacker.expect(Attach)
        assert attacker.expect(Flow).link_credit == 8
        payload = message(bytes(100))
        many = [Transfer(delivery_id=n, tag=b"%d" % n, payload=payload) for n in range(500)]
        attacker.send(*many)
        healthy.exchange()
        ended = [body for body in attacker.bodies() if isinstance(body, Detach | End | Close)]
        assert len(ended) <= 1


# -- R10


@pytest.mark.attack("R10")
def test_unfinished_deliveries_have_a_quarter_of_the_memory(no_harm: NoHarm) -> None:
    """R10: the connection with most of them is closed."""
    broker = small_broker()
    with no_harm.beside(broker) as healthy:
        attacker = broker.session("attacker")
        for handle in range(10):
            attacker.attach_sender("q", name=f"{handle}", handle=handle)
        for number in range(MEMORY_MAX // 4 // 1000 + 1):
            if not attacker.peer.is_live():
                break
            attacker.send(
                Transfer(
                    handle=number % 10,
                    delivery_id=number if number < 10 else None,
                    tag=b"%d" % number if number < 10 else None,
                    more=True,
                    payload=BODY,
                )
            )
            healthy.exchange()
        assert errors_in(attacker.bodies()) == {RESOURCE_LIMIT_EXCEEDED}
        assert broker.router.memory.unfinished == 0


@pytest.mark.attack("R10")
async def test_half_of_a_large_message_leaves_nothing_on_disk(no_harm: NoHarm) -> None:
    """R10: what has been stored of it is deleted when its connection ends."""
    async with StreamingBroker() as streaming:
        with no_harm.beside(streaming.broker) as healthy:
            for number in range(3):
                attacker = session_of(streaming.broker, f"attacker {number}")
                attacker.attach_sender("q")
                frames = pieces(large(4 * STREAMED_FROM)[0])
                for each in frames[: len(frames) // 2]:
                    attacker.send(each)
                    await streaming.work()
                assert await streaming.store.chunks() > 0
                healthy.exchange()
                attacker.hang_up()
                await streaming.work()
                assert await streaming.swept() == 0
            assert streaming.broker.queue().contents() == 0
