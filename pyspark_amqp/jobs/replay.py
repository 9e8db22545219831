"""The replay job: send archived messages again, bit by bit, in the order of their arrival.

Without a rate all of them are staged and arrive at one moment, or not at all. With a rate they are
sent in slices of a second; a replay that breaks off reports how many were sent, so that `--skip`
can continue there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pyspark_amqp.engines.engine import Record, Table
from pyspark_amqp.errors import ReplayError
from pyspark_amqp.jobs.audit import at_addresses
from pyspark_amqp.jobs.statements import query
from pyspark_amqp.sink.encoding import RAW_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

STAGED_MESSAGES_MAX: Final = 1_000_000
STAGED_BYTES_MAX: Final = 512 * 1024 * 1024
"""Maximum messages and bytes that the broker takes as one batch."""


@dataclass(frozen=True)
class ReplayChoice:
    """A choice of messages: enqueued in [since, until), from `addresses`, of `subscription`, for
    which the condition `selected` is true, with ids among `ids`. None or an empty tuple is no
    limit."""

    since: datetime | None = None
    until: datetime | None = None
    addresses: tuple[str, ...] = ()
    subscription: str | None = None
    selected: str | None = None
    ids: tuple[str, ...] = ()


SINCE: Final = "SELECT * FROM {found} WHERE date >= {day} AND enqueuedAt >= {moment}"
UNTIL: Final = "SELECT * FROM {found} WHERE date <= {day} AND enqueuedAt < {moment}"
"""The date is the name of a folder, so files of other days are not read."""

CHOSEN: Final = """
SELECT {same}, max(amqp) AS amqp, max(messageFormat) AS messageFormat
FROM {found}
GROUP BY {same}, CASE WHEN position IS NULL OR enqueuedAt IS NULL THEN amqp END
"""
"""Each message once, however often it was archived: an equal copy each time this is computed, with
its bytes if any copy has them.

Archived copies of one message may differ in bytes: their headers depend on the time of reading
(remaining ttl, delivery count). So bytes identify a message only if its position or time of arrival
is unknown.
"""


def chosen(messages: Table, choice: ReplayChoice) -> Table:
    """Return the chosen messages, each once."""
    found = messages
    if choice.since is not None:
        day = f"{choice.since:%Y-%m-%d}"
        found = query(SINCE, found=found, day=day, moment=choice.since)
    if choice.until is not None:
        day = f"{choice.until:%Y-%m-%d}"
        found = query(UNTIL, found=found, day=day, moment=choice.until)
    found = at_addresses(found, choice.addresses)
    if choice.subscription is not None:
        found = _among(found, "subscription", (choice.subscription,))
    if choice.selected is not None:
        found = query("SELECT * FROM {found} WHERE " + choice.selected, found=found)
    if choice.ids:
        found = _among(found, "JMSMessageID", choice.ids)
    return query(CHOSEN, found=found)


def _among(found: Table, column: str, texts: Sequence[str]) -> Table:
    """Return the rows of `found` whose `column` is one of the texts."""
    wanted = found.engine.table({column: "STRING"}, [(each,) for each in set(texts)])
    statement = f"SELECT * FROM {{found}} SEMI JOIN {{wanted}} USING ({column})"
    return query(statement, found=found, wanted=wanted)


ORDER: Final = (
    "enqueuedAt ASC NULLS FIRST, address ASC NULLS FIRST, subscription ASC NULLS FIRST,"
    " position ASC NULLS FIRST, JMSMessageID ASC NULLS FIRST,"
    " CASE WHEN position IS NULL OR enqueuedAt IS NULL THEN amqp END ASC NULLS FIRST"
)
"""The order in which messages were enqueued. Those of one moment are ordered by their places.

