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
from typing import Final

import pytest

from storage.sql.sqlite.store import SqliteStore
from tests.faults.server import strace, why_no_strace
from tests.faults.test_full_disk import (
    GOING_ON,
    MEBIBYTE,
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
"""Number of messages in each queue before the disk is filled."""

LINKS: Final = 4

SMALL: Final = 2048
"""Bytes per message with which the credit of all links fits into the ballast many times."""

MUCH: Final = 24 * MEBIBYTE
"""Bytes of messages whose removal makes room in the file for producers, even on a full disk."""

LARGE: Final = 32 * 1024
"""Bytes per message with which the credit of MANY_LINKS does not fit into the ballast."""

MANY_LINKS: Final = 8


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder in which `disk` is a file system of 128 MiB, in memory."""
    with mounted(tmp_path / "disk", 128):
        yield tmp_path


class Foreign:
    """Another program, which has a file on the disk."""

    def __init__(self, disk: Path) -> None:
        self._file: Final = disk / "disk" / "foreign"

    def fill(self, leaving: int = 0) -> None:
        """Take all space that is free now, except `leaving` bytes.

        A ballast that the broker gives back meanwhile is left to it.
        """
        with self._file.open("ab", buffering=0) as file:
            wanted = self._free(file.fileno()) - leaving
            while not self._allocate(
                file.fileno(), min(wanted, self._free(file.fileno()) - leaving)
            ):
                pass  # the broker was quicker: there is less space now

    def _free(self, descriptor: int) -> int:
        found = os.fstatvfs(descriptor)
        return found.f_bavail * found.f_frsize

    def _allocate(self, descriptor: int, more: int) -> bool:
        try:
            if more > 0:
                os.posix_fallocate(descriptor, os.fstat(descriptor).st_size, more)
        except OSError:
            return False
        return True

    def go(self) -> None:
        self._file.unlink()


async def fillers(
    port: int, stack: AsyncExitStack, *, links: int = LINKS, size: int = SMALL
) -> list[Filler]:
    """Return producers with credit, each after sending FIRST messages to a queue of its own."""
    found = []
    for number in range(links):
        client = await stack.enter_async_context(SocketClient(port))
        filler = Filler(client, size)
        await filler.attach(f"q{number}")
        await filler.send_some(FIRST)
        found.append(filler)
    return found


async def drained_and_resumed(broker: BrokerProcess, all_: list[Filler], foreign: Foreign) -> None:
    """Check that consumers get every accepted message; then make room: producers must go on."""
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


async def test_a_disk_that_runs_full_in_the_middle_of_a_commit(disk: Path) -> None:
    """Producers fill the space that another program has left."""
    foreign = Foreign(disk)
    broker = BrokerProcess(disk, settings=settings(LEAST))
    async with AsyncExitStack() as stack:
        all_ = await fillers(port_of(broker), stack)
        foreign.fill(leaving=MEBIBYTE)
        await asyncio.gather(*(filler.use_up() for filler in all_))
        await all_[0].send_until(says(broker, FULL))
        await drained_and_resumed(broker, all_, foreign)


async def test_room_that_consumers_have_made_in_the_file(disk: Path) -> None:
    """Producers use that room while another program's file stays."""
    broker = BrokerProcess(disk, settings=settings(LEAST))
    foreign = Foreign(disk)
    database = disk / "disk" / "store.db"
    async with AsyncExitStack() as stack:
        (filler,) = await fillers(port_of(broker), stack, links=1)
        await filler.send_until(lambda: database.stat().st_size > MUCH)
        foreign.fill()
        await filler.use_up()
        await filler.send_until(says(broker, FULL))
        await filler.use_up()
        await consume(port_of(broker), "q0", filler.accepted)
        await filler.send_until(says(broker, GOING_ON))
        sent = filler.sent
        await filler.send_until(lambda: filler.accepted > sent)
    assert broker.stop() == 0


async def test_a_broker_that_is_killed_on_a_full_disk_starts_on_it(disk: Path) -> None:
    """It also delivers and drains if another program has taken the room of the ballast."""
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
    """The broker ends, as it did without a ballast; the next one delivers all it accepted."""
    foreign = Foreign(disk)
    broker = BrokerProcess(disk, settings=settings(LEAST))
    async with AsyncExitStack() as stack:
        all_ = await fillers(port_of(broker), stack, links=MANY_LINKS, size=LARGE)
        assert sum(filler.credit for filler in all_) * LARGE > 20 * MEBIBYTE, "the ballast has 16"
        foreign.fill()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.gather(*(filler.use_up() for filler in all_))
    assert broker.wait() == 1
    assert "no room is left for the store" in broker.log.read_text()
    await drained_after_a_start(disk, all_, foreign)


async def drained_after_a_start(disk: Path, all_: list[Filler], foreign: Foreign) -> None:
    """Check that the next broker delivers all that was accepted, and goes on once there is room."""
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
    """The program dies before call number `when` on the file `store.db` with this suffix."""

    call: str
    when: int
    suffix: str = ".ballast"


MOMENTS: Final = {
    "before the ballast is released": Moment("truncate", 1),
    "when the ballast is released, and the log not yet longer": Moment("fallocate", 1, "-wal"),
    "before what was moved from the log is synced": Moment("fdatasync", 3, ""),
    "before the ballast is taken back": Moment("openat", 2),
    "while the ballast is taken back": Moment("fsync", 2),
}


def run(database: Path, within: list[str]) -> tuple[list[str], int]:
    """Run the program that commits; return the lines that it printed, and its exit status."""
    program = [sys.executable, "-m", "tests.support.full_disk_commits", str(database)]
    ended = subprocess.run([*within, *program], stdout=subprocess.PIPE, text=True, check=False)
    return ended.stdout.splitlines(), ended.returncode


async def held_in(database: Path) -> list[int]:
    """Return the numbers of the messages in the store, opened for writing on the disk as it is."""
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
