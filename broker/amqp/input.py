"""Input that is not handled yet: the beginning of a frame, or input held for a later turn."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.frames import HEAD_SIZE
from broker.amqp.limits import CONTROLS_AT_ONCE


@final
class Input:
    """`size` bytes of input in pieces, which are joined once there are `wanted` of them.

    While it `is_held`, no frame is handled: the broker awaits SASL's outcome, or a later turn of
    the event loop.
    """

    def __init__(self) -> None:
        self.is_held = False
        self._controls: i64 = 0
        self.size: i64 = 0
        self.wanted: i64 = HEAD_SIZE
        self._pieces: Final[list[bytes]] = []

    def join(self, data: bytes) -> bytes | None:
        """Return all input with `data` at its end, and keep none of it.

        None if that is less than `wanted` bytes: it is kept. If nothing is kept, return `data`.
        """
        if self.size == 0:
            return data
        self._pieces.append(data)
        self.size += i64(len(data))
        return None if self.size < self.wanted else self.take()

    def count_control(self) -> bool:
        """Count a frame; hold the input and return True at each CONTROLS_AT_ONCE of them."""
        self._controls += 1
        if self._controls == CONTROLS_AT_ONCE:
            self._controls = 0
            self.is_held = True
        return self.is_held

    def take(self) -> bytes:
        """Return all input, and keep none of it."""
        whole = b"".join(self._pieces)
        self.clear()
        return whole

    def keep(self, data: bytes, at: i64) -> None:
        """Keep the input from `at` on. Nothing else may be kept yet."""
        self.size = i64(len(data)) - at
        if self.size > 0:
            self._pieces.append(data[at:])

    def clear(self) -> None:
        """Discard all input."""
        self._pieces.clear()
        self.size = 0
