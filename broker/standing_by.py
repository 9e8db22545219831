"""A broker of a group while another one leads: it listens, knows the users, and asks to lead.

The users of the store are read again every second, since the leader changes them, and so are
the addresses of the members: a leader that has just begun may not have written its own yet. Clients
log in as at the leader, and are then sent there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from broker.app import App
from broker.event_within import is_set_within
from broker.links.broker_group import BrokerGroup
from storage.api import StoreError

USERS_S: Final = 1.0
"""Seconds between two readings of the users, and of the addresses of the members."""

FIRST_USERS_S: Final = 0.2
"""Seconds between two attempts to read them for the first time: no client can log in before."""


class StandingBy:
    """The broker `app`, which waits until it leads `group`.

    `tell` is called with the name of each new leader, and with what is wrong, if anything is. The
    name is empty if none leads. A leader is told of once this broker listens, so that clients that
    read of it can connect.
    """

    def __init__(self, app: App, group: BrokerGroup, tell: Callable[[str, str], None]) -> None:
        self._app: Final = app
        self._group: Final = group
        self._tell: Final = tell
        self._leader = ""
        self._is_listening = False
        self._is_over: Final = asyncio.Event()
        self._asking: Final[set[asyncio.Task[None]]] = set()

    async def lead(self) -> None:
        """Return once the broker leads. Raise StoreError or SettingsError if it never can.

        If the addresses of its listeners cannot be used, raise OSError.
        """
        leading = asyncio.ensure_future(self._app.store.lead(self._told))
        listening = asyncio.ensure_future(self._listen())
        try:
            await asyncio.wait((leading, listening), return_when=asyncio.FIRST_COMPLETED)
            self._is_over.set()
            # not cancelled: half of the listeners might be up, and a question that is cancelled
            # would end the session that has the lock
            await listening
            await leading
            if self._asking:
                await asyncio.wait(self._asking)
            self._group.another_leads("", ())  # clients wait for the end of the start
        finally:
            for task in (leading, listening):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _listen(self) -> None:
        """Listen as soon as the users are known, and keep knowing them while another leads."""
        app = self._app
        while not app.accounts.is_loaded:
            await self._read_users()
            if await is_set_within(self._is_over, FIRST_USERS_S):
                return
        await app.container.audit.start()
        await app.listen()
        self._is_listening = True
        if self._leader:
            self._tell(self._leader, "")
        while not await is_set_within(self._is_over, USERS_S):
            await self._read_users()
            if self._leader:
                await self._redirect_to(self._leader)

    async def _read_users(self) -> None:
        with suppress(StoreError):  # the wait for the lock tells it, and connects again
            await self._app.load_accounts()

    def _told(self, leader: str, obstacle: str) -> None:
        self._leader = leader
        self._tell(leader if self._is_listening else "", obstacle)
        if leader:
            asking = asyncio.ensure_future(self._redirect_to(leader))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
        else:
            self._group.another_leads("", ())

    async def _redirect_to(self, leader: str) -> None:
        """Redirect clients to `leader`, once its addresses are known, if it still leads."""
        with suppress(StoreError):  # then it is told again, with the next session
            members = await self._app.store.members()
            if leader == self._leader:
                self._group.another_leads(leader, members)
                self._app.container.run_round()
