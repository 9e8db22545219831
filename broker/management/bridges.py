"""Bridges to other brokers: list, show, pause and resume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.links.bridge_status import BridgeStatus
from broker.links.container import Container
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import NOT_FOUND, Refused, Request
from broker.management.response import Response

BRIDGE: Final = "bridge"


@dataclass(frozen=True, kw_only=True)
class BridgeRecord(EntityRecord):
    """A bridge. `state` is connecting, running, blocked, waiting or paused since `since_ms`.

    `source` and `target` are the addresses, `error` is why it waits, null if it does not.
    `delivery` is exactly-once or at-least-once, null before its first connection. `moved` messages,
    of `moved_bytes` bytes, are at the other broker and settled here, in `batches`. `held` are
    leased. `refused` became dead letters, `looped` were dropped. Times are ms since 1970.
    """

    source: str
    target: str
    url: str
    keep: str
    state: str
    since_ms: int
    error: str | None
    lease: str
    delivery: str | None
    held: int
    moved: int
    moved_bytes: int
    batches: int
    refused: int
    looped: int
    connects: int
    failures: int


def record_of(status: BridgeStatus) -> BridgeRecord:
    """Return the attributes of a bridge."""
    return BridgeRecord(
        name=status.name,
        identity=status.name,
        type=BRIDGE,
        source=status.source,
        target=status.target,
        url=status.url,
        keep=status.keep,
        state=status.state,
        since_ms=int(status.since_ms),
        error=status.error or None,
        lease=status.lease,
        delivery=status.delivery or None,
        held=int(status.held),
        moved=int(status.moved),
        moved_bytes=int(status.moved_bytes),
        batches=int(status.batches),
        refused=int(status.refused),
        looped=int(status.looped),
        connects=int(status.connects),
        failures=int(status.failures),
    )


class BridgeEntity(Entity):
    """All bridges of the settings."""

    type = BRIDGE
    part = "bridges"
    attributes = attributes_of(BridgeRecord)

    def __init__(self, container: Container) -> None:
        self._bridges: Final = container.bridges

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read, "PAUSE": self._pause, "RESUME": self._resume}

    def query(self, request: Request) -> Response:
        page = read_page(request, self.attributes)
        bridges = self._bridges
        return page.response(record_of(bridges[name]).as_map() for name in page.choose(bridges))

    def listed(self, request: Request) -> Later:
        listing = Listing(
            items=list(self._bridges.values()),
            names_of=lambda status: (status.name, status.name),
            record_of=record_of,
        )
        return list_of(request, self.attributes, listing)

    def _found(self, request: Request) -> BridgeStatus:
        request.only()
        status = self._bridges.get(request.subject())
        if status is None:
            raise Refused(NOT_FOUND, f"no bridge {request.subject()}")
        return status

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        return Response(body=record_of(self._found(request)).as_map())

    def _pause(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Take no more messages until RESUME, or the next start of the broker."""
        self._found(request).control.pause()
        return Response()

    def _resume(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Take messages again; a bridge that waits tries again at once."""
        self._found(request).control.resume()
        return Response()
