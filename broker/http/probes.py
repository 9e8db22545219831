"""Probes of service managers: is the process alive, has it started, does it serve clients?

They need no user, and tell nothing of what the broker holds.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from broker.http.site import Site
from broker.management.request import BUSY

PROBES: Final = ("/livez", "/readyz", "/startupz", "/leaderz")

NO_STORE: Final = {"cache-control": "no-store"}


class Probes:
    """The handlers of the probes."""

    def __init__(self, site: Site) -> None:
        self._site: Final = site

    def routes(self) -> list[Route]:
        """Return the routes of the probes."""
        handlers = (self._alive, self._ready, self._started, self._leads)
        return [Route(path, handler) for path, handler in zip(PROBES, handlers, strict=True)]

    async def _alive(self, request: Request) -> Response:  # noqa: ARG002 - as starlette calls it
        """Respond `ok`: the event loop runs. Says nothing about the store."""
        return _answer([])

    async def _ready(self, request: Request) -> Response:  # noqa: ARG002
        """Respond `ok` if all listeners are up, the store is there, and the broker is to stay."""
        return _answer(self._site.obstacles())

    async def _started(self, request: Request) -> Response:  # noqa: ARG002
        """Respond `ok` once the start is complete, whatever happens afterwards."""
        return _answer([] if self._site.has_started() else ["the broker is starting"])

    async def _leads(self, request: Request) -> Response:  # noqa: ARG002
        """Respond `ok` if no other broker of a group leads; without a group the broker does."""
        group = self._site.container.group
        return _answer([] if group is None or group.leads else ["standby"])


def _answer(obstacles: list[str]) -> Response:
    text = "".join(f"{each}\n" for each in obstacles or ["ok"])
    return PlainTextResponse(text, status_code=BUSY if obstacles else 200, headers=NO_STORE)
