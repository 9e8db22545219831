"""Management requests of programs that have no link of AMQP: each is one call that is awaited.

They are carried out by the entities of `$management`, with its check of rights, its audit records
and its status codes.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Final

from broker.links.container import Container
from broker.management.durable import Durable
from broker.management.entity import Caller
from broker.management.later import Later, Told
from broker.management.management import Management
from broker.management.request import BUSY, Request
from broker.management.response import Response
from broker.routing.errors import RoutingError
from broker.routing.queues.paging import NotLoaded, Parked


class LoadAwaited(Parked):
    """Sets the event `happened` once messages have been loaded, perhaps not yet all of them."""

    def __init__(self) -> None:
        self.happened: Final = asyncio.Event()

    def loaded(self) -> None:
        self.happened.set()


class Executor:
    """Executes requests between two rounds of work: never while input of a peer is processed."""

    def __init__(self, management: Management, container: Container) -> None:
        self._management: Final = management
        self._container: Final = container

    async def execute(self, caller: Caller, request: Request) -> Response:
        """Carry out a request, and return the response once the changes it reports are durable.

        `tell` of the caller is not called.
        """
        container = self._container
        if container.router.changes.found:
            container.pass_on_changes(None)  # they are not the caller's
        told: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        found = await self._performed(replace(caller, tell=partial(_tell, told)), request)
        container.run_round()
        if isinstance(found, Later):
            found = await self._management.answer_of(found)
        elif isinstance(found, Told):
            found = await told
        durable = Durable()
        container.journal.submit(durable)
        container.run_round()
        await durable.happened.wait()
        return found

    async def _performed(self, caller: Caller, request: Request) -> Response | Later | Told:
        """Return the result of a request; messages that it is about are loaded before, if needed.

        Nothing else runs between the return and the last attempt.
        """
        paging = self._container.router.context.paging
        while True:
            try:
                return self._management.perform(caller, request)
            except NotLoaded:
                awaited = LoadAwaited()
                try:
                    paging.park(awaited)
                except RoutingError as refusal:
                    return Response(status=BUSY, description=str(refusal))
            self._container.run_round()
            await awaited.happened.wait()


def _tell(told: asyncio.Future[Response], response: Response) -> None:
    if not told.done():
        told.set_result(response)
