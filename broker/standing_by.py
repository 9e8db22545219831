"""A broker of a group while another one leads: it listens, knows the users, and asks to lead.

The users of the store are read again every few seconds, since the leader changes them. Clients log
in as at the leader, and are then sent there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final

from broker.app import App
from broker.links.broker_group import BrokerGroup
from storage.api import StoreError

USERS_S: Final = 2.0
"""Seconds between two readings of the users."""

FIRST_USERS_S: Final = 0.2
"""Seconds between two attempts to read them for the first time: no client can log in before."""


class StandingBy:
    """The broker `app`, which waits until it leads `group`.

    `tell` is called with the name of each new leader, and with what is wrong, if anything is. The
    name is empty if none leads.
    """

    def __init__(self, app: App, group: BrokerGroup, tell: Callable[[str, str], None]) -> None:
        self._app: Final = app
        self._group: Final = group
        self._tell: Final = tell
        self._leader = ""
        self._reading: Final[set[asyncio.Task[None]]] = set()

    async def lead(self) -> None:
        """Return once the broker leads. Raise StoreError or SettingsError if it never can.

        If the addresses of its listeners cannot be used, raise OSError.
        """
        leading = asyncio.ensure_future(self._app.store.lead(self._told))
        listening = asyncio.ensure_future(self._listen())
        try:
            await asyncio.wait((leading, listening), return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                listening.result()
            await leading
            self._group.another_leads("", ())  # clients wait for the end of the start
        finally:
            for task in (leading, listening):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            if self._reading:
                await asyncio.wait(self._reading)

    async def _listen(self) -> None:
        """Listen as soon as the users are known, and keep knowing them."""
        app = self._app
        while not app.accounts.is_loaded:
            await self._read(app.load_accounts())
            await asyncio.sleep(FIRST_USERS_S)
        await app.listen()
        while True:
            await asyncio.sleep(USERS_S)
            await self._read(app.load_accounts())

    async def _read(self, work: Coroutine[None, None, None]) -> None:
        """Do what reads from the store. It goes on if the caller is cancelled.

        To cancel it would end the session that is about to get the lock.
        """
        reading = asyncio.ensure_future(work)
        self._reading.add(reading)
        reading.add_done_callback(self._reading.discard)
        with suppress(StoreError):  # the wait for the lock tells it, and connects again
            await asyncio.shield(reading)

    def _told(self, leader: str, obstacle: str) -> None:
        self._tell(leader, obstacle)
        self._leader = leader
        if leader:
            asking = asyncio.ensure_future(self._redirect_to(leader))
            self._reading.add(asking)
            asking.add_done_callback(self._reading.discard)
        else:
            self._group.another_leads("", ())

    async def _redirect_to(self, leader: str) -> None:
        """Redirect clients to `leader`, once its addresses are known, if it still leads."""
        with suppress(StoreError):  # then it is told again, with the next session
            members = await self._app.store.members()
            if leader == self._leader:
                self._group.another_leads(leader, members)
                self._app.container.run_round()
