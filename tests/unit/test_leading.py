"""A leader whose proof is too old freezes: it reads and answers nothing until it has a new one."""

from __future__ import annotations

import http.client
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.amqp.descriptors import DISPOSITION, TRANSFER
from broker.amqp.frames import AMQP_HEADER, EMPTY_FRAME
from broker.amqp.performatives import RECEIVER, SENDER, Attach, Flow
from broker.amqp.sections import split
from broker.amqp.terminus import Source, Target
from broker.app import App
from broker.leading import Leading
from broker.links.broker_group import BrokerGroup
from broker.message import read_message
from broker.settings import MEMORY, given_settings
from broker.tenure import Tenure
from storage.steady_clock import steady_us
from tests.conformance.frames import Transfer
from tests.support.frames import flow, frame, message
from tests.support.http import ask
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import until

HEARTBEATS = 3
SILENCE_US = 60_000_000


class Leader:
    """A broker that leads as long as `is_proved`; it drops its clients `grace_ms` behind that."""

    def __init__(self, users_file: Path, *, grace_ms: int) -> None:
        settings = given_settings(port=0, users_file=users_file, store=MEMORY, http={"port": 0})
        app = self.app = App(settings)
        self.is_proved = True
        app.container.group = BrokerGroup("a", app.container.router.timer_queue)
        app.leading = Leading(
            Tenure(self._proof_us, steady_us, silence_us=SILENCE_US),
            app.container,
            app.listeners,
            grace_ms=grace_ms,
            members=app.store.members,
            lost=app._store_failed,
        )

    def _proof_us(self) -> int:
        # as old as it may be, so that it is asked for all the time, or older
        return steady_us() - SILENCE_US * 2 // 3 + (1000 if self.is_proved else -1_000_000)

    async def stop(self) -> None:
        self.is_proved = True
        await until(lambda: not self.app.listeners.is_frozen or self.app.ended.is_set())
        await self.app.stop(patience_s=0)

    async def freeze(self) -> None:
        self.is_proved = False
        await until(lambda: self.app.listeners.is_frozen)


@pytest.fixture
async def leader(tmp_path: Path) -> AsyncIterator[Leader]:
    started = Leader(tmp_path / "users", grace_ms=60_000)
    await started.app.start()
    yield started
    await started.stop()


async def only_empty_frames(client: SocketClient) -> None:
    """Check that the broker sends empty frames, and nothing else, for a while."""
    for _ in range(HEARTBEATS):
        assert await client.frame() == EMPTY_FRAME


async def next_performative(client: SocketClient) -> bytes:
    """Return the next frame that is not empty."""
    while (found := await client.frame()) == EMPTY_FRAME:
        pass
    return found


async def test_a_frozen_leader_tells_no_outcome(leader: Leader) -> None:
    async with SocketClient(leader.app.port) as client:
        await client.open("producer", idle_time_out=200)
        await client.begin()
        client.send(Attach(name="out", handle=0, role=SENDER, target=Target(address="q")))
        assert isinstance(await client.next(), Attach)
        assert isinstance(await client.next(), Flow)
        await leader.freeze()
        sent = Transfer(delivery_id=0, tag=b"0", payload=message(b"x", durable=True))
        client.send_bytes(frame(sent))
        await only_empty_frames(client)
        assert leader.app.stats.published == 0, "it reads nothing"
        leader.is_proved = True
        assert (await next_performative(client))[10] == DISPOSITION


async def test_a_round_that_was_left_out_is_made_up_for(leader: Leader) -> None:
    """The tenure was over for less than the time between two looks: no client is frozen."""
    container = leader.app.container
    leader.is_proved = False
    await until(lambda: container.tenure is not None and container.tenure.is_over())
    container.run_round()
    leader.is_proved = True
    assert container.owes_round
    await until(lambda: not container.owes_round)
    assert not leader.app.listeners.is_frozen


async def test_a_frozen_leader_delivers_nothing(leader: Leader) -> None:
    container = leader.app.container
    async with SocketClient(leader.app.port) as client:
        await client.open("consumer", idle_time_out=200)
        await client.begin()
        client.send(
            Attach(name="in", handle=0, role=RECEIVER, source=Source(address="q")),
            flow(handle=0, delivery_count=0, credit=10),
        )
        assert isinstance(await client.next(), Attach)
        await leader.freeze()
        data = message(b"x")
        node = container.router.resolve(container.router.parse("q"), container.journal.batch)
        put = read_message(split(data, 0, len(data)), data, container.clock)
        node.put(put, container.journal.batch)
        container.run_round()
        await only_empty_frames(client)
        leader.is_proved = True
        assert (await next_performative(client))[10] == TRANSFER


async def test_a_client_that_connects_to_a_frozen_leader_waits(leader: Leader) -> None:
    await leader.freeze()
    async with SocketClient(leader.app.port) as client:
        client.send_bytes(AMQP_HEADER)
        await until(lambda: len(leader.app.listeners.connections) == 1)
        leader.is_proved = True
        assert await client.header() == AMQP_HEADER


async def test_a_leader_that_stays_frozen_drops_its_clients(tmp_path: Path) -> None:
    leader = Leader(tmp_path / "users", grace_ms=1)
    await leader.app.start()
    async with SocketClient(leader.app.port) as client:
        await client.open()
        leader.is_proved = False
        assert await client.eof(), "without a word"
    await leader.app.ended.wait()
    assert "no proof" in str(leader.app.failure)
    await leader.stop()


async def test_a_frozen_leader_answers_only_probes_over_http(leader: Leader) -> None:
    assert leader.app.http is not None
    url = leader.app.http.url()
    assert (await ask(f"{url}/events/bounds")).status == 200
    await leader.freeze()
    ready = await ask(f"{url}/readyz")
    assert (ready.status, ready.body) == (503, b"it is not proved that the broker leads\n")
    assert (await ask(f"{url}/livez")).status == 200
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        await ask(f"{url}/events/bounds")
    leader.is_proved = True
    await until(lambda: not leader.app.listeners.is_frozen)
    assert (await ask(f"{url}/readyz")).status == 200
    assert (await ask(f"{url}/events/bounds")).status == 200
