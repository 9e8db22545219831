"""Rows of the event log, changes to it, and queries on it.

A row is one event of one message, as a tuple in the order of `EVENT_COLUMNS`. Columns that do not
apply are empty or 0. Rows are added and, from the oldest on, removed; never changed.
"""

from typing import Final, final

from mypy_extensions import i64

EventRow = tuple[
    int, int, str, str, str, str, str, int, str, str, str, int, int, str, str, str
]  # fmt: skip

EVENT_COLUMNS: Final = (
    "id",
    "at_us",
    "kind",
    "vhost",
    "address",
    "subscription",
    "message_id",
    "position",
    "consumer",
    "link",
    "session",
    "delivery_count",
    "deliver_at_us",
    "txn",
    "reason",
    "boot",
)
"""`at_us` and `deliver_at_us` are wall time in µs on the clock of the process `boot`; `position` is
the message's number in its queue, by which an operator names it."""

NUMBERS: Final = ("id", "at_us", "position", "delivery_count", "deliver_at_us")
"""Columns that hold numbers; all others hold text."""

SEPARATOR: Final = "\x1f"
"""Separator of the values of a column that is returned as one text. A value may contain it, too."""

ID: Final = 0
AT_US: Final = 1
KIND: Final = 2
ADDRESS: Final = 4


@final
class Trim:
    """Rows to remove: of the oldest `step` ids, those older than `before_us` or below id `floor`.

    `before_us` is wall time in µs. Removal ends at the first row that stays, so that the ids of the
    others have no gap even if the wall clock was set back. The newest row always stays: its id is
    the last one given.
    """

    def __init__(self, *, before_us: i64, floor: i64, step: i64) -> None:
        self.before_us: Final[i64] = before_us
        self.floor: Final[i64] = floor
        self.step: Final[i64] = step

    def takes(self, row: EventRow) -> bool:
        """Return whether `row` is to be removed, given that it is among the oldest `step` ids."""
        return row[AT_US] < self.before_us or row[ID] < self.floor


@final
class EventChanges:
    """Event log changes of one `Batch`: rows are added first, then `trim` is applied."""

    def __init__(self) -> None:
        self.rows: Final[list[EventRow]] = []
        self.trim: Trim | None = None


@final
class EventQuery:
    """A query for at most `at_most` rows with ids above `behind`; "" and 0 leave a filter out.

    `up_to` is the last id that may be returned. Times are in µs: `since_us` is included,
    `until_us` is not.
    """

    def __init__(
        self,
        *,
        behind: i64 = 0,
        up_to: i64 = 0,
        at_most: i64 = 1000,
        address: str = "",
        kind: str = "",
        since_us: i64 = 0,
        until_us: i64 = 0,
    ) -> None:
        self.behind: Final[i64] = behind
        self.up_to: Final[i64] = up_to
        self.at_most: Final[i64] = at_most
        self.address: Final = address
        self.kind: Final = kind
        self.since_us: Final[i64] = since_us
        self.until_us: Final[i64] = until_us

    def takes(self, row: EventRow) -> bool:
        """Return whether `row` passes the filters."""
        if self.up_to > 0 and row[ID] > self.up_to:
            return False
        if self.address and row[ADDRESS] != self.address:
            return False
        if self.kind and row[KIND] != self.kind:
            return False
        if row[AT_US] < self.since_us:
            return False
        return self.until_us == 0 or row[AT_US] < self.until_us


@final
class EventPage:
    """Some rows, by ascending id. All rows up to the id `looked_to` have been examined: the next
    page begins behind it. `is_last`: no rows are behind it now."""

    def __init__(self, rows: list[EventRow], *, looked_to: i64, is_last: bool) -> None:
        self.rows: Final = rows
        self.looked_to: Final[i64] = looked_to
        self.is_last: Final = is_last


@final
class EventColumns:
    """Like `EventPage`, in columns, for readers of millions of rows: `at_most` ids are examined.

    Each of `columns` is one text: the values of the `count` rows, separated by SEPARATOR. If a
    value contains SEPARATOR itself, the text splits into more parts than there are rows.
    """

    def __init__(self, columns: list[str], *, count: i64, looked_to: i64, is_last: bool) -> None:
        self.columns: Final = columns
        self.count: Final[i64] = count
        self.looked_to: Final[i64] = looked_to
        self.is_last: Final = is_last


def columns_of(rows: list[EventRow], *, looked_to: i64, is_last: bool) -> EventColumns:
    """Return `rows` as columns."""
    columns = [""] * len(EVENT_COLUMNS)
    if rows:
        columns = [
            SEPARATOR.join([str(each) for each in column]) for column in zip(*rows, strict=True)
        ]
    return EventColumns(columns, count=len(rows), looked_to=looked_to, is_last=is_last)
