"""Rows of the event log on their way to a store, and what is asked of those that are there.

A row is what happened to one message at one moment, as a tuple: columns by `EVENT_COLUMNS`.
What does not apply is empty or 0. Rows are added and, from the oldest on, removed; never changed.
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
"""The columns that hold numbers; all others are texts."""

SEPARATOR: Final = "\x1f"
"""Between two values of a column that comes as one text. A value may hold it, too."""

ID: Final = 0
AT_US: Final = 1
KIND: Final = 2
ADDRESS: Final = 4


@final
class Trim:
    """Rows to be removed: the oldest `step` ids at most, older than `before_us` or below `floor`.

    The newest row always stays: it tells which ids have been given.
    """

    def __init__(self, *, before_us: i64, floor: i64, step: i64) -> None:
        self.before_us: Final[i64] = before_us
        self.floor: Final[i64] = floor
        self.step: Final[i64] = step

    def takes(self, row: EventRow) -> bool:
        """Whether `row` is to go, where it is among the oldest."""
        return row[AT_US] < self.before_us or row[ID] < self.floor


@final
class EventChanges:
    """What one batch does to the event log: rows are added first."""

    def __init__(self) -> None:
        self.rows: Final[list[EventRow]] = []
        self.trim: Trim | None = None


@final
class EventQuery:
    """Rows with ids above `behind`, `at_most` of them; "" and 0 leave a filter out.

    `up_to` is the last id that is meant. `since_us` is included, `until_us` is not.
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
        """Whether the filters let `row` pass."""
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
    """Some rows, by ascending id. `looked_to` is where the next page begins: all up to that id
    have been looked at. `is_last`: none lie behind it now."""

    def __init__(self, rows: list[EventRow], *, looked_to: i64, is_last: bool) -> None:
        self.rows: Final = rows
        self.looked_to: Final[i64] = looked_to
        self.is_last: Final = is_last


@final
class EventColumns:
    """The same in columns, for whoever moves rows by the million: `at_most` ids are looked at.

    Of each column the values of its `count` rows as one text, with SEPARATOR between two. Where
    a value holds that itself, the text falls into more parts than there are rows.
    """

    def __init__(self, columns: list[str], *, count: i64, looked_to: i64, is_last: bool) -> None:
        self.columns: Final = columns
        self.count: Final[i64] = count
        self.looked_to: Final[i64] = looked_to
        self.is_last: Final = is_last


def columns_of(rows: list[EventRow], *, looked_to: i64, is_last: bool) -> EventColumns:
    """`rows` in columns."""
    columns = [""] * len(EVENT_COLUMNS)
    if rows:
        columns = [
            SEPARATOR.join([str(each) for each in column]) for column in zip(*rows, strict=True)
        ]
    return EventColumns(columns, count=len(rows), looked_to=looked_to, is_last=is_last)
