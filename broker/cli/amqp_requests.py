"""Requests to `$management` with python-qpid-proton: one connection, one request at a time."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, cast

from proton import ConnectionException, Link, Message, Timeout, int32
from proton.reactor import LinkOption
from proton.utils import BlockingConnection, SendException

from broker.cli.ending import ClientError
from broker.cli.requests import FAILURES_FROM, RefusalError, Requests
from broker.compiled import BUILD

MANAGEMENT: Final = "$management"


class TargetAddress(LinkOption):
    """A link option that sets the address of our receiving end, the reply-to of requests."""

    def __init__(self, address: str) -> None:
        self._address: Final = address

    def apply(self, link: Link) -> None:
        link.target.address = self._address


class AmqpRequests(Requests):
    """The client of a broker's `$management` on one connection."""

    def __init__(self, connection: BlockingConnection) -> None:
        self._connection: Final = connection
        self._reply_to: Final = f"reply-{uuid.uuid4()}"
        self._sender: Final = connection.create_sender(MANAGEMENT)
        self._receiver: Final = connection.create_receiver(
            MANAGEMENT, credit=1, options=TargetAddress(self._reply_to)
        )

    def send(self, asked: Mapping[str, object], arguments: Mapping[str, object]) -> object:
        numbers = {name: int32(each) for name, each in asked.items() if isinstance(each, int)}
        request = Message(
            properties={**asked, **numbers}, body=dict(arguments), reply_to=self._reply_to
        )
        try:
            self._sender.send(request)
        except SendException as error:
            raise ClientError(f"the broker did not take the request: {error}") from None
        response = self._receiver.receive()
        self._receiver.accept()
        told = cast("Mapping[str, object]", response.properties)
        status = told.get("statusCode")
        if not isinstance(status, int) or status >= FAILURES_FROM:
            code = status if isinstance(status, int) else FAILURES_FROM
            raise RefusalError(code, str(told.get("statusDescription", "no status")))
        return response.body

    def build(self) -> str:
        assert self._connection.conn is not None, "the connection is open"
        return str((self._connection.conn.remote_properties or {}).get(BUILD, ""))

    def pause(self, seconds: float) -> None:
        # the wait sends heartbeats, and raises an error if the broker ends the connection
        with suppress(Timeout):
            self._connection.wait(lambda: False, timeout=seconds)

    def connection_has_ended(self) -> bool:
        try:
            self.ask("READ", "broker", "broker")
        except RefusalError:  # the user may drain the broker, and not view its metrics
            return False
        except ConnectionException:
            return True
        return False
