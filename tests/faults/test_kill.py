"""`kill -9` under load: everything accepted is there afterwards (P1, P5)."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.producer import Producer, died, drained
from tests.interop.broker_process import BrokerProcess, command
from tests.support.socket_client import SocketClient

SETTINGS = 'store = "sqlite:///data/store.db"\n'

CYCLES = 6


def port_of(broker: BrokerProcess) -> int:
    return urlsplit(broker.url).port or 0


async def send_until_killed(broker: BrokerProcess, first: int, count: int) -> list[int]:
    """Send until `count` messages are accepted, kill the broker; return the accepted numbers."""
    async with SocketClient(port_of(broker)) as client:
        producer = Producer(client, first)
        await producer.attach("q")
        await producer.run(count)
        producer.send()
        await asyncio.to_thread(broker.kill)
        await died(client)
        return producer.accepted


@pytest.mark.requirement("PRD-03")
async def test_what_was_accepted_outlives_any_kill(tmp_path: Path) -> None:
    seeded = random.Random(1)
    accepted: list[int] = []
    held: list[int] = []
    for _ in range(CYCLES):
        broker = BrokerProcess(tmp_path, settings=SETTINGS)
        held = await drained(port_of(broker), "q", len(accepted))
        assert set(accepted) <= set(held), "an accepted message is lost"
        assert held == sorted(set(held)), "order, and each once"
        first = max(held, default=-1) + 1
        accepted += await send_until_killed(broker, first, seeded.randint(1, 400))
    assert len(accepted) > 100
    assert held


@pytest.mark.requirement("DST-02")
async def test_a_stopped_broker_has_everything_when_it_is_back(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    async with SocketClient(port_of(broker)) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        await producer.run(100)
        sent = producer.sent
    assert broker.stop() == 0
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    assert await drained(port_of(again), "q", 100) == list(range(sent))
    assert again.stop() == 0


async def test_a_disk_that_fails_means_no_answer_and_an_end_with_one_line(tmp_path: Path) -> None:
    """To the process that writes it, a file that may not grow is a full disk."""
    program = [
        "prlimit",
        "--fsize=400000",
        *command(),
        *("serve", "--port", "0", "--config", str(tmp_path / "broker.toml")),
    ]
    without_ballast = f"{SETTINGS}disk_ballast = 0\n"
    broker = BrokerProcess(tmp_path, settings=without_ballast, program=program)
    async with SocketClient(port_of(broker)) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await producer.run(100_000)
    assert broker.wait() == 1
    assert "jms-broker: the store" in broker.log.read_text()
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    held = await drained(port_of(again), "q", len(producer.accepted))
    assert set(producer.accepted) <= set(held)
    assert held == sorted(set(held))
    assert again.stop() == 0
