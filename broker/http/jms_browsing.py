"""Browses a queue over HTTP: the first ready messages as JSON; none is taken."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from broker.http.arguments import Arguments
from broker.http.jms_content import JSON
from broker.http.jms_message import shown
from broker.http.jms_problems import JmsProblem
from broker.http.jms_waiting import demand_login
from broker.http.limits import JMS_BROWSED_MAX
from broker.jms.destinations import Destination
from broker.links.copies import Copies, Gathered
from broker.links.linkless import LinklessClient
from broker.links.receipts import queue_to_receive
from broker.management.request import GONE
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.queues.queue import Queue
from broker.routing.selector import parse_selector

USUAL: Final = 10
"""Messages in a response if the request names no limit."""


async def browse(client: LinklessClient, request: Request) -> Response:
    """Return the first ready messages of a queue, at most `limit`, and about 1 MiB."""
    asked = Arguments(request.query_params.multi_items(), "limit", "selector")
    limit = asked.number("limit", USUAL, low=1, high=JMS_BROWSED_MAX)
    selector = asked.text("selector", "")
    wanted = ConsumerFilter(parse_selector(selector)) if selector else None
    name = request.path_params["name"]
    queue, _ = queue_to_receive(client, name, copies=True)
    gathered = await _gather(client, queue, wanted)
    # rights may have been withdrawn while a selector passed over a long queue
    demand_login(client)
    queue_to_receive(client, name, copies=True)
    now_ms = int(client.container.clock.wall_ms())
    large = dict(gathered.large)
    found: list[str] = []
    for row, data in enumerate(gathered.messages[:limit]):
        message = shown(data, Destination(queue.address), now_ms=now_ms, large=large.get(row))
        found.append(json.dumps(message))
        # all of them together could keep the event loop from its other tasks
        await asyncio.sleep(0)
    return Response(f'{{"messages": [{", ".join(found)}]}}', media_type=JSON)


async def _gather(client: LinklessClient, queue: Queue, wanted: ConsumerFilter | None) -> Gathered:
    """Return the first messages; JmsProblem if the queue is deleted meanwhile."""
    container = client.container
    something = asyncio.Event()
    copies = Copies(queue, container.clock, something.set, wanted=wanted)
    queue.attach_browser(copies)
    try:
        while True:
            something.clear()
            copies.go_on()
            queue.consumer_ready(copies, drain=True)
            container.run_round()
            await something.wait()
            # a long queue must not keep the event loop from its other tasks
            await asyncio.sleep(0)
            if copies.is_deleted:
                raise JmsProblem(GONE, "queue-deleted", "the queue was deleted")
            gathered = copies.take()
            if gathered is not None:
                return gathered
    finally:
        queue.detach_consumer(copies, queue, container.journal.batch)
