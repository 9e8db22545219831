"""Requests to `$management` with python-qpid-proton: one connection, one request at a time."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, cast
from urllib.parse import quote, urlunsplit

from proton import ConnectionException, Link, Message, int32
from proton.reactor import LinkOption
from proton.utils import BlockingConnection, SendException

from broker.cli.broker_url import split_url
from broker.cli.client import ClientError, connected
from broker.cli.client_tls import ClientTls
from broker.cli.ending import EXIT_FAILURE, EXIT_FORBIDDEN, EXIT_NOT_FOUND

MANAGEMENT: Final = "$management"
PAGE: Final = 500

FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
GONE: Final = 410
FAILURES_FROM: Final = 400
STATUSES: Final = {
    FORBIDDEN: EXIT_FORBIDDEN,
    NOT_FOUND: EXIT_NOT_FOUND,
    GONE: EXIT_NOT_FOUND,
}

Record = Mapping[str, object]


class RefusalError(ClientError):
    """The broker's refusal of a request; `status` is the status code of its response."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description, STATUSES.get(status, EXIT_FAILURE))
        self.status: Final = status


class TargetAddress(LinkOption):
    """A link option that sets the address of our receiving end, the reply-to of requests."""

    def __init__(self, address: str) -> None:
        self._address: Final = address

    def apply(self, link: Link) -> None:
        link.target.address = self._address


class Requests:
    """The client of a broker's `$management` on one connection."""

    def __init__(self, connection: BlockingConnection) -> None:
        self._reply_to: Final = f"reply-{uuid.uuid4()}"
        self._sender: Final = connection.create_sender(MANAGEMENT)
        self._receiver: Final = connection.create_receiver(
            MANAGEMENT, credit=1, options=TargetAddress(self._reply_to)
        )

    def ask(
        self,
        operation: str,
        kind: str,
        name: str | None = None,
        *,
        properties: Mapping[str, object] | None = None,
        more: Mapping[str, object] | None = None,
        exact: Mapping[str, object] | None = None,
        **arguments: object,
    ) -> Record:
        """Send a request and return the body of its response.

        `more` are further arguments. Arguments that are None or False are left out, except those of
        `exact`, which are sent as they are. Raise RefusalError if the broker refuses the request.
        """
        asked: dict[str, object] = {"operation": operation, "type": kind, **(properties or {})}
        if name is not None:
            asked["name"] = name
        given = {
            name: value
            for name, value in {**arguments, **(more or {})}.items()
            if value is not None and value is not False
        }
        given.update(exact or {})
        request = Message(properties=asked, body=given, reply_to=self._reply_to)
        try:
            self._sender.send(request)
        except SendException as error:
            raise ClientError(f"the broker did not take the request: {error}") from None
        response = self._receiver.receive()
        self._receiver.accept()
        told = cast("Record", response.properties)
        status = told.get("statusCode")
        if not isinstance(status, int) or status >= FAILURES_FROM:
            code = status if isinstance(status, int) else FAILURES_FROM
            raise RefusalError(code, str(told.get("statusDescription", "no status")))
        body = response.body
        return body if isinstance(body, dict) else {"": body}

    def records(
        self, kind: str, *, limit: int | None = None, **arguments: object
    ) -> Iterator[Record]:
        """Yield all entities of a kind, up to `limit`, page by page.

        One that is added or removed meanwhile may be missed.
        """
        offset = 0
        while limit is None or offset < limit:
            count = PAGE if limit is None else min(PAGE, limit - offset)
            page = self.page(kind, offset=offset, count=count, **arguments)
            yield from page
            offset += len(page)
            if len(page) < count:
                return

    def page(self, kind: str, *, offset: int, count: int, **arguments: object) -> list[Record]:
        """Return up to `count` entities of a kind, from number `offset` on."""
        found, _ = self.part(kind, offset=offset, count=count, more=arguments)
        return found

    def part(
        self,
        kind: str,
        *,
        offset: int = 0,
        count: int,
        more: Mapping[str, object] | None = None,
        **arguments: object,
    ) -> tuple[list[Record], object]:
        """Return entities as `page` does, and the one to continue after, None if not reported."""
        body = self.ask(
            "QUERY",
            "org.amqp.management",
            "self",
            properties={"entityType": kind, "offset": int32(offset), "count": int32(count)},
            more={**arguments, **(more or {})},
        )
        names, rows = body["attributeNames"], body["results"]
        assert isinstance(names, Sequence)
        assert isinstance(rows, Sequence)
        return [dict(zip(names, row, strict=True)) for row in rows], body.get("next")

    def find(self, kind: str, name: str) -> Record | None:
        """Return the entity of that name, None if there is none."""
        try:
            return self.ask("READ", kind, name)
        except RefusalError as refusal:
            if refusal.status == NOT_FOUND:
                return None
            raise

    def connection_has_ended(self) -> bool:
        """Ask the broker for its state; return whether the connection has ended instead."""
        try:
            self.ask("READ", "broker", "broker")
        except ConnectionException:
            return True
        return False


@contextmanager
def managed(url: str, timeout_s: float, *, tls: ClientTls | None = None) -> Iterator[Requests]:
    """Connect to the `$management` of the broker at `url` for the block."""
    with connected(url, timeout_s, tls=tls) as connection:
        yield Requests(connection)


def with_user(url: str, user: str | None, password: str | None) -> str:
    """Return `url` with that user and password in place of its own; unchanged if `user` is None."""
    if user is None:
        return url
    parts = split_url(url)
    place = parts.netloc.rpartition("@")[2]
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password is not None else "")
    return urlunsplit(parts._replace(netloc=f"{login}@{place}"))
