"""Metrics of 100,000 queues are made in stretches, between which the event loop does other work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from broker.http.metrics import Metrics
from broker.http.node_metrics import FAMILIES, LIMIT_MAX, NodeSelection
from broker.http.streams import Streams
from broker.http.stretches import STRETCH, Stretches
from tests.support.broker import Broker

NODES = 100_000

LONGEST_S = 0.25
"""A generous limit: stretches take less than 5 ms, a collection of garbage takes more."""

Work = Callable[[Metrics], Awaitable[object]]


async def broker_wide(metrics: Metrics) -> None:
    await metrics.text()


async def of_all_queues(metrics: Metrics) -> None:
    async for _ in metrics.pieces(NodeSelection(limit=LIMIT_MAX)):
        pass


PAGES = [
    pytest.param(
        broker_wide, 1, id="the page of the broker", marks=pytest.mark.requirement("OPS-04")
    ),
    pytest.param(
        of_all_queues, 5, id="the page of all queues", marks=pytest.mark.requirement("OPS-05")
    ),
]
"""A page, and how often it goes through all queues."""


@pytest.fixture(scope="module")
def broker() -> Broker:
    """Return a broker with 100,000 queues: the same hundred again and again, to save time."""
    broker = Broker()
    for number in range(100):
        broker.fill(f"orders.queue-{number}")
    queues = broker.queues()
    broker.router.queues.update({f"{at}": queues[at % 100] for at in range(NODES - 100)})
    return broker


def metrics_of(broker: Broker, stretches: Stretches) -> Metrics:
    return Metrics(broker.container, broker.store, Streams(1, broker.watcher), stretches=stretches)


async def turns_beside(work: Awaitable[object]) -> tuple[int, float]:
    """Return how many turns another task had during `work`, and the longest pause of it in s.

    The pause is in time of the processor, so that a busy machine makes no difference.
    """
    turns, longest_s, is_over = 0, 0.0, False

    async def other() -> None:
        nonlocal turns, longest_s
        last_s = time.thread_time()
        while not is_over:
            await asyncio.sleep(0)
            now_s = time.thread_time()
            longest_s = max(longest_s, now_s - last_s)
            last_s = now_s
            turns += 1

    beside = asyncio.create_task(other())
    await asyncio.sleep(0)
    await work
    is_over = True
    await beside
    return turns, longest_s


async def check(work: Work, passes: int, metrics: Metrics) -> None:
    turns, longest_s = await turns_beside(work(metrics))
    nodes = passes * NODES / turns
    assert nodes <= STRETCH, f"{nodes:.0f} nodes in one turn of the loop"
    assert longest_s < LONGEST_S


@pytest.mark.parametrize(("work", "passes"), PAGES)
async def test_100000_queues_keep_nobody_waiting(broker: Broker, work: Work, passes: int) -> None:
    await check(work, passes, metrics_of(broker, Stretches()))


@pytest.mark.parametrize(("work", "passes"), PAGES)
async def test_work_in_one_piece_is_noticed(broker: Broker, work: Work, passes: int) -> None:
    """The test above finds a writer that does not yield."""
    with pytest.raises(AssertionError, match="nodes in one turn of the loop"):
        await check(work, passes, metrics_of(broker, Stretches(nodes=10**6)))


@pytest.mark.requirement("OPS-04")
async def test_the_page_of_the_broker_does_not_grow_with_the_queues(broker: Broker) -> None:
    text = await metrics_of(broker, Stretches()).text()
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(samples) < 400
    assert 'jms_broker_queues{kind="named"} 100000' in samples


@pytest.mark.requirement("OPS-05")
async def test_no_piece_has_more_nodes_than_a_stretch(broker: Broker) -> None:
    pieces = metrics_of(broker, Stretches()).pieces(
        NodeSelection([name for name in FAMILIES if name != "queue_messages"], limit=LIMIT_MAX)
    )
    lines = [piece.count(b"\n") async for piece in pieces]
    assert max(lines) == STRETCH
    assert sum(lines) >= 3 * NODES


async def test_stretches_have_all_items_in_order() -> None:
    parts = [list(part) async for part in Stretches(nodes=3).of(range(8))]
    assert parts == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert [part async for part in Stretches().of("")] == []
