"""Sources of failed logins: list them, and let one of them log in again at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from broker.clock import Clock
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import NOT_FOUND, Refused, Request
from broker.management.response import NO_CONTENT, Response
from broker.security.throttle import FailingSource, LoginThrottle

LOGIN_SOURCE: Final = "login-source"


@dataclass(frozen=True, kw_only=True)
class LoginSourceRecord(EntityRecord):
    """A source of failed logins; its name is its address, of IPv6 the first 64 bits.

    `failures` are those since the broker's start, `last_at` is the time of the last one in ms since
    1970. In the next `throttled_ms` no login of the source is checked.
    """

    failures: int
    last_at: int
    throttled_ms: int


class LoginSources(Entity):
    """The sources of failed logins. The broker keeps the 10,000 that failed last."""

    type = LOGIN_SOURCE
    part = "users"
    attributes = attributes_of(LoginSourceRecord)

    def __init__(self, throttle: Callable[[], LoginThrottle], clock: Clock) -> None:
        """`throttle` returns what decides about failed logins now."""
        self._throttle: Final = throttle
        self._clock: Final = clock

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read, "DELETE": self._delete}

    def query(self, request: Request) -> Response:
        """Return a page of sources, by address."""
        page = read_page(request, self.attributes)
        sources = self._throttle().sources
        return page.response(
            self._record(name, sources[name]).as_map() for name in page.choose(sources)
        )

    def listed(self, request: Request) -> Later:
        sources = self._throttle().sources

        def record_of(name: str) -> LoginSourceRecord | None:
            found = sources.get(name)
            return None if found is None else self._record(name, found)

        listing = Listing(
            items=list(sources), names_of=lambda name: (name, name), record_of=record_of
        )
        return list_of(request, self.attributes, listing)

    def _record(self, name: str, source: FailingSource) -> LoginSourceRecord:
        now_ms = int(self._clock.now_ms())
        return LoginSourceRecord(
            name=name,
            identity=name,
            type=LOGIN_SOURCE,
            failures=source.failures,
            last_at=int(self._clock.wall_ms()) - (now_ms - source.last_ms),
            throttled_ms=max(0, source.allowed_at() - now_ms),
        )

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        name = request.subject()
        found = self._throttle().sources.get(name)
        if found is None:
            raise _unknown(name)
        return Response(body=self._record(name, found).as_map())

    def _delete(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Forget the failed logins of a source: its next login is checked at once."""
        request.only()
        if not self._throttle().forget(request.subject()):
            raise _unknown(request.subject())
        return Response(status=NO_CONTENT, description="No Content")


def _unknown(name: str) -> Refused:
    return Refused(NOT_FOUND, f"no login from {name:.50} has failed")
