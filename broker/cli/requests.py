"""Requests to `$management`: one connection, one request at a time, by python-qpid-proton."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, cast
from urllib.parse import quote, urlunsplit

from proton import Link, Message, int32
from proton.reactor import LinkOption
from proton.utils import BlockingConnection, SendException

from broker.cli.broker_url import split_url
from broker.cli.client import ClientError, connected
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
    """The broker has answered that it does not do as asked; `status` is its code for why."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description, STATUSES.get(status, EXIT_FAILURE))
        self.status: Final = status


class TargetAddress(LinkOption):
    """Names our end of a link to receive on: where requests say that responses go."""

    def __init__(self, address: str) -> None:
        self._address: Final = address

    def apply(self, link: Link) -> None:
        link.target.address = self._address


class Requests:
    """What a connection asks of the broker it leads to."""

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
        """The body of the response; RefusalError where the broker refuses.

        `more` are arguments, too. Those that are None or false are left out, but for `exact`
        ones, which are sent as they are.
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
        """All entities of a kind, page by page; what changes meanwhile may be missed."""
        offset = 0
        while limit is None or offset < limit:
            count = PAGE if limit is None else min(PAGE, limit - offset)
            page = self.page(kind, offset=offset, count=count, **arguments)
            yield from page
            offset += len(page)
            if len(page) < count:
                return

    def page(self, kind: str, *, offset: int, count: int, **arguments: object) -> list[Record]:
        """`count` entities of a kind from `offset` on."""
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
        """As `page`, and behind which entity to go on, where the broker says so."""
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
        """The entity of that name, or None."""
        try:
            return self.ask("READ", kind, name)
        except RefusalError as refusal:
            if refusal.status == NOT_FOUND:
                return None
            raise


@contextmanager
def managed(url: str, timeout_s: float) -> Iterator[Requests]:
    """A connection to the `$management` of the broker at `url`."""
    with connected(url, timeout_s) as connection:
        yield Requests(connection)


def with_user(url: str, user: str | None, password: str | None) -> str:
    """`url` with that user and password in place of its own."""
    if user is None:
        return url
    parts = split_url(url)
    place = parts.netloc.rpartition("@")[2]
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password is not None else "")
    return urlunsplit(parts._replace(netloc=f"{login}@{place}"))
