"""Deliveries per second on links, between two looks."""

from __future__ import annotations

import pytest

from broker.http.console.link_rates import BETWEEN_MAX_MS, BETWEEN_MIN_MS, WRAP, LinkRates

pytestmark = pytest.mark.requirement("OPS-06")


def links(**counts: int) -> list[dict[str, object]]:
    return [{"identity": name, "delivery_count": count} for name, count in counts.items()]


def test_rates_are_differences_between_two_looks() -> None:
    rates = LinkRates()
    assert rates.look(links(a=5, b=7), 1_000) == {}
    assert rates.look(links(a=25, c=9), 6_000) == {"a": 4.0}
    assert rates.look(links(a=25, c=19), 11_000) == {"a": 0.0, "c": 2.0}


def test_viewers_shortly_after_one_another_see_the_same() -> None:
    rates = LinkRates()
    rates.look(links(a=0), 0)
    first = rates.look(links(a=10), BETWEEN_MIN_MS)
    assert first == {"a": 5.0}
    assert rates.look(links(a=11), 2 * BETWEEN_MIN_MS - 1) == first


def test_a_look_after_a_long_pause_begins_anew() -> None:
    rates = LinkRates()
    rates.look(links(a=0), 0)
    assert rates.look(links(a=10), BETWEEN_MAX_MS + 1) == {}


def test_a_count_begins_again_with_0() -> None:
    rates = LinkRates()
    rates.look(links(a=WRAP - 4), 0)
    assert rates.look(links(a=6), 5_000) == {"a": 2.0}
