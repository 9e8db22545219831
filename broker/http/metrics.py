"""The pages `/metrics` and `/metrics/detailed`, in the text format of Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Final, final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from broker.http import broker_values
from broker.http.access import Visitor
from broker.http.arguments import Arguments
from broker.http.broker_totals import BrokerTotals
from broker.http.connection import CONNECTION, HttpConnection
from broker.http.loop_lag import LoopLag
from broker.http.metric_table import BROKER, HISTOGRAM
from broker.http.metric_text import MEDIA_TYPE, histogram, samples
from broker.http.node_metrics import FAMILIES, LIMIT, LIMIT_MAX, NodeMetrics, NodeSelection
from broker.http.stretches import Stretches
from broker.management.entity import VIEW
from broker.management.request import BAD_REQUEST, Refused
from broker.security.resources import MANAGEMENT, Resource

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from broker.http.site import Handler, Work
    from broker.http.streams import Streams
    from broker.links.container import Container
    from storage.api import Store

METRICS: Final = Resource(MANAGEMENT, "metrics")


class Metrics:
    """The handlers of both pages; each needs the right to view `management:metrics`."""

    def __init__(
        self,
        container: Container,
        store: Store,
        streams: Streams,
        *,
        loop_lag: LoopLag | None = None,
        stretches: Stretches | None = None,
    ) -> None:
        self._container: Final = container
        self._store: Final = store
        self._streams: Final = streams
        self._stretches: Final = Stretches() if stretches is None else stretches
        self._started_s: Final = broker_values.wall_s()
        self.loop_lag: Final = LoopLag() if loop_lag is None else loop_lag

    def routes(self, guarded: Callable[[Work], Handler]) -> list[Route]:
        """Return the routes of both pages."""
        pages = {"/metrics": self.page, "/metrics/detailed": self.detailed}
        return [Route(path, guarded(page)) for path, page in pages.items()]

    async def page(self, request: Request, visitor: Visitor) -> Response:
        """Respond with the metrics of the whole broker."""
        visitor.demand(VIEW, METRICS)
        Arguments(request.query_params.multi_items())
        return Response(await self.text(), media_type=MEDIA_TYPE)

    async def detailed(self, request: Request, visitor: Visitor) -> Response:
        """Respond with metrics of single nodes."""
        visitor.demand(VIEW, METRICS)
        asked = Arguments(request.query_params.multi_items(), "family", "match", "limit")
        wanted = NodeSelection(
            _families(asked.text("family", "")),
            asked.text("match", ""),
            asked.number("limit", LIMIT, low=1, high=LIMIT_MAX),
        )
        return TextStream(self._streams, self.pieces(wanted))

    async def text(self) -> str:
        """Return the page of the whole broker."""
        container, stats = self._container, self._container.stats
        totals = BrokerTotals(container)
        await totals.sum_up(self._stretches)
        values = {
            **broker_values.counters(stats),
            **broker_values.listeners(stats, broker_values.wall_s()),
            **broker_values.gauges(totals, container),
            **broker_values.machine(container, self._store, self._started_s),
        }
        counted = broker_values.histograms(stats, self.loop_lag)
        return "".join(
            histogram(metric, *counted[metric.name])
            if metric.type == HISTOGRAM
            else samples(metric, values[metric.name].items())
            for metric in BROKER
        )

    def pieces(self, wanted: NodeSelection) -> AsyncGenerator[bytes, None]:
        """Yield the page of single nodes, piece by piece."""
        return NodeMetrics(self._container, self._stretches).pieces(wanted)


def _families(text: str) -> list[str]:
    """Return the families of an argument, separated by commas; Refused if one is unknown."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in FAMILIES:
            raise Refused(BAD_REQUEST, f"no family {name:.50}; known are {', '.join(FAMILIES)}")
    return names


@final
class TextStream(Response):
    """A response that is sent as fast as the client reads it. It counts as one of the streams."""

    def __init__(self, streams: Streams, pieces: AsyncGenerator[bytes, None]) -> None:
        super().__init__(status_code=200, media_type=MEDIA_TYPE)
        del self.headers["content-length"]
        self._streams: Final = streams
        self._pieces: Final = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.begin()
        disconnected = asyncio.get_running_loop().create_task(_gone(receive))
        try:
            start: Message = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **start})
            if scope["method"] == "HEAD" or await self._send_all(disconnected, send):
                await send(_body(b"", more=False))
        except Exception:
            connection: HttpConnection = scope["state"][CONNECTION]
            connection.break_off()
            raise
        finally:
            disconnected.cancel()
            await self._pieces.aclose()
            self._streams.end()

    async def _send_all(self, disconnected: asyncio.Task[None], send: Send) -> bool:
        """Send all pieces. Return False if the client disconnected before the end."""
        async for piece in self._pieces:
            if disconnected.done():
                return False
            await send(_body(piece, more=True))
        return True


def _body(data: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _gone(receive: Receive) -> None:
    """Return when the client has closed the connection, or the response is complete."""
    while (await receive())["type"] != "http.disconnect":
        pass
