"""The records that a standby keeps in memory, against a full read of the store."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from functools import partial

import pytest

from storage.batch import Batch
from storage.sql import reading
from storage.sql.postgresql import warm as warm_module
from storage.sql.postgresql.leadership import Group
from storage.sql.postgresql.session import Session
from storage.sql.postgresql.store import PostgresStore
from storage.sql.postgresql.warm import OVERHEAD, WarmSegments
from storage.sql.segments.segment import RECORD, Segment
from tests.support import postgres
from tests.unit.storage.test_batch import stored

PLENTY = 2**40


@pytest.fixture
def url() -> str:
    server = postgres.server()
    return server.url(server.database())


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(url)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def session(url: str, store: PostgresStore) -> AsyncIterator[Session]:  # noqa: ARG001 - makes the schema
    opened = Session(url, "jms-broker standby")
    await opened.connect()
    yield opened
    opened.drop()


def untold(text: str) -> None:
    raise AssertionError(text)


def append(batch: Batch, numbers: range) -> None:
    for number in numbers:
        batch.append(stored(number))


async def caught_up(session: Session, warm: WarmSegments) -> None:
    await session.run(warm.look)
    while await session.run(warm.complete):
        pass


async def check(session: Session, warm: WarmSegments, numbers: list[int]) -> None:
    """Check that `warm` has the segments behind each of `numbers` as the store has them."""

    for behind in numbers:
        find = partial(reading.following, texts=session.texts, behind=behind)
        kept = warm.following(behind)
        assert kept is not None
        assert facts(kept) == facts(await session.run(find))


def facts(segments: list[Segment]) -> list[tuple[int, int, bytes]]:
    return [(int(each.number), int(each.size), each.facts) for each in segments]


class Changes:
    """Random changes of a store's messages, batch after batch."""

    def __init__(self, seed: int) -> None:
        self._chosen = random.Random(seed)
        self._next = 1
        self._here: list[int] = []

    def batch(self) -> Batch:
        chosen, batch = self._chosen, Batch()
        count = chosen.choice([1, 5, 100, 300])
        append(batch, range(self._next, self._next + count))
        for number in chosen.sample(self._here, min(len(self._here), chosen.choice([0, 3, 150]))):
            self._here.remove(number)
            batch.remove(number)
        for number in chosen.sample(self._here, min(len(self._here), 3)):
            batch.count(number, 2)
        self._here += range(self._next, self._next + count)
        self._next += count
        return batch

    def numbers(self) -> list[int]:
        """Return numbers of messages, some of which are gone, and one behind the last."""
        return [0, *self._chosen.sample(range(1, self._next), min(5, self._next - 1)), self._next]


@pytest.mark.parametrize("seed", range(3))
async def test_what_is_kept_is_what_the_store_has(
    store: PostgresStore, session: Session, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(warm_module, "SEGMENTS_AT_ONCE", 3)
    monkeypatch.setattr(reading, "SEGMENTS_AT_ONCE", 3)
    monkeypatch.setattr(warm_module, "LOOK_US", 0)
    warm, changes = WarmSegments(PLENTY, untold), Changes(seed)
    for number in range(30):
        await store.commit(changes.batch())
        await session.run(warm.step)  # perhaps in the middle of reading what an earlier look found
        if number % 3 == 0:
            await caught_up(session, warm)
            await check(session, warm, changes.numbers())


async def test_segments_that_have_not_changed_are_not_read_again(
    store: PostgresStore, session: Session
) -> None:
    batch = Batch()
    append(batch, range(1, 1001))
    await store.commit(batch)
    warm = WarmSegments(PLENTY, untold)
    await caught_up(session, warm)
    before = warm.following(0)
    batch = Batch()
    batch.remove(1)
    await store.commit(batch)
    await caught_up(session, warm)
    after = warm.following(0)
    assert before is not None
    assert after is not None
    assert [old is new for old, new in zip(before, after, strict=True)] == [
        False,
        *[True] * (len(before) - 1),
    ]


async def test_records_that_take_too_much_memory_are_not_kept(
    store: PostgresStore, session: Session
) -> None:
    told: list[str] = []
    warm = WarmSegments(OVERHEAD + RECORD, told.append)
    batch = Batch()
    append(batch, range(1, 2))
    await store.commit(batch)
    await caught_up(session, warm)
    assert not warm.is_empty()
    batch = Batch()
    append(batch, range(2, 4))
    await store.commit(batch)
    for _ in range(2):
        await caught_up(session, warm)
        assert warm.is_empty()
        assert warm.following(0) is None
    batch = Batch()
    batch.remove(2)
    batch.remove(3)
    await store.commit(batch)
    await caught_up(session, warm)
    assert not warm.is_empty()
    assert len(told) == 1
    assert "ha.warm_bytes is 332" in told[0]


async def test_a_standby_of_an_older_schema_waits_for_its_own(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = WarmSegments(PLENTY, untold)
    with monkeypatch.context() as patched:
        patched.setattr(warm_module, "HEAD", "9999")
        await session.run(warm.step)
    assert warm.following(0) is None
    await session.run(warm.step)
    assert warm.following(0) == []


@pytest.mark.requirement("PRD-03")
async def test_a_standby_that_leads_has_what_was_changed_since_it_looked(url: str) -> None:
    leader = PostgresStore(url, group=Group("one", silence_ms=3000, warm_bytes=PLENTY))
    await leader.lead(lambda *_: None)
    await leader.open()
    batch = Batch()
    append(batch, range(1, 201))
    await leader.commit(batch)
    standby = PostgresStore(url, group=Group("two", silence_ms=3000, warm_bytes=PLENTY))
    session = standby._session = await standby._connected()
    warm = standby._warm
    assert warm is not None
    await caught_up(session, warm)
    batch = Batch()
    append(batch, range(201, 203))
    batch.remove(7)
    await leader.commit(batch)
    await leader.close()
    await standby.lead(lambda *_: None)
    await standby.open()
    found: list[int] = []
    while (part := await standby.places(found[-1] if found else 0)).numbers:
        found += part.numbers
    assert found == [number for number in range(1, 203) if number != 7]
    assert standby._warm is None, "it is of use at a start only"
    await standby.close()
