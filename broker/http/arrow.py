"""The answers that are Arrow streams: messages, leased messages, rows of the event log.

`arrow_of` is what the rest of the server uses: pyarrow is an extra of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from starlette.responses import Response

from broker.http.streams import Streams
from broker.links.container import Container
from broker.routing.entries.browse_slice import BrowseSlice
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.queues.queue import Queue
from storage.api import Store

if TYPE_CHECKING:
    from broker.http.messages import Reading

ARROW: Final = "pyarrow"
NO_ARROW: Final = "Arrow streams need pyarrow: pip install 'jms-broker[arrow]'"


@final
class ArrowAnswers:
    """Makes the streams of one broker. Raise ModuleNotFoundError without pyarrow."""

    def __init__(self, container: Container, store: Store, streams: Streams) -> None:
        # a broker without pyarrow serves all other paths
        from broker.http import arrow_streams, events, messages

        self._store: Final = store
        self._streams: Final = streams
        self._stream: Final = arrow_streams.ArrowStream
        self._events: Final = events
        self._schema: Final = messages.SCHEMA
        self._reading: Final[Reading] = messages.Reading(container)

    def events(self, *, behind: int, until: int, address: str, kind: str) -> Response:
        """Return the rows of the event log that `events.batches` reads."""
        batches = self._events.batches(
            self._store, behind=behind, until=until, address=address, kind=kind
        )
        return self._stream(self._streams, self._events.SCHEMA, batches)

    def held(self, entries: list[QueueEntry]) -> Response:
        """Return the leased messages of `entries`."""
        return self._stream(self._streams, self._schema, self._reading.held(entries))

    def browse(self, queue: Queue, *, part: BrowseSlice, wanted: ConsumerFilter | None) -> Response:
        """Return the ready messages of `queue`, restricted to `part` and `wanted`."""
        batches = self._reading.browse(queue, part=part, wanted=wanted)
        return self._stream(self._streams, self._schema, batches)


def arrow_of(container: Container, store: Store, streams: Streams) -> ArrowAnswers | None:
    """Return what makes Arrow streams; None if pyarrow is not installed."""
    try:
        return ArrowAnswers(container, store, streams)
    except ModuleNotFoundError as error:
        if error.name != ARROW:
            raise
        return None
