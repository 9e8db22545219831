"""How long the commit under way takes, and whether it waits for a standby server of the database.

With `synchronous_standby_names` the server answers a commit once its standby server has it, too. If
that one is gone, it waits without an end, and says nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from storage.sql.postgresql.leadership import Witness
    from storage.sql.postgresql.session import Session

TOLD_AFTER_S: Final = 2.0
"""Seconds after which a wait is told."""

LOOK_S: Final = 0.5
"""Seconds between two looks."""

WAITS: Final = (
    "a commit has waited for a standby server of the database for"
    f" {TOLD_AFTER_S:g} s: nothing is acknowledged until one answers that synchronous_standby_names"
    " has; start it, or change that setting"
)

GOES_ON: Final = "the database has committed what waited for a standby server"


@final
class CommitWatch:
    """The watch over commits, from `begin` to `done` of each; one may be under way.

    `tell` is called with a sentence for the log when a wait for a standby server lasts, and when it
    is over. `waits` is True in between.
    """

    def __init__(self, witness: Witness, tell: Callable[[str], None]) -> None:
        self._witness: Final = witness
        self._tell: Final = tell
        self._since_s = 0.0
        self.waits = False

    def begin(self) -> None:
        """Note that a commit has been sent."""
        self._since_s = asyncio.get_running_loop().time()

    def done(self) -> None:
        """Note that it was answered."""
        self._since_s = 0.0

    def lasts_s(self) -> float:
        """Return for how many seconds the commit has been under way, 0 if there is none."""
        return asyncio.get_running_loop().time() - self._since_s if self._since_s else 0.0

    async def run(self, session: Callable[[], Session | None]) -> None:
        """Look regularly, until cancelled, what `session` returns, the one that commits."""
        while True:
            await asyncio.sleep(LOOK_S)
            is_long = self.lasts_s() >= TOLD_AFTER_S
            if self.waits and not is_long:
                self.waits = False
                self._tell(GOES_ON)
            elif is_long and not self.waits:
                asked = session()
                if asked is not None and await self._witness.waits_for_standby(asked):
                    self.waits = True
                    self._tell(WAITS)
