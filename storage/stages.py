"""Stages on their way to a store: messages that wait there, unseen, until a sink commits them.

All of them are stored as messages of the queue `STAGED`, at places that name their stage.
A sink is known by the name of its query; what is remembered of it is how far it has come.
"""

from typing import Final, final

from mypy_extensions import i64

STAGED: Final = "$sub/staged"
"""The name under which the messages of all stages are stored. No queue can ever have been called
so: the prefix is that of subscriptions, whose names are drawn
(`broker.routing.addresses.address`)."""

PLACES: Final[i64] = 2**32
"""So many places has a stage: the number of the stage times this, and the place within it."""


@final
class StoredStage:
    """What one attempt of one task has sent to one address, for one batch of a query.

    `number` is its own while it is there. `address` is as the sender gave it, of the `kind` that
    was found there then; `publisher` is the sender's container-id. `begun_ms` is wall time.
    """

    def __init__(
        self,
        *,
        number: i64,
        query: str,
        batch: i64,
        partition: i64,
        attempt: i64,
        kind: str,
        address: str,
        publisher: str,
        begun_ms: i64,
    ) -> None:
        self.number: Final[i64] = number
        self.query: Final = query
        self.batch: Final[i64] = batch
        self.partition: Final[i64] = partition
        self.attempt: Final[i64] = attempt
        self.kind: Final = kind
        self.address: Final = address
        self.publisher: Final = publisher
        self.begun_ms: Final[i64] = begun_ms


@final
class StoredSink:
    """How far a query has come: `batch` is the last that was committed, at `at_ms` wall time."""

    def __init__(self, *, query: str, batch: i64, at_ms: i64) -> None:
        self.query: Final = query
        self.batch: Final[i64] = batch
        self.at_ms: Final[i64] = at_ms


@final
class StageChanges:
    """What one batch does to stages and sinks. Whoever removes a stage removes its messages, too.

    Removals take effect first, then additions.
    """

    def __init__(self) -> None:
        self.added: Final[dict[int, StoredStage]] = {}
        self.removed: Final[list[int]] = []
        self.sinks: Final[dict[str, StoredSink]] = {}
        self.forgotten: Final[list[str]] = []

    def add(self, stage: StoredStage) -> None:
        """Remember a stage, of whose number there is none."""
        self.added[int(stage.number)] = stage

    def remove(self, number: i64) -> None:
        """Forget a stage. One that is gone already stays gone."""
        if self.added.pop(int(number), None) is None:
            self.removed.append(int(number))

    def keep(self, sink: StoredSink) -> None:
        """Remember how far a query has come, in place of what was remembered before."""
        self.sinks[sink.query] = sink

    def forget(self, query: str) -> None:
        """Remember it no more. One that is gone already stays gone."""
        self.sinks.pop(query, None)
        self.forgotten.append(query)
