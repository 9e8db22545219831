"""A reading of the whole broker that all viewers share, so that many cost as much as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar, final

T = TypeVar("T")

SHARE: Final = 0.02
"""Share of time that is spent on making readings, however many viewers ask for them."""

VALID_S_MAX: Final = 15.0
"""The longest time in seconds that a reading is valid: a busy machine can make one last."""


@final
class SharedReading(Generic[T]):
    """The last reading. It is valid for as long as keeps to SHARE: a quick one is always fresh.

    Yet no viewer gets one that was made more than VALID_S_MAX ago.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s: Final = now_s
        self._turn: Final = asyncio.Lock()
        self._valid_until_s = 0.0
        self._last: T | None = None

    async def get(self, make: Callable[[], Awaitable[T]]) -> T:
        """Return the last reading, or the one that `make` returns if that is not valid any more.

        The caller has checked the rights of the viewer.
        """
        async with self._turn:
            if self._last is None or self._now_s() >= self._valid_until_s:
                began_s = self._now_s()
                self._last = await make()
                ended_s = self._now_s()
                self._valid_until_s = ended_s + min((ended_s - began_s) / SHARE, VALID_S_MAX)
            return self._last
