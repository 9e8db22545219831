"""The rows of the event log that a query selects, and those that a trim removes."""

import pytest

from storage.events import (
    ADDRESS,
    AT_US,
    EVENT_COLUMNS,
    ID,
    KIND,
    NUMBERS,
    EventQuery,
    EventRow,
    Trim,
    columns_of,
)

ROW: EventRow = (7, 500, "accepted", "", "a", "", "", 0, "", "", "", 0, 0, "", "", "")

QUERIES = [
    ("no filter", EventQuery(), True),
    ("its address", EventQuery(address="a"), True),
    ("another address", EventQuery(address="b"), False),
    ("its kind", EventQuery(kind="accepted"), True),
    ("another kind", EventQuery(kind="expired"), False),
    ("since then", EventQuery(since_us=500), True),
    ("since later", EventQuery(since_us=501), False),
    ("until then", EventQuery(until_us=500), False),
    ("until later", EventQuery(until_us=501), True),
    ("up to it", EventQuery(up_to=7), True),
    ("up to the one before", EventQuery(up_to=6), False),
]


@pytest.mark.parametrize(
    ("query", "expected"), [each[1:] for each in QUERIES], ids=[each[0] for each in QUERIES]
)
def test_a_query(query: EventQuery, expected: bool) -> None:
    assert query.takes(ROW) is expected


TRIMS = [
    ("older than it", Trim(before_us=500, floor=0, step=1), False),
    ("as old", Trim(before_us=501, floor=0, step=1), True),
    ("below it", Trim(before_us=0, floor=7, step=1), False),
    ("up to it", Trim(before_us=0, floor=8, step=1), True),
]


@pytest.mark.parametrize(
    ("trim", "expected"), [each[1:] for each in TRIMS], ids=[each[0] for each in TRIMS]
)
def test_a_trim(trim: Trim, expected: bool) -> None:
    assert trim.takes(ROW) is expected


def test_the_columns_have_their_places() -> None:
    named = [EVENT_COLUMNS[place] for place in (ID, AT_US, KIND, ADDRESS)]
    assert named == ["id", "at_us", "kind", "address"]
    assert len(EVENT_COLUMNS) == len(ROW)


def test_the_columns_of_numbers_hold_numbers() -> None:
    pairs = zip(EVENT_COLUMNS, ROW, strict=True)
    assert tuple(name for name, value in pairs if isinstance(value, int)) == NUMBERS


def test_rows_become_columns() -> None:
    found = columns_of([ROW, ROW], looked_to=7, is_last=True)
    assert found.columns[:5] == ["7\x1f7", "500\x1f500", "accepted\x1faccepted", "\x1f", "a\x1fa"]
    assert (found.count, len(found.columns)) == (2, 16)
    assert columns_of([], looked_to=7, is_last=True).columns == [""] * 16
