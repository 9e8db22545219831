"""F17: what happens to the leader of a group, or to all of it; each fault mends what it broke.

A fault strikes when it is entered. It yields whether another member is to take over, and is left
when that one leads; it has mended everything when it is over.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from tests.faults.crashes import GIVES_BACK
from tests.faults.failover import (
    GRACE_MS,
    IN_COPY,
    IN_TRANSACTION,
    MEMBER,
    SILENCE_MS,
    WITNESS,
)
from tests.faults.scene import TAKEOVER_S, Scene

LeaderFault = Callable[[Scene], AbstractAsyncContextManager[bool]]

MOVES: Final = True
"""Another member is to take over."""

STAYS: Final = False

STOPPED_S: Final = 6.0
LONG_S: Final = 60.0
LONG_EVERY: Final = 10
"""In one of this number of cycles a leader is stopped for LONG_S."""

SILENCE_S: Final = SILENCE_MS / 1000
GRACE_S: Final = GRACE_MS / 1000

AT_RANDOM: Final = b""
STAGES: Final = (AT_RANDOM, IN_TRANSACTION, IN_COPY)
"""The last bytes that a leader has sent when it is stopped."""

STAGE_S: Final = 10.0
"""Seconds after which a leader that does not get to a stage is stopped where it is."""


@asynccontextmanager
async def killed(scene: Scene) -> AsyncIterator[bool]:
    """F17a: kill the leader."""
    leader = scene.leader
    scene.strike(leader)
    await leader.kill()
    yield MOVES
    await leader.launch()


@asynccontextmanager
async def told_to_stop(scene: Scene) -> AsyncIterator[bool]:
    """F17b: tell the leader to stop. It must end with status 0."""
    leader = scene.leader
    scene.strike(leader)
    leader.signal(signal.SIGTERM)
    yield MOVES
    status = await leader.wait()
    if status != 0:
        raise RuntimeError(f"a leader that was told to stop ended with status {status}")
    await leader.launch()


@asynccontextmanager
async def stopped(scene: Scene) -> AsyncIterator[bool]:
    """F17c: stop the leader's process for a while: at random, in a transaction, or in a COPY."""
    leader = scene.leader
    session = scene.session
    stage = STAGES[scene.cycle % len(STAGES)]
    if stage:
        session.hold_behind = stage
        try:
            async with asyncio.timeout(STAGE_S):
                await session.held_one.wait()
        except TimeoutError:
            scene.missed += 1
    scene.strike(leader)
    leader.signal(signal.SIGSTOP)
    yield MOVES
    scene.leave_some()
    is_long = scene.plan.cycles >= LONG_EVERY and scene.cycle % LONG_EVERY == 0
    lasts_s = LONG_S if is_long else STOPPED_S
    await asyncio.sleep(max(0.0, scene.struck_s + lasts_s - time.monotonic()))
    session.cut()
    leader.signal(signal.SIGCONT)


@asynccontextmanager
async def cut_from_database(scene: Scene) -> AsyncIterator[bool]:
    """F17d: cut the leader from the database; it gets that back before or after its grace ends."""
    session = scene.session
    scene.strike(scene.leader)
    session.lose()
    yield MOVES
    scene.leave_some()
    await asyncio.sleep(scene.chosen.uniform(0, GRACE_S + 1))
    session.cut()


@asynccontextmanager
async def session_lost(scene: Scene) -> AsyncIterator[bool]:
    """F17e: cut one of the leader's two sessions: that of the witness, or the one with the lock."""
    session = scene.session
    is_witness = scene.cycle % 2 == 0
    scene.strike(*([] if is_witness else [scene.leader]), is_outage=not is_witness)
    session.hold(WITNESS if is_witness else MEMBER)
    yield STAYS if is_witness else MOVES
    await asyncio.sleep(scene.chosen.uniform(0, 2 * SILENCE_S))
    session.release()


@asynccontextmanager
async def clients_cut(scene: Scene) -> AsyncIterator[bool]:
    """F17f: cut all clients from all members."""
    scene.strike()
    for door in scene.doors.values():
        door.lose()
    yield STAYS
    await asyncio.sleep(scene.chosen.uniform(0.5, SILENCE_S + 1))
    for door in scene.doors.values():
        door.cut()
    scene.load.station.came_up(scene.leader.port)


@asynccontextmanager
async def started_at_once(scene: Scene) -> AsyncIterator[bool]:
    """F17g: start all members at once, after all were killed."""
    members = scene.group.members
    await asyncio.gather(*(member.kill() for member in members))
    scene.strike()
    await asyncio.gather(*(member.launch() for member in members))
    yield MOVES


@asynccontextmanager
async def two_killed(scene: Scene) -> AsyncIterator[bool]:
    """F17h: kill the leader and one of two standbys."""
    gone = (scene.leader, scene.chosen.choice(scene.standbys))
    scene.strike(*gone)
    await asyncio.gather(*(member.kill() for member in gone))
    yield MOVES
    for member in gone:
        await member.launch()


@asynccontextmanager
async def killed_while_it_takes_over(scene: Scene) -> AsyncIterator[bool]:
    """F17i: kill the leader, and the standby that gets the lock before it is ready."""
    leader = scene.leader
    standbys = scene.standbys
    scene.strike(leader)
    await leader.kill()
    named = {member.place.folder.name: member for member in standbys}
    async with asyncio.timeout(TAKEOVER_S):
        # the killed leader's session has the lock for a moment more
        while (name := await scene.group.lock_holder()) not in named:
            pass
    heir = named[name]
    scene.missed += not heir.stands_by.is_set()
    scene.out.add(heir)
    await heir.kill()
    yield MOVES
    for member in (leader, heir):
        await member.launch()


@asynccontextmanager
async def handed_over(scene: Scene) -> AsyncIterator[bool]:
    """F17m: have another member lead, by a command."""
    leader = scene.leader
    scene.strike(leader)
    printed = await scene.group.hand_over(leader)
    if not printed.endswith(" takes over\n"):
        raise RuntimeError(f"the leader did not hand over: {printed!r}")
    yield MOVES


@dataclass(frozen=True)
class Letter:
    """A fault of F17 by its letter, in a group of `size` members.

    `gives_back` is the share of messages that some consumers release; `many` are the cycles of
    `make faults`.
    """

    words: str
    fault: LeaderFault
    size: int = 2
    gives_back: float = GIVES_BACK
    many: int = 50


LETTERS: Final[dict[str, Letter]] = {
    "a": Letter("the leader of a group is killed", killed),
    # a regular stop forgets that a released message was delivered (P6 in docs/reliability.md)
    "b": Letter("... is told to stop", told_to_stop, gives_back=0.0),
    "c": Letter("... is stopped for a while, idle, in a transaction, in a COPY", stopped),
    "d": Letter("... is cut from the database, not from its clients", cut_from_database),
    "e": Letter("... loses one of its two sessions", session_lost),
    "f": Letter("... is cut from its clients", clients_cut),
    "g": Letter("all members of a group start at once", started_at_once),
    "h": Letter("two of three members of a group are killed", two_killed, size=3),
    "i": Letter("a standby is killed while it takes over", killed_while_it_takes_over, size=3),
    "m": Letter("the leader hands over to another member", handed_over, gives_back=0.0, many=100),
}
