"""Disks that count as nearly full, and the producers that wait for them."""

from __future__ import annotations

import pytest

from broker.routing.credit.disk_guard import (
    LOOK_EVERY_MS,
    LOOKS_PER_RESERVE,
    MEBIBYTE,
    SLACK_MAX,
    DiskGuard,
    Space,
    is_short,
    slack_of,
)
from tests.support.notices import notice_texts
from tests.support.parties import RecordingProducer
from tests.support.routing import Routing

LEAST = 16 * MEBIBYTE

SHORTAGES = {
    # name: free bytes, short before, short now
    "more than enough": (LEAST * 10, False, False),
    "just enough": (LEAST, False, False),
    "too little": (LEAST - 1, False, True),
    "still too little": (LEAST - 1, True, True),
    "enough, but hardly more": (LEAST + slack_of(LEAST) - 1, True, True),
    "clearly enough again": (LEAST + slack_of(LEAST), True, False),
    "nobody knows": (-1, False, False),
    "nobody knows any more": (-1, True, False),
}


@pytest.mark.parametrize(
    ("free", "short_now", "expected"), SHORTAGES.values(), ids=SHORTAGES.keys()
)
def test_shortage(free: int, short_now: bool, expected: bool) -> None:
    assert is_short(free, least=LEAST, short_now=short_now) is expected


def test_a_large_reserve_does_not_want_a_large_disk() -> None:
    assert slack_of(100) == 25
    assert slack_of(10**12) == SLACK_MAX


class Disk(Space):
    """A disk whose free space and failures are set by a test."""

    def __init__(self) -> None:
        self.free = LEAST
        self.away = False
        self.full = False
        self.looks = 0

    def is_away(self) -> bool:
        return self.away

    def is_full(self) -> bool:
        return self.full

    def free_bytes(self) -> int:
        self.looks += 1
        return self.free


class Setting:
    """A disk guard that has begun, on a disk with just enough room."""

    def __init__(self) -> None:
        self.routing = Routing()
        self.router = self.routing.router
        self.disk = Disk()
        self.disk_guard = DiskGuard(self.router.context.routing, self.disk, LEAST)
        self.disk_guard.begin()

    def looked(self) -> tuple[int, bool]:
        """Return the number of looks at the disk, and whether there is too little room."""
        return self.disk.looks, self.disk_guard.is_short

    def second(self) -> None:
        """Let the time of the next look come."""
        self.routing.clock.advance(LOOK_EVERY_MS)
        self.router.timer_queue.tick(self.routing.clock.now_ms())


def test_one_looks_every_second() -> None:
    setting = Setting()
    assert setting.looked() == (1, False)
    setting.disk.free = LEAST - 1
    setting.second()
    assert setting.looked() == (2, True)
    setting.disk.free = LEAST * 2
    setting.second()
    assert setting.looked() == (3, False)


def test_one_looks_when_much_has_come() -> None:
    setting = Setting()
    setting.disk.free = 0
    step = LEAST // LOOKS_PER_RESERVE
    setting.disk_guard.published(step - 1)
    assert setting.looked() == (1, False)
    setting.router.stats.published_bytes = step
    setting.disk_guard.published(step)
    assert setting.looked() == (2, True)
    setting.disk_guard.published(2 * step - 1)
    assert setting.looked() == (2, True), "not again for every message"


def test_an_operator_is_told_once_each_way() -> None:
    setting = Setting()
    setting.disk.free = 3 * MEBIBYTE
    setting.second()
    setting.second()
    (notice,) = notice_texts(setting.router.notices)
    assert notice.startswith("the disk of the store has room for 3 MiB: producers wait")
    assert "20 MiB" in notice
    assert setting.router.stats.disk_shortages == 1
    setting.disk.free = LEAST * 2
    setting.second()
    setting.second()
    assert notice_texts(setting.router.notices)[1:] == [
        "the store takes messages again: producers go on"
    ]
    assert setting.router.stats.disk_shortages == 1


def test_a_store_that_is_away_is_not_called_a_full_disk() -> None:
    setting = Setting()
    setting.disk.free = LEAST * 2
    setting.disk.away = True
    setting.second()
    assert setting.looked() == (2, True)
    assert notice_texts(setting.router.notices) == [
        "the store is away: producers wait until it is back"
    ]
    assert setting.router.stats.disk_shortages == 0
    setting.disk.away = False
    setting.second()
    assert setting.looked() == (3, False)


def test_a_full_disk_is_told_each_way() -> None:
    """A disk that reports itself as full counts as full however many bytes are free."""
    setting = Setting()
    setting.disk.free = LEAST * 2
    setting.disk.full = True
    setting.disk_guard.look()
    setting.disk_guard.look()
    assert setting.looked()[1]
    (notice,) = notice_texts(setting.router.notices)
    assert notice.startswith("the disk of the store is full: producers wait, consumers go on")
    stats = setting.router.stats
    assert (stats.disk_full, stats.disk_shortages) == (1, 0)
    setting.disk.full = False
    setting.second()
    assert not setting.looked()[1]
    assert notice_texts(setting.router.notices)[1:] == [
        "the disk of the store has room again for disk_ballast",
        "the store takes messages again: producers go on",
    ]


def test_a_disk_that_runs_full_after_a_shortage_is_told() -> None:
    setting = Setting()
    setting.disk.free = 0
    setting.second()
    setting.disk.full = True
    setting.second()
    assert len(notice_texts(setting.router.notices)) == 2
    assert "is full" in notice_texts(setting.router.notices)[1]
    setting.disk.full = False
    setting.second()
    assert setting.looked()[1], "there is too little room all the same"


def test_who_waits_goes_on_once() -> None:
    setting = Setting()
    setting.disk.free = 0
    setting.second()
    staying, leaving = RecordingProducer(), RecordingProducer()
    for producer in (staying, leaving, staying):
        setting.disk_guard.waiting.wait(producer)
    setting.disk_guard.waiting.leave(leaving)
    setting.disk_guard.waiting.leave(RecordingProducer())
    setting.second()
    assert staying.resumed == 0
    setting.disk.free = LEAST * 2
    setting.second()
    setting.second()
    assert (staying.resumed, leaving.resumed) == (1, 0)
