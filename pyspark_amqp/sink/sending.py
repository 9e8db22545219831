"""The messages of one task on their way to the broker, over lost connections.

A task may not be repeated by Spark, and cannot get its earlier rows again. So it goes on by itself
when the broker was away: from the first row of the Arrow batch that it was sending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from pyspark_amqp.errors import TransientError
from pyspark_amqp.options import Options
from pyspark_amqp.sink.encoding import MessageMaker, Outgoing
from pyspark_amqp.wire.broker_client import opened
from pyspark_amqp.wire.connection import Connection, connected
from pyspark_amqp.wire.patience import Patience
from pyspark_amqp.wire.publishing import Publisher

if TYPE_CHECKING:
    import pyarrow as pa

SINK: Final = "sink"


@dataclass(frozen=True)
class Task:
    """A partition of a batch, which one task writes.

    The number of an attempt is unique, which Spark's own numbers are not: they begin anew with each
    driver.
    """

    query: str
    batch: int
    partition: int
    attempt: int

    @property
    def name(self) -> str:
        """Return the name that its messages' ids begin with: the same for every attempt."""
        return f"{self.query}/{self.batch}/{self.partition}"

    def properties(self) -> dict[str, object]:
        """Return the link properties that make the broker stage messages for this task."""
        from proton import int32

        return {
            "stage-query": self.query,
            "stage-batch": self.batch,
            "stage-partition": int32(self.partition),
            "stage-attempt": self.attempt,
        }


@final
class TaskSender:
    """The sender of one task. `count` is the number of messages that the broker has confirmed.

    Each Arrow batch has a connection of its own: the next one may take long, and the broker ends a
    silent connection. Messages on a later link of the same attempt are staged after earlier ones.
    """

    def __init__(self, options: Options, maker: MessageMaker, stage: Task | None) -> None:
        """`stage` is the task for which messages are staged; None for delivery at least once."""
        self.count = 0
        self._options: Final = options
        self._maker: Final = maker
        self._stage: Final = stage

    def send(self, batch: pa.RecordBatch) -> None:
        """Send all rows; return when the broker has confirmed them.

        Raise TransientError if it was away for longer than the option amqp.timeout, BrokerError if
        it refuses a message.
        """
        first_row = self._maker.count
        progress = _Progress()
        patience = Patience(self._options)
        while batch.num_rows:
            try:
                self._attempt(batch, progress)
                self.count += batch.num_rows
                return
            except TransientError as error:
                if progress.has_advanced():
                    patience.renew()
                patience.pause(error)
                self._maker.count = first_row
                self._forget_unknown(progress)

    def _attempt(self, batch: pa.RecordBatch, progress: _Progress) -> None:
        properties = None if self._stage is None else self._stage.properties()
        with connected(self._options) as connection:
            links = _AddressLinks(connection, properties)
            try:
                for message in progress.unconfirmed(self._maker.messages(batch)):
                    links.send(message.address, message.data)
                links.flush()
            except TransientError:
                progress.confirmed += links.confirmed()
                raise

    def _forget_unknown(self, progress: _Progress) -> None:
        """Drop what is staged of this Arrow batch, to send it once more.

        The broker may have staged messages whose confirmation was lost, and there is no way to know
        which. Messages that are not staged are only sent again if they were not confirmed.
        """
        task = self._stage
        if task is None:
            return
        with opened(self._options) as broker:
            broker.ask(
                "TRIM",
                SINK,
                task.query,
                batch=task.batch,
                partition=task.partition,
                attempt=task.attempt,
                count=self.count,
            )
        progress.confirmed.clear()


@final
class _Progress:
    """The messages of an Arrow batch that the broker has confirmed, by address, in their order."""

    def __init__(self) -> None:
        self.confirmed: Counter[str] = Counter()
        self._furthest = 0

    def has_advanced(self) -> bool:
        """Return whether more messages than ever are confirmed.

        A message that kills its broker each time gets no further.
        """
        before, self._furthest = self._furthest, max(self._furthest, self.confirmed.total())
        return self._furthest > before

    def unconfirmed(self, messages: Iterator[Outgoing]) -> Iterator[Outgoing]:
        """Return `messages` without the first ones to each address, which are confirmed."""
        return self._others(messages) if self.confirmed else messages

    def _others(self, messages: Iterator[Outgoing]) -> Iterator[Outgoing]:
        left = Counter(self.confirmed)
        for message in messages:
            if left[message.address] > 0:
                left[message.address] -= 1
            else:
                yield message


@final
class _AddressLinks:
    """A connection with a link for each address to which messages are sent."""

    def __init__(self, connection: Connection, properties: Mapping[str, object] | None) -> None:
        self._connection: Final = connection
        self._properties: Final = properties
        self._publishers: Final[dict[str, Publisher]] = {}

    def send(self, address: str, data: bytes) -> None:
        publisher = self._publishers.get(address)
        if publisher is None:
            publisher = Publisher(self._connection, address, self._properties)
            self._publishers[address] = publisher
        publisher.send(data)

    def flush(self) -> None:
        for publisher in self._publishers.values():
            publisher.flush()

    def confirmed(self) -> Counter[str]:
        """Return how many messages are confirmed, by address; raise BrokerError for a refusal."""
        found = {name: publisher.confirmed() for name, publisher in self._publishers.items()}
        return Counter(found)