Another broker tells neither. The order is then that of ids and bytes: it has to be the same each
time, so that `--skip` leaves out the messages that were sent.
"""

NUMBERED: Final = "SELECT *, row_number() OVER (ORDER BY {order}) - 1 AS number FROM {messages}"

SLICE: Final = """
SELECT * FROM {numbered} WHERE number >= {first} AND number < {behind}
"""


def numbered(messages: Table) -> Table:
    """Return `messages` with the column `number`, from 0 on, in their ORDER."""
    return query(NUMBERED.replace("{order}", ORDER), messages=messages)


def slice_of(numbers: Table, first: int, behind: int) -> Table:
    """Return the messages of `numbered` from the number `first` up to that before `behind`."""
    return query(SLICE, numbered=numbers, first=first, behind=behind)


@dataclass(frozen=True)
class Plan:
    """A summary of the messages that would be sent, with their number by address.

    `first` and `last` are times of arrival. `without_bytes` counts messages archived without the
    column `amqp`, `of_other_formats` those whose format is not AMQP's own. `missing_ids` are ids of
    the choice that no message has.
    """

    messages: int
    bytes: int
    without_bytes: int
    first: datetime | None
    last: datetime | None
    addresses: dict[str, int]
    missing_ids: tuple[str, ...] = ()
    of_other_formats: int = 0

    def check(self, *, is_one_batch: bool = False, skip: int = 0) -> None:
        """Raise ReplayError if it cannot be sent; `is_one_batch`: all staged, to arrive at once."""
        if self.messages == 0:
            raise ReplayError("no archived message is meant: nothing is sent")
        if self.without_bytes:
            raise ReplayError(
                f"{self.without_bytes} of {self.messages} messages were archived without their"
                " bytes (column amqp): they cannot be replayed"
            )
        if self.of_other_formats:
            raise ReplayError(
                f"{self.of_other_formats} of {self.messages} messages have a messageFormat other"
                " than AMQP's own, which cannot be sent: leave them out"
            )
        if self.missing_ids:
            shown = ", ".join(self.missing_ids[:5])
            raise ReplayError(f"{len(self.missing_ids)} of the ids are not in the archive: {shown}")
        if skip > self.messages:
            raise ReplayError(f"--skip {skip}: only {self.messages} messages are meant")
        if is_one_batch and (self.messages > STAGED_MESSAGES_MAX or self.bytes > STAGED_BYTES_MAX):
            raise ReplayError(
                f"{self.messages} messages of {self.bytes} bytes are too many to come at one"
                f" moment ({STAGED_MESSAGES_MAX} of {STAGED_BYTES_MAX} at most): --rate 1000 sends"
                " them in slices"
            )


PLANNED: Final = """
SELECT address,
  count(*) AS n,
  coalesce(sum(octet_length(amqp)), 0) AS bytes,
  count_if(amqp IS NULL) AS without,
  count_if(messageFormat <> 0) AS others,
  min(enqueuedAt) AS first,
  max(enqueuedAt) AS last
FROM {messages}
GROUP BY address
ORDER BY address
"""


def plan(messages: Table, ids: Sequence[str] = ()) -> Plan:
    """Return the plan for sending `messages`, without sending any."""
    rows = query(PLANNED, messages=messages).rows()
    found = set()
    if ids:
        known = query("SELECT DISTINCT JMSMessageID FROM {messages}", messages=messages)
        found = {row["JMSMessageID"] for row in known.rows()}
    return Plan(
        messages=sum(row["n"] for row in rows),
        bytes=sum(row["bytes"] for row in rows),
        without_bytes=sum(row["without"] for row in rows),
        first=min(_moments(rows, "first"), default=None),
        last=max(_moments(rows, "last"), default=None),
        addresses={row["address"]: row["n"] for row in rows},
        of_other_formats=sum(row["others"] for row in rows),
        missing_ids=tuple(each for each in dict.fromkeys(ids) if each not in found),
    )


def _moments(rows: Sequence[Record], name: str) -> Iterator[datetime]:
    return (row[name] for row in rows if row[name] is not None)


# -- sending


def send(messages: Table, options: Mapping[str, str], to: str | None, order: str = ORDER) -> None:
    """Send the messages in the order of the columns `order`.

    They are sent to `to`, or each to the address it was archived from if `to` is None.
    """
    columns = ["amqp", "messageFormat"] if to is not None else RAW_COLUMNS
    given = {**options, "replay": "raw", **({} if to is None else {"address": to})}
    messages.engine.send(messages, columns, order, given)


def slices(total: int, rate: float, skip: int = 0) -> Iterator[tuple[float, int, int]]:
    """Yield the slices to send: (seconds after the begin, first number, number behind the last).

    A slice has the messages of a second, or one message if `rate`, in messages per second, is low.
    """
    size = max(1, round(rate))
    for count, first in enumerate(range(skip, total, size)):
        yield count * size / rate, first, min(first + size, total)


def paced(
    total: int,
    rate: float,
    put: Callable[[int, int], None],
    *,
    skip: int,
    now: Callable[[], float],
    wait: Callable[[float], None],
    tell: Callable[[int], None] = lambda _: None,
) -> None:
    """Call `put` for each slice, none before its time; raise ReplayError if a slice fails.

    The error says how many messages were sent before.
    """
    begin = now()
    for due, first, behind in slices(total, rate, skip):
        wait(max(0.0, begin + due - now()))
        try:
            put(first, behind)
        except Exception as error:
            raise ReplayError(
                f"it broke off after {first} of {total} messages: --skip {first} goes on there"
            ) from error
        tell(behind)
