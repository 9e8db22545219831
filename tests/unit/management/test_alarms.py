"""The alarms of a broker: which hold when the disk, the memory or the store is short."""

from __future__ import annotations

import pytest

from broker.management.alarms import alarms_of
from tests.support.broker import Broker
from tests.support.stores import GatedStore

pytestmark = pytest.mark.requirement("OPS-04")


class TroubledStore(GatedStore):
    """A store that is full, away, or whose database waits for a standby server."""

    def __init__(self, *, full: bool = False, away: bool = False, waits: bool = False) -> None:
        super().__init__()
        self._full = full
        self._away = away
        self._waits = waits

    def waits_for_standby(self) -> bool:
        return self._waits

    def is_full(self) -> bool:
        return self._full

    def is_away(self) -> bool:
        return self._away


def holding(broker: Broker, store: GatedStore) -> list[str]:
    """Return the alarms that hold."""
    return [name for name, holds in alarms_of(broker.container, store).items() if holds]


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        pytest.param(TroubledStore(), [], id="none"),
        pytest.param(TroubledStore(full=True), ["disk_full"], id="a full disk"),
        pytest.param(TroubledStore(away=True), ["store_away"], id="a store that is away"),
        pytest.param(TroubledStore(waits=True), ["store_standby"], id="a standby server is gone"),
    ],
)
def test_alarms_of_the_store(store: TroubledStore, expected: list[str]) -> None:
    assert holding(Broker(), store) == expected


def test_the_alarm_of_the_memory() -> None:
    broker = Broker()
    broker.router.memory.is_short = True
    assert holding(broker, GatedStore()) == ["memory"]
