"""The members of a group in its database: those that are up, and the one that wants to lead."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest

from storage.members import StoredMember
from storage.sql.postgresql import members as members_module
from storage.sql.postgresql.leadership import Group
from storage.sql.postgresql.lock import JOIN
from storage.sql.postgresql.members import Wish, announce, forget
from storage.sql.postgresql.session import Session
from storage.sql.postgresql.store import PostgresStore
from tests.support import postgres


@pytest.fixture
async def url() -> str:
    server = postgres.server()
    made = server.url(server.database())
    store = PostgresStore(made)  # makes the tables
    await store.open()
    await store.close()
    return made


@pytest.fixture
async def session(url: str) -> AsyncIterator[Session]:
    opened = Session(url, "jms-broker 17 abcd")
    await opened.connect()
    yield opened
    opened.drop()


async def member(session: Session, group: Group) -> Session:
    """Return the session of a member of that group, which is up as long as it lasts."""
    opened = Session(session._url, group.application)
    await opened.connect()
    await opened.raw.execute(JOIN)
    await opened.run(partial(announce, group=group))
    return opened


async def known(session: Session) -> StoredMember:
    """Return the only member."""
    (found,) = await session.run(members_module.members)
    return found


PREFERRED = [
    # whether the member prefers to lead, for how long it must be ready, whether it wants to lead
    pytest.param(True, 0, True, id="a preferred one that is ready"),
    pytest.param(True, 60_000_000, False, id="a preferred one that has just begun"),
    pytest.param(False, 0, False, id="another one"),
]


@pytest.mark.parametrize(("prefers", "after_us", "wants"), PREFERRED)
async def test_a_preferred_member_wants_to_lead_once_it_is_ready(
    session: Session, monkeypatch: pytest.MonkeyPatch, *, prefers: bool, after_us: int, wants: bool
) -> None:
    monkeypatch.setattr(members_module, "PREFERRED_AFTER_US", after_us)
    group = Group("two", silence_ms=3000, prefers=prefers, addresses={"amqp": ("two.example", 1)})
    standby = await member(session, group)
    wish = Wish(group)
    for is_warm in (False, True):
        assert not (await known(session)).wants_to_lead
        await session.run(partial(wish.step, is_warm=is_warm))
    assert (await known(session)).wants_to_lead == wants
    await session.run(partial(announce, group=group))
    assert not (await known(session)).wants_to_lead, "it begins anew"
    assert (await known(session)).addresses == {"amqp": ("two.example", 1)}
    standby.drop()


async def test_a_member_that_is_not_up_is_known_until_it_is_forgotten(session: Session) -> None:
    standby = await member(session, Group("two", silence_ms=3000, addresses={"amqp": ("two", 1)}))
    assert (await known(session)).is_up
    await standby.close()
    gone = await known(session)
    assert (gone.name, gone.is_up, gone.addresses) == ("two", False, {"amqp": ("two", 1)})
    await session.run(partial(forget, name="two"))
    assert await session.run(members_module.members) == []


async def test_a_member_of_another_schema_is_none(url: str, session: Session) -> None:
    """Shards have a schema each: the group of one knows nothing of the others."""
    await session.raw.execute("CREATE SCHEMA other")
    group = Group("two", silence_ms=3000)
    elsewhere = Session(f"{url}?search_path=other", group.application)
    await elsewhere.connect()
    await elsewhere.raw.execute(JOIN)
    assert await session.run(members_module.members) == []
    elsewhere.drop()
