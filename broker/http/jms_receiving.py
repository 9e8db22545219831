"""Receives messages over HTTP: a receipt holds each until its client settles it."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from broker.http.arguments import Arguments
from broker.http.jms_fields import RECEIPT
from broker.http.jms_message import received
from broker.http.jms_problems import JmsProblem
from broker.http.jms_rounds import record_changes, run_round
from broker.http.jms_sending import message_response
from broker.http.jms_waiting import Committed, Waiting, arrival, demand_login, watched
from broker.http.limits import JMS_LOCK_MS, JMS_RECEIPTS_PER_USER_MAX, JMS_WAIT_MAX_S
from broker.jms.destinations import Destination
from broker.links.access import Right
from broker.links.container import Container
from broker.links.linkless import LinklessClient
from broker.links.receipts import Receipts, SingleConsumer, queue_to_receive
from broker.management.request import GONE, NOT_FOUND
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.queue import Queue
from broker.routing.selector import parse_selector

NO_CONTENT: Final = 204

LOADING_S: Final = 10
"""Seconds for which a request that does not wait lets the store load a message."""

CHECK_S: Final = 2.0
"""Seconds between two looks whether a client that waits may still receive: within five seconds of
a change it may not (Z7)."""

ACTIONS: Final = {
    "accept": Disposal.REMOVE,
    "release": Disposal.RELEASE,
    "reject": Disposal.DEAD_LETTER,
}
"""Disposals of a message by the last part of the path; DELETE accepts."""

RENEW: Final = "renew"


class Receiving:
    """Receives messages of all clients; `waiting` counts the requests that wait."""

    def __init__(self, container: Container, waiting: Waiting) -> None:
        self._container: Final = container
        self._waiting: Final = waiting
        self._receipts: Final = Receipts(
            container, per_user=JMS_RECEIPTS_PER_USER_MAX, lock_ms=JMS_LOCK_MS
        )

    async def receive(self, client: LinklessClient, request: Request) -> Response:
        """Return the next message with its receipt, or 204 if none comes in time."""
        asked = Arguments(request.query_params.multi_items(), "wait", "selector")
        wait_s = asked.number("wait", 0, high=JMS_WAIT_MAX_S)
        selector = asked.text("selector", "")
        wanted = ConsumerFilter(parse_selector(selector)) if selector else None
        self._receipts.check_room(client.identity.user)
        queue, right = queue_to_receive(client, request.path_params["name"], copies=False)
        record_changes(self._container, client)
        with self._waiting.one(client.identity.user):
            happened = asyncio.Event()
            taken = SingleConsumer(client, queue, happened.set, wanted=wanted)
            try:
                taken.begin(drain=wait_s == 0)
                run_round(self._container, client)
                seconds = wait_s or LOADING_S
                await _arrival(client, right, happened, request=request, seconds=seconds)
                self._check(client, taken, right)
                if taken.entry is None:
                    return Response(status_code=NO_CONTENT)
                return self._response(client, taken, queue, right=right)
            finally:
                self._end(taken)

    def _check(self, client: LinklessClient, taken: SingleConsumer, right: Right) -> None:
        """Raise JmsProblem or RoutingError if the client may have no message any more.

        Meanwhile the queue was deleted, the client has lost its right, or its user has been given
        as many receipts as it may have.
        """
        if taken.is_deleted:
            raise JmsProblem(GONE, "queue-deleted", "the queue was deleted")
        _demand(client, right)
        self._receipts.check_room(client.identity.user)

    def _response(
        self, client: LinklessClient, taken: SingleConsumer, queue: Queue, *, right: Right
    ) -> Response:
        assert taken.entry is not None
        message = received(taken.entry, Destination(queue.address), self._container.clock)
        receipt = self._receipts.issue(client, taken, right)
        headers = {RECEIPT: receipt.id, "JMS-Receipt-Seconds": str(JMS_LOCK_MS // 1000)}
        return message_response(message, self._container, headers)

    def _end(self, taken: SingleConsumer) -> None:
        """Let a consumer without a receipt go; its message, if any, returns to the queue."""
        if not taken.has_receipt:
            taken.settle(Disposal.RELEASE)
            run_round(self._container, None)

    async def settle(self, client: LinklessClient, request: Request, action: str) -> Response:
        """Settle or renew a receipt; return 204 once that is durable."""
        Arguments(request.query_params.multi_items())
        if action not in ACTIONS and action != RENEW:
            known = ", ".join((*list(ACTIONS)[1:], RENEW))
            raise JmsProblem(NOT_FOUND, "not-found", f"no action {action:.50}; there are {known}")
        receipt = self._receipts.find(client, request.path_params["receipt"])
        if action == RENEW:
            self._receipts.renew(receipt)
            return Response(status_code=NO_CONTENT)
        self._receipts.settle(receipt, ACTIONS[action])
        committed = Committed(self._container.journal)
        run_round(self._container, None)
        await committed.wait()
        return Response(status_code=NO_CONTENT)


async def _arrival(
    client: LinklessClient,
    right: Right,
    happened: asyncio.Event,
    *,
    request: Request,
    seconds: float,
) -> None:
    """Wait until `happened` is set, for at most `seconds`, while the client may receive.

    Raise Disconnected if the client is gone, JmsProblem or NotPermitted if it may not.
    """
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + seconds
    async with watched(request) as gone:
        while True:
            left_s = ends_s - loop.time()
            await arrival(happened, gone, max(min(left_s, CHECK_S), 0.0))
            if happened.is_set() or left_s <= CHECK_S:
                return
            _demand(client, right)


def _demand(client: LinklessClient, right: Right) -> None:
    """Raise JmsProblem if the login has ended, NotPermitted if the client has lost the right."""
    demand_login(client)
    client.demand(right.verb, right.resource)
