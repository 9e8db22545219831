"""Two members of one name: the second one gives way, and a member that has crashed comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from storage.api import StoreError
from storage.sql.postgresql import namesakes as module
from storage.sql.postgresql.leadership import Group
from storage.sql.postgresql.lock import JOIN, TRY_LOCK
from storage.sql.postgresql.namesakes import LOOK_US, PATIENCE_US, Namesakes
from storage.sql.postgresql.session import Session
from storage.sql.postgresql.store import PostgresStore
from tests.support import postgres

LOOKS = PATIENCE_US // LOOK_US + 2


class Sessions:
    """Sessions of members, which are dropped at the end."""

    def __init__(self) -> None:
        server = postgres.server()
        self.url = server.url(server.database())
        self.opened: list[Session] = []

    async def of(self, group: Group) -> Session:
        session = Session(self.url, group.application)
        self.opened.append(session)
        await session.connect()
        await session.raw.execute(JOIN)
        return session


@pytest.fixture
async def sessions() -> AsyncIterator[Sessions]:
    made = Sessions()
    yield made
    for session in made.opened:
        session.drop()


def group(name: str) -> Group:
    return Group(name, silence_ms=3000)


CASES = [
    # name of the other member; whether it was there first, leads, is up; whether this one gives way
    pytest.param("one", True, False, True, True, id="a standby that was there first"),
    pytest.param("one", False, True, True, True, id="a leader, though its session is newer"),
    pytest.param("one", False, False, True, False, id="a standby that came later gives way itself"),
    pytest.param("one", True, True, False, False, id="the session of a member that has crashed"),
    pytest.param("two", True, True, True, False, id="another name"),
    pytest.param("one.a", True, True, True, False, id="a name that begins with this one"),
]


@pytest.mark.parametrize(("name", "is_first", "leads", "is_up", "gives_way"), CASES)
async def test_a_member_gives_way_to_another_one_of_its_name(
    sessions: Sessions, *, name: str, is_first: bool, leads: bool, is_up: bool, gives_way: bool
) -> None:
    own = group("one")
    other = await sessions.of(group(name)) if is_first else None
    session = await sessions.of(own)
    other = other or await sessions.of(group(name))
    if leads:
        await other.raw.fetchval(TRY_LOCK)
    search = Namesakes(own, "postgresql://db/jms")
    told = ""
    for look in range(LOOKS):
        if is_up:
            await other.raw.execute("SELECT 1")
        try:
            await session.run(partial(search.step, now_us=look * LOOK_US))
        except StoreError as error:
            told = str(error)
            assert look * LOOK_US >= PATIENCE_US, "a member that stops has this long"
            break
    assert ("set ha.name" in told) == gives_way, told


async def test_a_pause_begins_the_patience_anew(sessions: Sessions) -> None:
    other, own = await sessions.of(group("one")), group("one")
    session = await sessions.of(own)
    search = Namesakes(own, "postgresql://db/jms")
    for at_us in (0, LOOK_US, PATIENCE_US, PATIENCE_US + LOOK_US):
        await other.raw.execute("SELECT 1")
        await session.run(partial(search.step, now_us=at_us))


async def test_a_second_standby_of_a_name_ends_while_the_leader_goes_on(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_US", 10_000)
    monkeypatch.setattr(module, "PATIENCE_US", 1_000_000)
    leader, second = (PostgresStore(sessions.url, group=group("one")) for _ in range(2))
    await leader.lead(lambda *_: None)
    await leader.open()
    with pytest.raises(StoreError, match=r"another member with the name 'one'.*set ha\.name"):
        await asyncio.wait_for(second.lead(lambda *_: None), 20)
    await second.close()
    assert [each.name for each in await leader.members()] == ["one"]
    await leader.close()
