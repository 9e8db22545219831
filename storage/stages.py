"""Records of stages: stored messages that no consumer can see until a sink commits them.

The messages of all stages are stored in the queue `STAGED`; their positions contain the number of
their stage. A sink is identified by the name of its query; the store keeps the last batch that it
has committed.
"""

from typing import Final, final

from mypy_extensions import i64

STAGED: Final = "$sub/staged"
"""Name of the queue under which the messages of all stages are stored. No other queue can ever have
had this name: the prefix is that of subscriptions, whose names are generated
(`broker.routing.addresses.address`)."""

PLACES: Final[i64] = 2**32
"""Positions per stage: the number of the stage times this is the position of its first message."""


@final
class StoredStage:
    """The messages that one attempt of one task has sent to one address for one batch of a query.

    `number` is unique among the stages that exist. `address` is as the sender gave it, `kind` is
    the kind of node that it named then; `publisher` is the sender's container-id. `begun_ms` is
    wall time in ms. `owner` is the user to whom the query belongs, None if that is not known.
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
        owner: str | None = None,
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
        self.owner: Final = owner


@final
class StoredSink:
    """The progress of a query: `batch` is the last committed one, at `at_ms` wall time in ms."""

    def __init__(self, *, query: str, batch: i64, at_ms: i64) -> None:
        self.query: Final = query
        self.batch: Final[i64] = batch
        self.at_ms: Final[i64] = at_ms


@final
class StageChanges:
    """Stage and sink changes of one `Batch`. The caller that removes a stage removes its messages.

    Removals take effect first, then additions.
    """

    def __init__(self) -> None:
        self.added: Final[dict[int, StoredStage]] = {}
        self.removed: Final[list[int]] = []
        self.sinks: Final[dict[str, StoredSink]] = {}
        self.forgotten: Final[list[str]] = []

    def add(self, stage: StoredStage) -> None:
        """Add a stage. Its number must not be in use."""
        self.added[int(stage.number)] = stage

    def remove(self, number: i64) -> None:
        """Remove a stage. No effect if it is gone already."""
        if self.added.pop(int(number), None) is None:
            self.removed.append(int(number))

    def keep(self, sink: StoredSink) -> None:
        """Replace the stored progress of a query."""
        self.sinks[sink.query] = sink

    def forget(self, query: str) -> None:
        """Delete the stored progress of `query`. No effect if it is gone already."""
        self.sinks.pop(query, None)
        self.forgotten.append(query)
