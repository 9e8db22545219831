"""Samples of queues: taken while their pages are looked at, of so many queues at most."""

from __future__ import annotations

import pytest

from broker.http.console import queue_samples
from broker.http.console.queue_samples import QueueSamples
from tests.support.broker import Broker

pytestmark = pytest.mark.requirement("OPS-06")


def test_a_chart_begins_with_the_first_look() -> None:
    broker = Broker()
    broker.fill("orders", 3)
    samples = QueueSamples(broker.container, 10)
    samples.sample()
    assert samples.rates("orders") == []
    samples.watch("orders")
    broker.clock.advance(5000)
    broker.fill("orders", 10)
    samples.sample()
    (rate,) = samples.rates("orders")
    assert (rate.ready, rate.received, rate.ago_s) == (13, 2.0, 0)


def test_old_samples_are_dropped() -> None:
    broker = Broker()
    broker.fill("orders")
    samples = QueueSamples(broker.container, 3)
    samples.watch("orders")
    for _ in range(5):
        samples.sample()
    assert len(samples.rates("orders")) == 2


def test_a_queue_that_is_gone_is_forgotten() -> None:
    broker = Broker()
    broker.fill("orders")
    samples = QueueSamples(broker.container, 3)
    samples.watch("orders")
    samples.watch("missing")
    samples.sample()
    queue = broker.router.queues["orders"]
    broker.router.delete(queue, broker.journal.batch)
    samples.sample()
    assert (samples.rates("orders"), samples.rates("missing")) == ([], [])


def test_the_queue_that_was_looked_at_longest_ago_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_samples, "QUEUES_MAX", 2)
    broker = Broker()
    samples = QueueSamples(broker.container, 3)
    for name in ("a", "b", "a", "c"):
        broker.fill(name)
        samples.watch(name)
    samples.sample()
    assert [len(samples.rates(name)) for name in ("a", "b", "c")] == [1, 0, 1]
