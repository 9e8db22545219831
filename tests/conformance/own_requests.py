"""Requests to the node `$management`, as the working draft AMQP Management describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from broker.amqp.terminus import Target
from broker.amqp.types import Map

from .exchange import granted, number, properties
from .messages import section, sections
from .session import Receiver, Sender, Session
from .steps import must
from .verdict import Failed, Kind, NotApplicable

MANAGEMENT: Final = "$management"

APPLICATION_PROPERTIES: Final = 0x74
VALUE: Final = 0x77

OK: Final = 200


@dataclass(frozen=True)
class Response:
    """The status of a request, and the map of its response."""

    status: int
    body: Map

    def number(self, name: str) -> int:
        """Return a number of the response; raise Failed if it has none of that name."""
        return number(self.body.get(name))


class Requests:
    """The links of a client that sends requests, and its responses."""

    def __init__(self, sender: Sender, receiver: Receiver, reply_to: str) -> None:
        self._sender: Final = sender
        self._receiver: Final = receiver
        self._reply_to: Final = reply_to

    async def ask(self, operation: str, kind: str, name: str, **arguments: object) -> Response:
        """Return the response to a request for an operation on the entity of a kind and name."""
        await self._sender.credit()
        about = {"operation": operation, "type": kind, "name": name}
        self._sender.transfer(
            properties(reply_to=self._reply_to)
            + section(APPLICATION_PROPERTIES, about)
            + section(VALUE, arguments),
            settled=True,
        )
        self._receiver.grant(1)
        came = await self._receiver.receive()
        self._receiver.settle(came)
        found = dict(sections(came.payload))
        said, body = found.get(APPLICATION_PROPERTIES), found.get(VALUE)
        must(isinstance(said, Map), "application properties", said)
        assert isinstance(said, Map)
        status = number(said.get("statusCode"))
        return Response(status, body if isinstance(body, Map) else Map([]))

    async def done(self, operation: str, kind: str, name: str, **arguments: object) -> Response:
        """Like `ask`, for a request that must be done."""
        response = await self.ask(operation, kind, name, **arguments)
        must(response.status == OK, f"{operation} of the {kind} done (200)", response)
        return response

    async def first(self, operation: str, kind: str, name: str, **arguments: object) -> Response:
        """Like `done`; raise NotApplicable if the broker has no entities of that kind."""
        try:
            response = await self.ask(operation, kind, name, **arguments)
        except Failed as failed:
            if failed.is_silence:
                raise NotApplicable(f"{MANAGEMENT} answers no request", Kind.NOT_OFFERED) from None
            raise
        if response.status != OK:
            raise NotApplicable(
                f"{MANAGEMENT} answers {operation} of a {kind} with {response.status}",
                Kind.NOT_OFFERED,
            )
        return response


async def requests(session: Session) -> Requests:
    """Return links for requests; raise NotApplicable if the broker has no node for them."""
    reply_to = session.peer.name("responses")
    sender = session.new_sender(MANAGEMENT, name=session.peer.name("requests"))
    if await granted(sender) is None:
        raise NotApplicable(f"the broker has no {MANAGEMENT}", Kind.NOT_OFFERED)
    receiver = session.new_receiver(MANAGEMENT, name=reply_to, target=Target(address=reply_to))
    if await granted(receiver) is None:
        raise NotApplicable(f"nobody receives from {MANAGEMENT}", Kind.NOT_OFFERED)
    return Requests(sender, receiver, reply_to)
