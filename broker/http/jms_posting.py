"""Posts messages over HTTP, and waits for the commit, and for a reply if one is wanted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from broker.http.jms_fields import JmsFields
from broker.http.jms_message import encoded, received
from broker.http.jms_problems import NO_REPLY, JmsProblem
from broker.http.jms_rounds import record_changes, run_round
from broker.http.jms_sending import message_response
from broker.http.jms_waiting import Committed, Waiting, arrival, demand_login, watched
from broker.http.soap_jms import SoapCall, complete, is_soap, plain
from broker.jms.destinations import Destination, DestinationType
from broker.jms.mapping import encode
from broker.jms.message import JmsMessage
from broker.jms.sending import stamp
from broker.jms.soap import soap_message
from broker.links.container import Container
from broker.links.linkless import LinklessClient
from broker.links.posting import (
    Posted,
    PostingTarget,
    end_reply_queue,
    post,
    posting_target,
    reply_queue,
)
from broker.links.receipts import SingleConsumer
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.node import TOPIC
from broker.routing.queues.queue import Queue

CREATED: Final = 201
ACCEPTED: Final = 202


@dataclass(frozen=True, kw_only=True)
class PostRequest:
    """A message to send. `wait_s` are the seconds to wait for a reply, None for no reply."""

    call: SoapCall
    fields: JmsFields
    body: bytes
    wait_s: int | None


class Posting:
    """Posts messages of all clients; `waiting` counts those that wait for replies."""

    def __init__(self, container: Container, waiting: Waiting) -> None:
        self._container: Final = container
        self._waiting: Final = waiting

    async def send(self, client: LinklessClient, asked: PostRequest, request: Request) -> Response:
        """Send a message, and return the response: 201, 202, or the reply.

        Raise one of the EXPECTED errors if it is refused, or no reply has come.
        """
        message = message_of(asked)
        if asked.wait_s is None:
            posted, target = self._post(client, asked.call, message)
            await self._durable(client, posted)
            return _taken(message, posted, target)
        with self._waiting.one(client.identity.user):
            return await self._exchange(client, asked, message, request=request)

    def _post(
        self, client: LinklessClient, call: SoapCall, message: JmsMessage
    ) -> tuple[Posted, PostingTarget]:
        target = posting_target(client, call.name, call.kind)
        record_changes(self._container, client)
        type_ = DestinationType.TOPIC if call.kind == TOPIC else DestinationType.QUEUE
        stamp(
            message,
            now_ms=int(self._container.clock.wall_ms()),
            message_id=f"ID:{uuid4()}",
            destination=Destination(target.address.text, type_),
        )
        posted = post(client, target, encode(message))
        return posted, target

    async def _durable(self, client: LinklessClient, posted: Posted) -> None:
        """Run a round of work, and wait until the message is committed if it is durable."""
        committed = Committed(self._container.journal) if posted.durable else None
        run_round(self._container, client)
        if committed is not None:
            await committed.wait()

    async def _exchange(
        self, client: LinklessClient, asked: PostRequest, message: JmsMessage, *, request: Request
    ) -> Response:
        happened = asyncio.Event()
        queue = reply_queue(client)
        consumer = SingleConsumer(client, queue, happened.set)
        try:
            consumer.begin(drain=False)
            message.reply_to = Destination(queue.address, DestinationType.TEMPORARY_QUEUE)
            posted, _ = self._post(client, asked.call, message)
            async with watched(request) as gone:
                await self._durable(client, posted)
                await arrival(happened, gone, asked.wait_s or 0)
            demand_login(client)
            return self._reply(consumer, queue, message)
        finally:
            consumer.settle(Disposal.REMOVE)
            end_reply_queue(client, queue)
            run_round(self._container, client)

    def _reply(self, consumer: SingleConsumer, queue: Queue, message: JmsMessage) -> Response:
        message_id = message.message_id or ""
        if consumer.entry is None:
            raise JmsProblem(
                NO_REPLY,
                "no-reply",
                "no reply has come in time; the request stays sent",
                headers={"JMSMessageID": message_id},
            )
        consumed = Destination(queue.address, DestinationType.TEMPORARY_QUEUE)
        reply = received(consumer.entry, consumed, self._container.clock)
        return message_response(reply, self._container, {"JMS-Request-MessageID": message_id})


def message_of(asked: PostRequest) -> JmsMessage:
    """Return the message of a request; raise an EXPECTED error if it is not allowed."""
    if is_soap(asked.call, asked.fields):
        properties = complete(asked.call, asked.fields, asked.body)
    else:
        properties = plain(asked.fields)
    return soap_message(properties, asked.body)


def _taken(message: JmsMessage, posted: Posted, target: PostingTarget) -> Response:
    """Return the response to a message that needs no reply."""
    message_id = encoded(message.message_id or "")
    headers = {"JMSMessageID": message_id}
    if target.node.kind == TOPIC:
        headers["JMS-Matched"] = str(int(posted.matched))
    else:
        selector = quote(f"JMSMessageID = '{message.message_id}'", safe="")
        name = quote(target.address.text, safe="/")
        headers["Location"] = f"/jms/browse/queue/{name}?selector={selector}"
    return Response(status_code=CREATED if posted.durable else ACCEPTED, headers=headers)
