"""The answers that are Arrow streams: messages, leased messages, rows of the event log.

`LazyArrow` is what the rest of the server uses: pyarrow is an extra of its own, and takes 46 MiB of
memory, which a broker without such streams does not spend.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, final

from starlette.responses import Response

from broker.http.streams import Check, Streams
from broker.links.container import Container
from broker.management.request import NOT_IMPLEMENTED, Refused
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
    """Makes the streams of one broker. pyarrow has been imported."""

    def __init__(self, container: Container, store: Store, streams: Streams) -> None:
        from broker.http import arrow_streams, events, messages

        self._store: Final = store
        self._streams: Final = streams
        self._stream: Final = arrow_streams.ArrowStream
        self._events: Final = events
        self._schema: Final = messages.SCHEMA
        self._reading: Final[Reading] = messages.Reading(container)

    def events(self, *, behind: int, until: int, address: str, kind: str, check: Check) -> Response:
        """Return the rows of the event log that `events.batches` reads."""
        batches = self._events.batches(
            self._store, behind=behind, until=until, address=address, kind=kind
        )
        return self._stream(self._streams, self._events.SCHEMA, batches, check=check)

    def held(self, entries: list[QueueEntry], *, check: Check) -> Response:
        """Return the leased messages of `entries`."""
        return self._stream(self._streams, self._schema, self._reading.held(entries), check=check)

    def browse(
        self, queue: Queue, *, part: BrowseSlice, wanted: ConsumerFilter | None, check: Check
    ) -> Response:
        """Return the ready messages of `queue`, restricted to `part` and `wanted`."""
        batches = self._reading.browse(queue, part=part, wanted=wanted)
        return self._stream(self._streams, self._schema, batches, check=check)


@final
class LazyArrow:
    """Imports pyarrow when the first stream is requested."""

    def __init__(self, container: Container, store: Store, streams: Streams) -> None:
        self._parts: Final = (container, store, streams)
        self._is_installed: Final = find_spec(ARROW) is not None
        self._importing: Final = asyncio.Lock()
        self._answers: ArrowAnswers | None = None

    def check(self) -> None:
        """Raise Refused if pyarrow is not installed."""
        if not self._is_installed:
            raise Refused(NOT_IMPLEMENTED, NO_ARROW)

    async def answers(self) -> ArrowAnswers:
        """Return what makes streams. The first call imports pyarrow, in a thread."""
        async with self._importing:
            if self._answers is None:
                # 0.2 s, in which the event loop has its turns, all but one within some milliseconds
                await asyncio.to_thread(import_module, f"{ARROW}.compute")
                self._answers = ArrowAnswers(*self._parts)
        return self._answers
