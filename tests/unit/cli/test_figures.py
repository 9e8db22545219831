"""The figures of `jms-broker top`: rates between two readings, and the order of what is shown."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from broker.cli.figures import STATE, BrokerReading, figures_of

pytestmark = pytest.mark.requirement("OPS-18")

Counters = Mapping[str, int]


def reading(
    at_s: float,
    counters: Counters | None = None,
    queues: Mapping[str, tuple[int, int]] | None = None,
    ages_ms: Mapping[str, int] | None = None,
) -> BrokerReading:
    """Return a reading; `queues` have the messages they hold, and those ever sent to them."""
    return BrokerReading(
        at_s=at_s,
        broker={**dict.fromkeys(STATE, 0), "counters": counters or {}},
        queues=[
            {
                "name": name,
                "messages": messages,
                "published": published,
                "acquired": 0,
                "oldest_ms": len(name),
                "consumers": 0,
                "producers": 0,
            }
            for name, (messages, published) in (queues or {}).items()
        ],
        links=[
            {
                "connection": "1",
                "container_id": "c",
                "role": "receiver",
                "address": address,
                "credit": 0,
                "unsettled": 1,
                "oldest_unsettled_ms": age_ms,
            }
            for address, age_ms in (ages_ms or {}).items()
        ],
    )


RATES = [
    pytest.param({"published": 10}, {"published": 30}, 2.0, 10.0, id="growth per second"),
    pytest.param({"published": 10}, {"published": 10}, 2.0, 0.0, id="nothing happened"),
    pytest.param({"published": 0}, {"published": 1}, 3.0, 0.3, id="rounded to a tenth"),
    pytest.param({"published": 10}, {"published": 3}, 2.0, None, id="the broker started anew"),
    pytest.param({}, {"published": 3}, 2.0, None, id="a counter that is not known"),
    pytest.param({"published": 1}, {"published": 3}, 0.0, None, id="no time passed"),
]


@pytest.mark.parametrize(("before", "after", "elapsed_s", "rate"), RATES)
def test_a_rate_of_the_broker(
    before: Counters, after: Counters, elapsed_s: float, rate: float | None
) -> None:
    figures = figures_of(
        reading(5.0, before), reading(5.0 + elapsed_s, after), sort="messages", limit=10
    )
    assert figures.broker["received_rate"] == rate


BEFORE = {"full": (900, 1000), "busy": (5, 100), "gone": (1, 1)}
AFTER = {"full": (900, 1000), "busy": (7, 300), "new": (8, 8)}

ORDERS = [
    pytest.param("messages", 3, ["full", "new", "busy"], id="by messages"),
    pytest.param("rate", 3, ["busy", "full", "new"], id="by rate, an unknown rate last"),
    pytest.param("oldest_ms", 1, ["busy"], id="by age"),
    pytest.param("acquired", 3, ["busy", "full", "new"], id="equal ones by name"),
    pytest.param("messages", 1, ["full"], id="no more than asked for"),
]


@pytest.mark.parametrize(("sort", "limit", "names"), ORDERS)
def test_the_order_of_queues(sort: str, limit: int, names: list[str]) -> None:
    figures = figures_of(
        reading(0.0, queues=BEFORE), reading(2.0, queues=AFTER), sort=sort, limit=limit
    )
    assert [each["name"] for each in figures.queues] == names


def test_the_rate_of_a_queue() -> None:
    figures = figures_of(
        reading(0.0, queues=BEFORE), reading(2.0, queues=AFTER), sort="rate", limit=3
    )
    assert {each["name"]: each["rate"] for each in figures.queues} == {
        "busy": 100.0,
        "full": 0.0,
        "new": None,
    }


def test_the_slowest_links_come_first() -> None:
    ages_ms = {"quick": 5, "stuck": 60_000, "slow": 900}
    figures = figures_of(reading(0.0), reading(2.0, ages_ms=ages_ms), sort="messages", limit=2)
    assert [each["address"] for each in figures.links] == ["stuck", "slow"]
