"""A disk that another program fills to the last byte: consumers go on, and nothing is lost (P9)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final

import pytest

from storage.sql.store import SqliteStore
from tests.faults.server import strace, why_no_strace
from tests.faults.test_full_disk import (
    GOING_ON,
    MEBIBYTE,
    WAITING,
    Filler,
    consume,
    mounted,
    says,
    settings,
)
from tests.faults.test_kill import port_of
from tests.interop.broker_process import BrokerProcess
from tests.support.full_disk_commits import BALLAST, MESSAGES, REMOVED_AT_ONCE
from tests.support.socket_client import SocketClient
from tests.support.stored import stored_messages

pytestmark = pytest.mark.privileged

FULL: Final = "the disk of the store is full"

LEAST: Final = 16 * MEBIBYTE

FIRST: Final = 100
"""Messages that are in each queue before the disk is filled."""

LINKS: Final = 4

SMALL: Final = 2048
"""What all links have credit for fits into the ballast many times."""

LARGE: Final = 32 * 1024
"""What all links have credit for does not."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder in which `disk` is a file system of 64 MiB, in memory."""
    with mounted(tmp_path / "disk", 64):
        yield tmp_path


class Foreign:
    """Another program, which writes to a file until there is no room; or over and over again."""

    def __init__(self, disk: Path) -> None:
        self._file: Final = disk / "disk" / "foreign"
        self._ending: Final = Event()
        self._thread: Thread | None = None

    def fill(self) -> None:
        with self._file.open("ab", buffering=0) as file:
            self._write(file.fileno())
            while self._thread is not None and not self._ending.is_set():
                self._write(file.fileno())

    def _write(self, descriptor: int) -> None:
        try:
            while True:
                os.write(descriptor, bytes(16384))
        except OSError:
            pass

    def go_on_filling(self) -> None:
        self._thread = Thread(target=self.fill)
        self._thread.start()

    def go(self) -> None:
        """End, and delete the file."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        self._file.unlink(missing_ok=True)


async def fillers(port: int, stack: AsyncExitStack, size: int = SMALL) -> list[Filler]:
    """Producers whose queues have some messages, each with credit for more."""
    found = []
    for number in range(LINKS):
        client = await stack.enter_async_context(SocketClient(port))
        filler = Filler(client, size)
        await filler.attach(f"q{number}")
        await filler.send_some(FIRST)
        found.append(filler)
    return found


async def drained_and_resumed(broker: BrokerProcess, all_: list[Filler], foreign: Foreign) -> None:
    """Every message that was accepted comes; once there is room producers go on."""
    for number, filler in enumerate(all_):
        await consume(port_of(broker), f"q{number}", filler.accepted)
    foreign.go()
    await all_[0].send_until(says(broker, GOING_ON))
    sent = all_[0].sent
    await all_[0].send_until(lambda: all_[0].accepted > sent)
    assert broker.stop() == 0


async def test_a_disk_that_another_program_fills(disk: Path) -> None:
    foreign = Foreign(disk)
    broker = BrokerProcess(disk, settings=settings(LEAST))
    async with AsyncExitStack() as stack:
        all_ = await fillers(port_of(broker), stack)
        foreign.fill()
        for filler in all_:
            await filler.use_up()
        await all_[0].send_until(says(broker, FULL))
        await drained_and_resumed(broker, all_, foreign)
    assert f"{FULL}: producers wait, consumers go on" in broker.log.read_text()


async def test_a_disk_that_is_filled_while_commits_are_made(disk: Path) -> None:
    """By a program that takes at once what room there is."""
    foreign = Foreign(disk)
    broker = BrokerProcess(disk, settings=settings(LEAST))
    async with AsyncExitStack() as stack:
        all_ = await fillers(port_of(broker), stack)
        foreign.go_on_filling()
        try:
            for filler in all_:
                await filler.send_until(says(broker, FULL))
            for filler in all_:
                await filler.settle()
            await drained_and_resumed(broker, all_, foreign)
        finally:
            foreign.go()


async def test_a_disk_that_producers_have_nearly_filled(disk: Path) -> None:
    """They go on with the room that consumers have made, while another program's file stays."""
    broker = BrokerProcess(disk, settings=settings(LEAST))
    foreign = Foreign(disk)
    async with AsyncExitStack() as stack:
        all_ = await fillers(port_of(broker), stack)
        await all_[0].send_until(says(broker, WAITING))
        foreign.fill()
        for filler in all_:
            await filler.use_up()
        for number, filler in enumerate(all_):
            await consume(port_of(broker), f"q{number}", filler.accepted)
        sent = all_[0].sent
        await all_[0].send_until(lambda: all_[0].accepted > sent)
    assert broker.stop() == 0


