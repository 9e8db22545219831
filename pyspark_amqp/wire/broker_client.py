"""Requests to the broker's `$management`, from a driver or an executor."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast, final

from proton import Message, int32

from pyspark_amqp.errors import (
    BrokerError,
    DeniedError,
    GoneError,
    NoManagementError,
    TransientError,
    error_of,
)
from pyspark_amqp.options import Options
from pyspark_amqp.wire.connection import Connection, connect
from pyspark_amqp.wire.consuming import Consumer
from pyspark_amqp.wire.patience import Patience
from pyspark_amqp.wire.publishing import Publisher

MANAGEMENT: Final = "$management"

FAILURES_FROM: Final = 400


@final
class Management:
    """The client of a broker's `$management`.

    It makes a lost connection anew and repeats the request for the time of the option amqp.timeout,
    so requests must be idempotent.
    """

    def __init__(self, options: Options) -> None:
        self._options: Final = options
        self._timeout_s: Final = options.number("amqp.timeout") / 1000
        self._links: _Links | None = None

    def ask(
        self,
        operation: str,
        entity: str,
        name: str | None,
        /,
        *,
        properties: Mapping[str, object] | None = None,
        patience_ms: int = 0,
        **arguments: object,
    ) -> Mapping[str, object]:
        """Send a request and return the body of the response.

        The broker may take `patience_ms` longer than the option amqp.timeout. Arguments that are
        None are left out. Raise BrokerError if the broker refuses the request, TransientError if it
        cannot be reached.
        """
        given = {key: value for key, value in arguments.items() if value is not None}
        asked = {"operation": operation, "type": entity, **(properties or {})}
        if name is not None:
            asked["name"] = name
        patience = Patience(self._options)
        while True:
            try:
                return _checked(asked, self._answer(asked, given, patience_ms))
            except TransientError as error:
                patience.pause(error)

    def _answer(
        self, asked: Mapping[str, object], given: Mapping[str, object], patience_ms: int
    ) -> Message:
        """Return the response to one attempt; without a response, close the connection."""
        try:
            limit_s = self._timeout_s + patience_ms / 1000
            return self._linked().answer(asked, given, timeout_s=limit_s)
        except BrokerError:
            self.close()
            raise

    def _linked(self) -> _Links:
        if self._links is None:
            connection = connect(self._options)
            try:
                self._links = _Links(connection)
            except (TransientError, DeniedError):
                connection.close()
                raise
            except BrokerError as error:
                connection.close()
                raise NoManagementError(str(error)) from error
        return self._links

    def knows(self, entity: str, name: str) -> bool:
        """Return whether the broker has the entity, and tells this user about it."""
        try:
            self.ask("READ", entity, name)
        except (GoneError, DeniedError):
            return False
        return True

    def entities(self, entity: str, count: int = 100) -> Mapping[str, object]:
        """Return the first entities of a kind; raise BrokerError if the broker lacks the kind."""
        return self.ask(
            "QUERY",
            "org.amqp.management",
            "self",
            properties={"entityType": entity, "offset": int32(0), "count": int32(count)},
        )

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        links, self._links = self._links, None
        if links is not None:
            links.connection.close()


@contextmanager
def opened(options: Options) -> Iterator[Management]:
    """Open a `Management` for the block."""
    management = Management(options)
    try:
        yield management
    finally:
        management.close()


@final
class _Links:
    """The two links for requests and responses on one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection: Final = connection
        self._reply_to: Final = f"reply-{uuid.uuid4()}"
        self._requests: Final = Publisher(connection, MANAGEMENT)
        link = connection.receiver(MANAGEMENT)
        # our end of the link has an address, which requests name as their reply-to
        link.target.address = self._reply_to
        self._responses: Final = Consumer(connection, link)

    def answer(
        self, asked: Mapping[str, object], given: Mapping[str, object], *, timeout_s: float
    ) -> Message:
        request = Message(properties=dict(asked), body=dict(given), reply_to=self._reply_to)
        self._responses.link.flow(1)
        self._requests.send(request.encode())
        self._requests.flush()
        self.connection.wait(self._responses.has_some, "an answer", timeout_s)
        response = Message()
        response.decode(self._responses.take()[0])
        return response


def _checked(asked: Mapping[str, object], response: Message) -> Mapping[str, object]:
    told = cast("Mapping[str, object]", response.properties)
    status = told.get("statusCode")
    if not isinstance(status, int) or status >= FAILURES_FROM:
        text = f"{asked['operation']} {asked['type']}: {told.get('statusDescription', 'no status')}"
        raise error_of(status if isinstance(status, int) else 0, text)
    body = response.body
    return body if isinstance(body, dict) else {}


def pages(
    management: Management, entity: str, /, *, count: int, behind: int = 0, **arguments: Any
) -> Iterator[tuple[Sequence[str], Sequence[Sequence[object]], Mapping[str, object]]]:
    """Yield the pages of a kind of entities behind `behind`: names, rows, and the whole response.

    End when the broker says that the pages are complete.
    """
    while True:
        body = management.ask(
            "QUERY",
            "org.amqp.management",
            "self",
            properties={"entityType": entity, "offset": int32(0), "count": int32(count)},
            behind=behind,
            **arguments,
        )
        names = cast("Sequence[str]", body["attributeNames"])
        yield names, cast("Sequence[Sequence[object]]", body["results"]), body
        if body.get("complete"):
            return
        behind = cast("int", body["next"])
