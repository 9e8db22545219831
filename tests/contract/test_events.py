"""The contract of `storage.api` for the event log."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.api import Store
from storage.batch import Batch
from storage.events import (
    EVENT_COLUMNS,
    NUMBERS,
    SEPARATOR,
    EventColumns,
    EventQuery,
    EventRow,
    Trim,
)
from storage.records import StoredNode
from tests.contract.test_store import STORES, stored
from tests.support.stored import stored_messages

AT_US = 1_750_000_000_000_000


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = STORES[request.param](tmp_path)
    await opened.open()
    yield opened
    await opened.close()


def row(number: int, kind: str = "enqueued", address: str = "a") -> EventRow:
    """Return an event; each is a second later than the one with the number before."""
    return (
        *(number, AT_US + number * 1_000_000, kind, "", address, "durable/shop/orders"),
        *("ID:1", 2**53 + 4, "shop", "receiver", "7/0", 3, AT_US + 5, "0a0b", "because \U0001f6d2"),
        "0123456789abcdef",
    )


async def filled(store: Store, count: int, *, address: str = "a") -> None:
    """Store `count` events with the ids from 1 on."""
    batch = Batch()
    for number in range(1, count + 1):
        batch.note_event(row(number, address=address))
    await store.commit(batch)


async def ids(store: Store, **asked: int | str) -> list[int]:
    """Return the ids of all events that a query finds, page by page."""
    found: list[int] = []
    behind = 0
    while True:
        page = await store.events(EventQuery(behind=behind, **asked))  # type: ignore[arg-type]
        found += [each[0] for each in page.rows]
        behind = int(page.looked_to)
        if page.is_last:
            return found


def rows_of(found: EventColumns) -> list[EventRow]:
    """Return the rows of which `found` has the columns."""
    columns: list[list[object]] = []
    for name, text in zip(EVENT_COLUMNS, found.columns, strict=True):
        values = text.split(SEPARATOR) if found.count else []
        assert len(values) == found.count
        columns.append([int(each) if name in NUMBERS else each for each in values])
    return list(zip(*columns, strict=True))


async def ids_in_columns(store: Store, **asked: int | str) -> list[int]:
    """Like `ids`, but read as columns, part by part."""
    found: list[int] = []
    behind = 0
    while True:
        some = await store.event_columns(EventQuery(behind=behind, **asked))  # type: ignore[arg-type]
        found += [each[0] for each in rows_of(some)]
        behind = int(some.looked_to)
        if some.is_last:
            return found


async def test_a_row_is_kept_as_it_came(store: Store) -> None:
    batch = Batch()
    batch.note_event(row(1))
    assert not batch.is_empty()
    await store.commit(batch)
    page = await store.events(EventQuery())
    assert page.rows == [row(1)]
    assert (page.looked_to, page.is_last) == (1, True)


async def test_a_new_store_has_no_rows(store: Store) -> None:
    page = await store.events(EventQuery(behind=7))
    assert (page.rows, page.looked_to, page.is_last) == ([], 7, True)
    assert store.first_event == 1


async def test_rows_come_with_the_commit_of_the_change(store: Store) -> None:
    batch = Batch()
    batch.add_node(StoredNode(address="a", kind="queue"))
    batch.append(stored(1))
    batch.note_event(row(1))
    assert await ids(store) == []
    await store.commit(batch)
    assert await ids(store) == [1]
    assert len(await stored_messages(store, "a")) == 1


async def test_rows_of_what_came_and_went_in_one_batch_stay(store: Store) -> None:
    batch = Batch()
    batch.append(stored(1))
    batch.note_event(row(1))
    batch.remove(1)
    batch.note_event(row(2, "accepted"))
    await store.commit(batch)
    assert await stored_messages(store, "a") == []
    assert await ids(store) == [1, 2]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param({}, [1, 2, 3, 4, 5, 6], id="everything"),
        pytest.param({"at_most": 4}, [1, 2, 3, 4, 5, 6], id="in pages"),
        pytest.param({"address": "b"}, [4, 5, 6], id="of one address"),
        pytest.param({"address": "b", "at_most": 1}, [4, 5, 6], id="of one address, one by one"),
        pytest.param({"kind": "accepted"}, [3, 6], id="of one kind"),
        pytest.param({"kind": "expired"}, [], id="of a kind that never was"),
        pytest.param({"since_us": AT_US + 3_000_000}, [3, 4, 5, 6], id="since"),
        pytest.param({"until_us": AT_US + 3_000_000}, [1, 2], id="until, excluded"),
        pytest.param(
            {"since_us": AT_US + 2_000_000, "until_us": AT_US + 5_000_000, "address": "a"},
            [2, 3],
            id="all together",
        ),
    ],
)
async def test_rows_are_found(
    store: Store, asked: dict[str, int | str], expected: list[int]
) -> None:
    for first, address in ((1, "a"), (4, "b")):
        batch = Batch()
        for number in range(first, first + 3):
            batch.note_event(row(number, "accepted" if number % 3 == 0 else "enqueued", address))
        await store.commit(batch)
    assert await ids(store, **asked) == expected
    assert await ids_in_columns(store, **asked) == expected


async def test_columns_have_the_rows_as_they_came(store: Store) -> None:
    await filled(store, 5)
    found = await store.event_columns(EventQuery(behind=1, at_most=3))
    assert rows_of(found) == [row(2), row(3), row(4)]
    assert (found.looked_to, found.is_last) == (4, False)
    rest = await store.event_columns(EventQuery(behind=4, at_most=3))
    assert (rows_of(rest), rest.looked_to, rest.is_last) == ([row(5)], 5, True)


async def test_a_column_of_nothing_but_empty_texts_has_its_rows(store: Store) -> None:
    await filled(store, 2, address="")
    found = await store.event_columns(EventQuery())
    assert found.columns[EVENT_COLUMNS.index("address")] == SEPARATOR


async def test_a_value_with_the_separator_gives_more_parts_than_rows(store: Store) -> None:
    await filled(store, 2, address=f"a{SEPARATOR}b")
    found = await store.event_columns(EventQuery())
    parts = found.columns[EVENT_COLUMNS.index("address")].split(SEPARATOR)
    assert (found.count, parts) == (2, ["a", "b", "a", "b"])


async def test_a_stretch_without_rows_that_are_wanted_says_where_to_go_on(store: Store) -> None:
    await filled(store, 4)
    found = await store.event_columns(EventQuery(at_most=3, address="b"))
    assert (rows_of(found), found.looked_to, found.is_last) == ([], 3, False)


async def test_columns_of_nothing(store: Store) -> None:
    found = await store.event_columns(EventQuery(behind=7))
    assert (rows_of(found), found.looked_to, found.is_last) == ([], 7, True)


async def test_a_query_may_end_ahead_of_the_newest_row(store: Store) -> None:
    await filled(store, 6)
    assert await ids(store, up_to=4) == [1, 2, 3, 4]
    assert await ids_in_columns(store, up_to=4, at_most=3) == [1, 2, 3, 4]
    found = await store.event_columns(EventQuery(behind=4, up_to=4))
    assert (rows_of(found), found.looked_to, found.is_last) == ([], 4, True)


async def test_the_bounds_are_those_of_what_is_there(store: Store) -> None:
    assert await store.event_bounds() == (0, 0)
    await filled(store, 6)
    assert await store.event_bounds() == (1, 6)
    batch = Batch()
    batch.trim_events(Trim(before_us=0, floor=5, step=100))
    await store.commit(batch)
    assert await store.event_bounds() == (5, 6)
    assert await ids_in_columns(store) == [5, 6]


async def test_a_page_says_where_the_next_begins(store: Store) -> None:
    await filled(store, 5)
    page = await store.events(EventQuery(behind=1, at_most=2))
    assert ([each[0] for each in page.rows], page.looked_to, page.is_last) == ([2, 3], 3, False)
    rest = await store.events(EventQuery(behind=3, at_most=2))
    assert ([each[0] for each in rest.rows], rest.looked_to, rest.is_last) == ([4, 5], 5, True)


TRIMS = [
    pytest.param(Trim(before_us=0, floor=0, step=100), [1, 2, 3, 4, 5, 6], id="nothing"),
    pytest.param(Trim(before_us=AT_US + 3_000_000, floor=0, step=100), [3, 4, 5, 6], id="too old"),
    pytest.param(Trim(before_us=0, floor=5, step=100), [5, 6], id="too many"),
    pytest.param(Trim(before_us=0, floor=5, step=3), [4, 5, 6], id="no more than a step"),
    pytest.param(Trim(before_us=2**60, floor=2**40, step=100), [6], id="never the newest"),
]


@pytest.mark.parametrize(("trim", "left"), TRIMS)
async def test_old_rows_go(store: Store, trim: Trim, left: list[int]) -> None:
    await filled(store, 6)
    batch = Batch()
    batch.trim_events(trim)
    assert not batch.is_empty()
    await store.commit(batch)
    assert await ids(store) == left


async def test_a_clock_that_was_set_back_leaves_no_gap(store: Store) -> None:
    """Later rows with earlier times stay behind a row that is not old enough yet."""
    batch = Batch()
    for id_, seconds in ((1, 0), (2, 9), (3, 1), (4, 2), (5, 9)):
        id_only, _, *others = row(id_)
        batch.note_event((id_only, AT_US + seconds * 1_000_000, *others))  # type: ignore[arg-type]
    await store.commit(batch)
    for floor, left in ((0, [2, 3, 4, 5]), (3, [5])):
        batch = Batch()
        batch.trim_events(Trim(before_us=AT_US + 5_000_000, floor=floor, step=100))
        await store.commit(batch)
        assert await ids(store) == left


async def test_rows_go_step_by_step(store: Store) -> None:
    await filled(store, 6)
    for left in ([3, 4, 5, 6], [5, 6], [5, 6]):
        batch = Batch()
        batch.trim_events(Trim(before_us=0, floor=5, step=2))
        await store.commit(batch)
        assert await ids(store) == left


async def test_an_empty_event_log_is_trimmed_in_vain(store: Store) -> None:
    batch = Batch()
    batch.trim_events(Trim(before_us=2**60, floor=100, step=100))
    await store.commit(batch)
    assert await ids(store) == []
