"""Frames that the client's end of a connection writes besides those of its own state."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.encode import BytesWriter
from broker.amqp.frames import put_frame
from broker.amqp.outcomes import ACCEPTED
from broker.amqp.performatives import Begin, Flow, Open, Performative, put_disposition

FRAME_SIZE_MAX: Final[i64] = 64 * 1024
"""Maximum bytes of a frame from the other broker, which sends answers and no messages."""

INCOMING_WINDOW: Final[i64] = 2048
OUTGOING_WINDOW: Final[i64] = 0x7FFF_FFFF
HANDLE_MAX: Final = 255

IDLE_TIME_OUT_MS: Final[i64] = 8000
"""Time in ms that the other broker is told: it sends something at least twice in that time."""


def put_opening(out: BytesWriter, *, container_id: str, host: str) -> None:
    """Write the open, and the begin of the only session."""
    opening = Open(
        container_id=container_id,
        hostname=host,
        max_frame_size=FRAME_SIZE_MAX,
        channel_max=0,
        idle_time_out=IDLE_TIME_OUT_MS,
    )
    put_frame(out, 0, opening)
    begin = Begin(
        next_outgoing_id=0,
        incoming_window=INCOMING_WINDOW,
        outgoing_window=OUTGOING_WINDOW,
        handle_max=HANDLE_MAX,
    )
    put_frame(out, 0, begin)


def put_flow(
    out: BytesWriter,
    *,
    next_incoming_id: i64,
    next_outgoing_id: i64,
    handle: i64 = -1,
    delivery_count: i64 = -1,
    link_credit: i64 = -1,
    drain: bool = False,
) -> None:
    """Write a flow of the session, or of the link `handle`; -1 leaves a field out."""
    flow = Flow(
        next_incoming_id=next_incoming_id,
        incoming_window=INCOMING_WINDOW,
        next_outgoing_id=next_outgoing_id,
        outgoing_window=OUTGOING_WINDOW,
        handle=handle,
        delivery_count=delivery_count,
        link_credit=link_credit,
        drain=drain,
    )
    put_frame(out, 0, flow)


def put_settled(out: BytesWriter, first: i64, last: i64, *, role: bool) -> None:
    """Write a disposition that settles deliveries as accepted."""
    put_frame(out, 0, _Settled(first, last, role=role))


@final
class _Settled(Performative):
    def __init__(self, first: i64, last: i64, *, role: bool) -> None:
        self._first: Final[i64] = first
        self._last: Final[i64] = last
        self._role: Final = role

    def write(self, out: BytesWriter) -> None:
        put_disposition(
            out, role=self._role, first=self._first, last=self._last, settled=True, state=ACCEPTED
        )
