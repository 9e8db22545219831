"""The watch over a leader's tenure: it freezes the broker, thaws it, or gives its clients up.

A frozen broker reads no socket, and nothing leaves it but empty frames, by which clients see that
the connection lives. A proof thaws it. If none comes within the group's `client_grace_ms`, the
clients are dropped without a word, so that they connect to the next leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from broker.event_within import is_set_within
from broker.links.broker_group import BrokerGroup
from broker.links.container import Container
from broker.log_events import FROZEN, THAWED
from broker.net.listener import Listeners
from broker.tenure import Tenure
from storage.api import LeadershipError, StoreError
from storage.members import StoredMember

LOOK_S: Final = 0.1
"""Seconds between two looks at the tenure, and between two looks for empty frames that are due."""

MEMBERS_S: Final = 1.0
"""Seconds between two questions which members of the group are up."""


class Leading:
    """Watches the tenure of a leader from `start` to `stop`.

    `members` returns the members of the group that are up; clients are told them. `lost` is called
    once, with the reason, if the broker was frozen for `grace_ms`.
    """

    def __init__(
        self,
        tenure: Tenure,
        container: Container,
        listeners: Listeners,
        *,
        grace_ms: int,
        members: Callable[[], Awaitable[Sequence[StoredMember]]],
        lost: Callable[[LeadershipError], None],
    ) -> None:
        self._tenure: Final = tenure
        self._container: Final = container
        self._listeners: Final = listeners
        self._grace_ms: Final = grace_ms
        self._members: Final = members
        self._lost: Final = lost
        self._asking: asyncio.Task[None] | None = None
        self._is_over: Final = asyncio.Event()
        self._frozen_since_ms = 0
        self._timer: asyncio.TimerHandle | None = None

    async def start(self, group: BrokerGroup) -> None:
        """Count on the tenure, and serve clients as the leader of `group`, from now on."""
        self._container.tenure = self._tenure
        self._look()
        group.lead(await self._members())
        self._container.run_round()
        self._asking = asyncio.get_running_loop().create_task(self._ask(group))

    async def _ask(self, group: BrokerGroup) -> None:
        """Ask now and then which members there are."""
        with suppress(StoreError):  # a store that has failed is reported by others
            while not await is_set_within(self._is_over, MEMBERS_S):
                group.know(await self._members())

    def stop(self) -> None:
        """Watch no longer. A question under way is not cancelled: that would end the session."""
        self._is_over.set()
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        now_ms = int(self._container.clock.now_ms())
        if not self._tenure.is_over():
            if self._listeners.is_frozen:
                self._thaw(now_ms)
            elif self._container.owes_round:  # it was over since the last look, not for long
                self._container.run_round()
        elif not self._listeners.is_frozen:
            self._freeze(now_ms)
        elif now_ms - self._frozen_since_ms < self._grace_ms:
            self._listeners.beat(now_ms)
        else:
            self.stop()
            self._lost(
                LeadershipError(
                    f"no proof for {self._grace_ms / 1000:g} s that this broker still leads:"
                    " its clients are dropped"
                )
            )

    def _freeze(self, now_ms: int) -> None:
        self._frozen_since_ms = now_ms
        self._listeners.freeze()
        text = "the database does not prove that this broker leads: clients get no answers"
        self._container.watcher.noticed(FROZEN.notice(text))

    def _thaw(self, now_ms: int) -> None:
        lasted_ms = now_ms - self._frozen_since_ms
        self._listeners.thaw()
        text = f"this broker leads: clients get answers again, after {lasted_ms} ms"
        self._container.watcher.noticed(THAWED.notice(text))
        self._container.run_round()
