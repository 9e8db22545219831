"""The leader of a group: silence of its session, the wait for its lock, and its witness."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from functools import partial

import pytest

from storage.sql.postgresql import heir
from storage.sql.postgresql.leadership import (
    HEAD_START_US,
    Candidate,
    Group,
    Sample,
    Silence,
    Witness,
    member_name,
)
from storage.sql.postgresql.session import Session
from storage.steady_clock import steady_us
from tests.support import postgres
from tests.support.tls_listening import until

SILENCE_MS = 1000


def test_sessions_are_named_after_their_member() -> None:
    one, other = Group("one", silence_ms=3000), Group("one", silence_ms=3000)
    assert one.application != other.application
    assert member_name(one.application) == "one"
    assert len(Group("x" * 40, silence_ms=3000).application) <= 63
    assert member_name("jms-broker 17 abcd") == ""


def sample(since_s: float = 0, *, pid: int = 7, copied: int | None = None) -> Sample:
    return Sample(pid, since_us=int(since_s * 1_000_000), waits=True, copied=copied)


WORKING = Sample(7, since_us=0, waits=False, copied=None)

SAMPLES = [
    # times and the leader's session as a standby sees it; whether it is silent at the last time
    pytest.param([(9, sample())], False, id="seen for the first time"),
    pytest.param([(9, sample()), (9.9, sample())], False, id="idle for less than the silence"),
    pytest.param([(9, sample()), (10, sample())], True, id="idle for the silence"),
    pytest.param([(9, sample(1)), (10, sample(2))], False, id="it has just asked something"),
    pytest.param(
        [(9, sample(1)), (9.1, sample(3600))], False, id="the server's clock has been set forward"
    ),
    pytest.param([(9, sample(3600)), (9.5, sample(1)), (10.5, sample(1))], True, id="... or back"),
    pytest.param([(9, WORKING), (60, WORKING)], False, id="the server works for it"),
    pytest.param([(9, sample(copied=5)), (9.9, sample(copied=5))], False, id="a COPY stands still"),
    pytest.param([(9, sample(copied=5)), (10, sample(copied=5))], True, id="... for the silence"),
    pytest.param(
        [(9, sample(copied=5)), (9.9, sample(copied=6)), (10.8, sample(copied=6))],
        False,
        id="a COPY gets on",
    ),
    pytest.param(
        [(9, sample(copied=5)), (10, sample(copied=5, pid=8))], False, id="of another session"
    ),
    pytest.param(
        [(9, sample()), (9.5, WORKING), (10, sample())], False, id="the server worked in between"
    ),
]


@pytest.mark.parametrize(("seen", "expected"), SAMPLES)
def test_a_session_is_silent_if_its_client_sends_nothing(
    seen: list[tuple[float, Sample]], expected: bool
) -> None:
    silence = Silence()
    lasts_us = [silence.lasts_us(each, int(now_s * 1_000_000)) for now_s, each in seen]
    verdicts = [each >= SILENCE_MS * 1000 for each in lasts_us]
    assert verdicts == [False] * (len(seen) - 1) + [expected]


# ---- with a server


@pytest.fixture
def url() -> str:
    server = postgres.server()
    return server.url(server.database())


@pytest.fixture
async def leader(url: str) -> AsyncIterator[Session]:
    """Yield a session that holds the lock, with settings by which it lasts."""
    opened = Session(url, Group("one", silence_ms=SILENCE_MS).application)
    await opened.connect()
    assert await opened.lock()
    yield opened
    opened.drop()


@pytest.fixture
async def standby(url: str) -> AsyncIterator[Session]:
    group = Group("two", silence_ms=SILENCE_MS)
    opened = Session(url, group.application, group.session_settings)
    await opened.connect()
    yield opened
    opened.drop()


async def lock_taken(standby: Session) -> list[tuple[str, str]]:
    """Wait until `standby` has the lock; return what it was told."""
    told: list[tuple[str, str]] = []
    group = Group("two", silence_ms=SILENCE_MS)
    candidate = Candidate(
        group, asyncio.Lock(), lambda *each: told.append(each), meanwhile=lambda _: None
    )
    async with asyncio.timeout(20):
        await candidate.wait(standby)
    return told


async def test_a_standby_has_the_lock_when_the_leader_ends(
    leader: Session, standby: Session
) -> None:
    waiting = asyncio.create_task(lock_taken(standby))
    await asyncio.sleep(0)
    await leader.close()
    assert await waiting in ([], [("", "")], [("one", "")], [("one", ""), ("", "")])


async def test_a_silent_leader_is_ended(leader: Session, standby: Session) -> None:
    assert await lock_taken(standby) == [("one", ""), ("", "")]
    await until(lambda: not leader.is_open)


async def test_a_leader_that_is_stopped_in_a_copy_is_ended(
    leader: Session, standby: Session
) -> None:
    await leader.raw.execute("CREATE TABLE numbers (number bigint)")
    stopped = asyncio.Event()

    async def rows() -> AsyncIterator[bytes]:
        yield b"1\n"
        await stopped.wait()

    copying = asyncio.create_task(leader.raw.copy_to_table("numbers", source=rows()))
    assert await lock_taken(standby) == [("one", ""), ("", "")]
    stopped.set()
    with pytest.raises(Exception, match=r"."):
        await copying


async def test_a_leader_whose_statement_takes_long_is_not_ended(
    leader: Session, standby: Session
) -> None:
    sleeping = asyncio.create_task(leader.raw.execute("SELECT pg_sleep(2)"))
    waiting = asyncio.create_task(lock_taken(standby))
    await sleeping
    assert not waiting.done()
    await leader.close()
    await waiting


async def test_a_member_has_its_session_ended_by_the_server_when_it_is_silent(
    standby: Session,
) -> None:
    await until(lambda: not standby.is_open)


async def test_another_broker_s_session_is_named_by_its_host(url: str, standby: Session) -> None:
    alone = Session(url, "jms-broker 17 abcd")
    await alone.connect()
    assert await alone.lock()
    assert (await lock_taken(standby))[0] == ("jms-broker 17 abcd from this host", "")
    alone.drop()


HEAD_STARTS = [
    # the leader that is told of before the session is lost; whether it has a head start
    pytest.param(("one", ""), True, id="another one led"),
    pytest.param(("", ""), False, id="none led"),
]


@pytest.mark.parametrize(("known", "expected"), HEAD_STARTS)
async def test_a_leader_goes_first_when_the_database_comes_back(
    standby: Session, known: tuple[str, str], expected: bool
) -> None:
    group = Group("two", silence_ms=SILENCE_MS)
    candidate = Candidate(group, asyncio.Lock(), lambda *_: None, meanwhile=lambda _: None)
    candidate.tell(*known)
    for _ in range(2):  # it may fail again before the database is there
        candidate.lost("it is away")
    began_us = steady_us()
    await candidate.wait(standby)
    assert (steady_us() - began_us >= HEAD_START_US) is expected


async def appointed(session: Session, name: str) -> None:
    """Make the member `name` the heir; there is no broker whose leader would do so."""
    await session.raw.execute(
        "CREATE TABLE IF NOT EXISTS mark (name text PRIMARY KEY, value bigint NOT NULL)"
    )
    await session.run(partial(heir.appoint, name=name))


async def test_the_heir_takes_the_lock_at_once(leader: Session, standby: Session) -> None:
    await appointed(leader, "another")
    await appointed(leader, "two")
    await leader.close()
    assert not await standby.run(partial(heir.is_another, name="two"))
    await lock_taken(standby)


async def test_another_member_waits_for_the_heir_for_two_seconds(
    leader: Session, standby: Session
) -> None:
    began_us = steady_us()
    await appointed(leader, "another")
    await leader.close()
    assert await standby.run(partial(heir.is_another, name="two"))
    await lock_taken(standby)
    assert steady_us() - began_us >= heir.WAIT_US


async def test_nobody_waits_for_an_heir_longer_though_the_server_s_clock_is_set_back(
    leader: Session, standby: Session
) -> None:
    await appointed(leader, "another")
    await leader.raw.execute(f"UPDATE mark SET value = value + {3600 * heir.WAIT_US}")
    await leader.close()
    assert not await standby.run(partial(heir.is_another, name="two"))


async def test_a_witness_sees_a_statement_that_takes_long(url: str, leader: Session) -> None:
    witness = Witness(url)
    assert not await witness.sees(leader), "it is idle"
    sleeping = asyncio.create_task(leader.raw.execute("SELECT pg_sleep(1)"))
    while not await witness.sees(leader):
        assert not sleeping.done()
    await sleeping
    assert not await witness.sees(leader)
    await leader.raw.execute("SELECT pg_advisory_unlock_all()")
    sleeping = asyncio.create_task(leader.raw.execute("SELECT pg_sleep(0.5)"))
    while not sleeping.done():
        assert not await witness.sees(leader), "it has no lock"
    witness.drop()


async def waiting_commit(session: Session) -> asyncio.Task[str]:
    """Return a commit of `session` that waits for a standby server.

    The server's processes hear of its new settings one after another: the first commits may not
    wait.
    """
    waits = f"SELECT FROM pg_stat_activity WHERE pid = {session.raw.get_server_pid()}"
    for number in itertools.count():
        committing = asyncio.create_task(session.raw.execute(f"CREATE TABLE numbers{number} ()"))
        while not committing.done():
            if await postgres.server().sql(f"{waits} AND wait_event = 'SyncRep'"):
                return committing
    raise AssertionError


async def test_a_witness_does_not_count_a_wait_for_a_standby_server(
    url: str, leader: Session
) -> None:
    """On a server that was left behind, such a wait never ends."""
    server = postgres.server()
    witness = Witness(url)
    await server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    await server.sql("SELECT pg_reload_conf()")
    try:
        committing = await waiting_commit(leader)
        assert not await witness.sees(leader)
    finally:
        await server.sql("ALTER SYSTEM RESET synchronous_standby_names")
        await server.sql("SELECT pg_reload_conf()")
    await committing
    witness.drop()


async def test_a_witness_answers_two_questions_at_once(url: str, leader: Session) -> None:
    """Both the proof of the lead and the watch over commits ask while a commit takes long."""
    witness = Witness(url)
    sleeping = asyncio.create_task(leader.raw.execute("SELECT pg_sleep(1)"))
    while not await witness.sees(leader):
        assert not sleeping.done()
    asked = (witness.sees(leader), witness.waits_for_standby(leader), witness.sees(leader))
    assert list(await asyncio.gather(*asked)) == [True, False, True]
    await sleeping
    witness.drop()


async def test_a_witness_of_a_database_that_is_gone_sees_nothing(leader: Session) -> None:
    witness = Witness("postgresql://nobody@127.0.0.1:1/none")
    assert not await witness.sees(leader)