async def test_a_broker_that_is_killed_on_a_full_disk_starts_on_it(disk: Path) -> None:
    """And delivers, and drains, even where another program has the room of the ballast."""
    foreign = Foreign(disk)
    broker = BrokerProcess(disk, settings=settings(LEAST))
    async with AsyncExitStack() as stack:
        all_ = await fillers(port_of(broker), stack)
        foreign.fill()
        for filler in all_:
            await filler.use_up()
        await all_[0].send_until(says(broker, FULL))
        foreign.fill()
        broker.kill()
    await drained_after_a_start(disk, all_, foreign)


async def test_producers_that_have_more_credit_than_the_ballast_has_room(disk: Path) -> None:
    """The broker ends, as it did before there was one; the next delivers all it has accepted."""
    foreign = Foreign(disk)
    broker = BrokerProcess(disk, settings=settings(LEAST))
    async with AsyncExitStack() as stack:
        all_ = await fillers(port_of(broker), stack, LARGE)
        foreign.fill()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.gather(*(filler.use_up() for filler in all_))
    assert broker.wait() == 1
    assert "no room is left for the store" in broker.log.read_text()
    await drained_after_a_start(disk, all_, foreign)


async def drained_after_a_start(disk: Path, all_: list[Filler], foreign: Foreign) -> None:
    """Another broker has all that was accepted, on the disk as it is; and goes on with room."""
    broker = BrokerProcess(disk, settings=settings(LEAST))
    for number, filler in enumerate(all_):
        await consume(port_of(broker), f"q{number}", filler.accepted)
    foreign.go()
    async with SocketClient(port_of(broker)) as client:
        filler = Filler(client)
        await filler.attach("q")
        await filler.send_until(lambda: filler.accepted > 0)
    assert broker.stop() == 0


# ---- kills


@dataclass(frozen=True)
class Moment:
    """The program dies before the call with that number on a file, beginning with `store.db`."""

    call: str
    when: int
    suffix: str = ".ballast"


MOMENTS: Final = {
    "before the ballast is released": Moment("ftruncate", 1),
    "when it is released, and nothing else is done": Moment("fsync", 2),
    "before the log is made longer": Moment("fallocate", 1, "-wal"),
    "before what was moved from the log is synced": Moment("fdatasync", 3, ""),
    "before the ballast is taken back": Moment("fallocate", 2),
    "while the ballast is taken back": Moment("fsync", 3),
}


def run(database: Path, within: list[str]) -> tuple[list[str], int]:
    """What the program said of commits until it was dead or done, and how it ended."""
    program = [sys.executable, "-m", "tests.support.full_disk_commits", str(database)]
    ended = subprocess.run([*within, *program], stdout=subprocess.PIPE, text=True, check=False)
    return ended.stdout.splitlines(), ended.returncode


async def held_in(database: Path) -> list[int]:
    """What a start finds, on the disk as it is; it can write, too."""
    store = SqliteStore(database, ballast_bytes=BALLAST)
    await store.open()
    held = [int(message.number) for message in await stored_messages(store, "q")]
    await store.close()
    return held


def removed_up_to(said: list[str]) -> int:
    found = [int(line.split()[1]) for line in said if line.startswith("removed")]
    return found[-1] if found else 0


async def test_a_store_goes_on_with_the_room_of_its_ballast(disk: Path) -> None:
    said, status = run(disk / "disk" / "store.db", [])
    assert status == 0
    assert said[-3:] == ["released 1", f"held {BALLAST}", "roomy"]
    assert await held_in(disk / "disk" / "store.db") == list(range(MESSAGES // 2 + 1, MESSAGES + 1))


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS.keys())
async def test_a_kill_loses_nothing_and_brings_nothing_back(disk: Path, moment: Moment) -> None:
    reason = why_no_strace()
    if reason:
        pytest.skip(reason)
    database = disk / "disk" / "store.db"
    file = database.with_name(f"store.db{moment.suffix}")
    said, status = run(
        database, strace(f"{moment.call}:signal=KILL:when={moment.when}", paths=[file])
    )
    assert status != 0, said
    assert "full" in said, "the disk was not full yet"
    removed = removed_up_to(said)
    expected = list(range(removed + 1, MESSAGES + 1))
    assert await held_in(database) in (expected, expected[REMOVED_AT_ONCE:])
