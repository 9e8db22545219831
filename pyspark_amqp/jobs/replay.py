"""The replay job: archived messages to an address, as they were, bit by bit, in their order.

Without a rate all of them are staged and come at one moment, or not at all. With one they go in
slices of a second; what has gone is told where it breaks off, so that `--skip` can go on there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from pyspark_amqp.jobs.archive import SAME
from pyspark_amqp.sink.encoding import RAW_COLUMNS
from pyspark_amqp.spark import utc

if TYPE_CHECKING:
    from pyspark.sql import Row

STAGED_MESSAGES_MAX: Final = 1_000_000
STAGED_BYTES_MAX: Final = 512 * 1024 * 1024
"""So much the broker takes as one batch."""

NUMBER: Final = "number"
"""The column by which slices are cut."""


class ReplayError(Exception):
    """A replay is not begun, or broke off, and why."""


@dataclass(frozen=True)
class ReplayChoice:
    """Which messages: enqueued in [since, until), from those addresses or that subscription,
    selected, of those ids."""

    since: datetime | None = None
    until: datetime | None = None
    addresses: tuple[str, ...] = ()
    subscription: str | None = None
    selected: Column | None = None
    ids: tuple[str, ...] = ()


def chosen(messages: DataFrame, choice: ReplayChoice) -> DataFrame:
    """The messages that are meant, each once, however often it was archived.

    Its bytes do not say whether it is the same: their header tells of the time when it was read
    (what is left of its ttl, how often it was given). Only where place or time are not known, they
    have to.
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
        # the same one whenever Spark does it again, and one that was archived with its bytes
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
    """In the order in which they were enqueued; those of one moment by their positions.

    Parts are sent at the same time. Those that are staged come in the order of the parts; others
    as they are sent, so there is one part of them.
    """
    if is_staged:
        return messages.orderBy(*_order())
    return messages.coalesce(1).sortWithinPartitions(*_order())


def numbered(messages: DataFrame) -> DataFrame:
    """With `number`, from 0 on, in that order."""
    order = Window.orderBy(*_order())
    return messages.withColumn(NUMBER, F.row_number().over(order) - 1)


@dataclass(frozen=True)
class Plan:
    """What would be sent: how many, how large, from where, of which time; ids that are nowhere."""

    messages: int
    bytes: int
    without_bytes: int
    first: datetime | None
    last: datetime | None
    addresses: dict[str, int]
    missing_ids: tuple[str, ...] = ()
    of_other_formats: int = 0

    def check(self, *, is_one_batch: bool = False, skip: int = 0) -> None:
        """ReplayError where it cannot be sent; `is_one_batch`: all staged, to come at once."""
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
    """Look what is meant, without sending anything."""
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
    """Hand the messages to the source's sink in their order; to where they were, without `to`."""
    columns = ["amqp", "messageFormat"] if to is not None else RAW_COLUMNS
    given = {**options, "replay": "raw", **({} if to is None else {"address": to})}
    messages.select(*columns).write.format("amqp").mode("append").options(**given).save()


def slices(total: int, rate: float, skip: int = 0) -> Iterator[tuple[float, int, int]]:
    """When, from the begin on, which numbers go: second by second, or one by one where it is slow.

    Each is (seconds, first, behind the last).
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
    """`put` all slices, none before its time. ReplayError says how far it came."""
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
