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

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from pyspark_amqp.jobs.archive import SAME
from pyspark_amqp.sink.encoding import RAW_COLUMNS
from pyspark_amqp.spark import utc

if TYPE_CHECKING:
    from pyspark.sql import Row

STAGED_MESSAGES_MAX: Final = 1_000_000
STAGED_BYTES_MAX: Final = 512 * 1024 * 1024
"""Maximum messages and bytes that the broker takes as one batch."""

NUMBER: Final = "number"
"""The column by which messages are divided into slices."""


class ReplayError(Exception):
    """An error because a replay cannot begin, or broke off; the text says why."""


@dataclass(frozen=True)
class ReplayChoice:
    """A choice of messages: enqueued in [since, until), from `addresses`, of `subscription`, with
    `selected` true, with ids among `ids`. None or an empty tuple is no limit."""

    since: datetime | None = None
    until: datetime | None = None
    addresses: tuple[str, ...] = ()
    subscription: str | None = None
    selected: Column | None = None
    ids: tuple[str, ...] = ()


def chosen(messages: DataFrame, choice: ReplayChoice) -> DataFrame:
    """Return the chosen messages, each once, however often it was archived.

    Archived copies of one message may differ in bytes: their headers depend on the time of reading
    (remaining ttl, delivery count). So bytes identify a message only if its position or time of
    arrival is unknown.
    """
    if choice.since is not None:
        day = F.lit(f"{choice.since:%Y-%m-%d}")
        messages = messages.filter(
            (F.col("date") >= day) & (F.col("enqueuedAt") >= F.lit(choice.since))
        )
    if choice.until is not None:
        day = F.lit(f"{choice.until:%Y-%m-%d}")
        messages = messages.filter(
            (F.col("date") <= day) & (F.col("enqueuedAt") < F.lit(choice.until))
        )
    if choice.addresses:
        messages = messages.filter(F.col("address").isin(*choice.addresses))
    if choice.subscription is not None:
        messages = messages.filter(F.col("subscription") == choice.subscription)
    if choice.selected is not None:
        messages = messages.filter(choice.selected)
    if choice.ids:
        wanted = messages.sparkSession.createDataFrame(
            [(each,) for each in dict.fromkeys(choice.ids)], "JMSMessageID STRING"
        )
        messages = messages.join(F.broadcast(wanted), "JMSMessageID", "semi")
    is_known = F.col("position").isNotNull() & F.col("enqueuedAt").isNotNull()
    return (
        messages.select(*SAME, "amqp", "messageFormat")
        .withColumn("unknown", F.when(~is_known, F.col("amqp")))
        .groupBy(*SAME, "unknown")
        # an equal copy each time Spark computes this, with its bytes if any copy has them
        .agg(F.max("amqp").alias("amqp"), F.max("messageFormat").alias("messageFormat"))
        .drop("unknown")
    )


def _order() -> tuple[Column, ...]:
    return (
        F.asc_nulls_first("enqueuedAt"),
        F.asc("address"),
        F.asc_nulls_first("subscription"),
        F.asc("position"),
    )


def in_order(messages: DataFrame, *, is_staged: bool) -> DataFrame:
    """Return `messages` in the order in which they were enqueued.

    Those of one moment are ordered by address, subscription and position. Partitions are sent at
    the same time: staged messages arrive in the order of the partitions, others as they are sent,
    so these are put into one partition.
    """
    if is_staged:
        return messages.orderBy(*_order())
    return messages.coalesce(1).sortWithinPartitions(*_order())


def numbered(messages: DataFrame) -> DataFrame:
    """Return `messages` with the column `number`, from 0 on, in the order of `in_order`."""
    order = Window.orderBy(*_order())
    return messages.withColumn(NUMBER, F.row_number().over(order) - 1)


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


def plan(messages: DataFrame, ids: Sequence[str] = ()) -> Plan:
    """Return the plan for sending `messages`, without sending any."""
    rows = (
        messages.groupBy("address")
        .agg(
            F.count("*").alias("n"),
            F.coalesce(F.sum(F.length("amqp")), F.lit(0)).alias("bytes"),
            F.sum(F.col("amqp").isNull().cast("int")).alias("without"),
            F.count_if(F.col("messageFormat") != 0).alias("others"),
            F.min("enqueuedAt").alias("first"),
            F.max("enqueuedAt").alias("last"),
        )
        .orderBy("address")
        .collect()
    )
    found = set()
    if ids:
        found = {row[0] for row in messages.select("JMSMessageID").distinct().collect()}
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


def _moments(rows: Sequence[Row], name: str) -> Iterator[datetime]:
    return (utc(row[name]) for row in rows if row[name] is not None)


# -- sending


def send(messages: DataFrame, options: dict[str, str], to: str | None) -> None:
    """Write the messages to the data source's sink in their order.

    They are sent to `to`, or each to the address it was archived from if `to` is None.
    """
    columns = ["amqp", "messageFormat"] if to is not None else RAW_COLUMNS
    given = {**options, "replay": "raw", **({} if to is None else {"address": to})}
    messages.select(*columns).write.format("amqp").mode("append").options(**given).save()


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
