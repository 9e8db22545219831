"""The messages of a load: the run that each belongs to, and the time of its sending."""

from __future__ import annotations

from struct import Struct
from typing import Final, final

from proton import Message

TIME: Final = Struct(">q")
"""The last bytes of a message: nanoseconds of the monotonic clock.

They are counted from the end since brokers put annotations in front of the body.
"""


@final
class LoadMessage:
    """An encoded message whose body is one data section; only the time at its end varies."""

    def __init__(
        self,
        *,
        size: int,
        run_id: bytes,
        durable: bool,
        to: str | None = None,
        reply_to: str | None = None,
    ) -> None:
        """Take the bytes of the body, SIZE_MIN or more, and properties of the message."""
        body = run_id + bytes(size - len(run_id))
        # with `inferred`, Proton writes bytes as a data section: a BytesMessage
        message = Message(body=body, durable=durable, inferred=True, address=to, reply_to=reply_to)
        self._constant: Final = message.encode()[: -TIME.size]

    def timed(self, time_ns: int) -> bytes:
        """Return the message with the time from which its latency counts."""
        return self._constant + TIME.pack(time_ns)


def time_ns_of(data: bytes | bytearray) -> int:
    """Return the time from which the latency of an encoded message counts."""
    time_ns: int = TIME.unpack_from(data, len(data) - TIME.size)[0]
    return time_ns


def is_of_run(data: bytes | bytearray, run_id: bytes, size: int) -> bool:
    """Return whether an encoded message with a body of `size` bytes belongs to the run."""
    return data.startswith(run_id, max(0, len(data) - size))
