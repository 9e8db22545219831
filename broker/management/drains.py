"""The drain of the broker as a type of management."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.links.container import Container
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.page import read_page
from broker.management.request import CONFLICT, Refused, Request
from broker.management.response import ACCEPTED, Response
from broker.process_identity import process_identity

DRAIN: Final = "drain"


@dataclass(frozen=True, kw_only=True)
class DrainRecord(EntityRecord):
    """The drain. `state` is its phase: serving, announced, finishing or over."""

    state: str
    connections: int
    links: int


class DrainEntity(Entity):
    """The drain: there is one entity, `drain`."""

    type = DRAIN
    part = "config"
    attributes = attributes_of(DrainRecord)

    def __init__(self, container: Container) -> None:
        self._container: Final = container

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read, "DRAIN": self._drain}

    def query(self, request: Request) -> Response:
        page = read_page(request, self.attributes)
        return page.response(self._record().as_map() for _ in page.choose([DRAIN]))

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        return Response(body=self._record().as_map())

    def _drain(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Begin to drain the broker, which then stops; or announce that, with `announce_only`.

        The response has the times of the drain, `announce_ms` and `timeout_ms`, and `process`, by
        which a program on the same machine can wait for the end of the broker.
        """
        request.only("announce_only")
        drain = self._container.drain
        owner = drain.owner
        if owner is None:
            raise Refused(CONFLICT, "this broker is part of a program, which stops it: not drained")
        drain.begin(owner, announce_only=request.flag("announce_only"))
        body = {
            "announce_ms": int(owner.announce_ms()),
            "timeout_ms": int(owner.finish_ms()),
            "process": process_identity(os.getpid()),
        }
        return Response(status=ACCEPTED, description="Accepted", body=body)

    def _record(self) -> DrainRecord:
        container = self._container
        return DrainRecord(
            name=DRAIN,
            identity=DRAIN,
            type=DRAIN,
            state=container.drain.phase().value,
            connections=container.peer_count(),
            links=container.link_count(),
        )
