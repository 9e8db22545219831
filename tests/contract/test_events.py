"""The lifecycle journal, as every filling of `storage.api` keeps it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.api import Store
from storage.batch import Batch
from storage.events import EventQuery, EventRow, Trim
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
    """An event a second after the one before."""
    return (
        *(number, AT_US + number * 1_000_000, kind, "", address, "durable/shop/orders"),
        *("ID:1", 2**53 + 4, "shop", "receiver", "7/0", 3, AT_US + 5, "0a0b", "because \U0001f6d2"),
        "0123456789abcdef",
    )


async def filled(store: Store, count: int, *, address: str = "a") -> None:
    batch = Batch()
    for number in range(1, count + 1):
        batch.note_event(row(number, address=address))
    await store.commit(batch)


async def ids(store: Store, **asked: int | str) -> list[int]:
    """The ids of everything that a query finds, page by page."""
    found: list[int] = []
    behind = 0
    while True:
        page = await store.events(EventQuery(behind=behind, **asked))  # type: ignore[arg-type]
        found += [each[0] for each in page.rows]
        behind = int(page.looked_to)
        if page.is_last:
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


async def test_rows_go_step_by_step(store: Store) -> None:
    await filled(store, 6)
    for left in ([3, 4, 5, 6], [5, 6], [5, 6]):
        batch = Batch()
        batch.trim_events(Trim(before_us=0, floor=5, step=2))
        await store.commit(batch)
        assert await ids(store) == left


async def test_an_empty_journal_is_trimmed_in_vain(store: Store) -> None:
    batch = Batch()
    batch.trim_events(Trim(before_us=2**60, floor=100, step=100))
    await store.commit(batch)
    assert await ids(store) == []
