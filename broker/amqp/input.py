"""What has come of a frame that is not whole yet: kept in pieces, joined once."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.frames import HEAD_SIZE


@final
class Input:
    """The beginning of a frame, `size` bytes of it, until `wanted` bytes are there."""

    def __init__(self) -> None:
        self.size: i64 = 0
        self.wanted: i64 = HEAD_SIZE
        self._pieces: Final[list[bytes]] = []

    def join(self, data: bytes) -> bytes | None:
        """Give up everything with `data` behind it; None while that is less than wanted."""
        if self.size == 0:
            return data
        self._pieces.append(data)
        self.size += i64(len(data))
        return None if self.size < self.wanted else self.take()

    def take(self) -> bytes:
        """Give up what has come."""
        whole = b"".join(self._pieces)
        self.clear()
        return whole

    def keep(self, data: bytes, at: i64) -> None:
        """Keep what lies behind `at`, where nothing is kept yet."""
        self.size = i64(len(data)) - at
        if self.size > 0:
            self._pieces.append(data[at:])

    def clear(self) -> None:
        """Forget what has come."""
        self._pieces.clear()
        self.size = 0
