"""Frames and protocol headers (core spec 2.2, 2.3 and 5.3.1): the outermost eight bytes.

A frame's header is checked before anything is kept for the frame that it announces.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, u8

from broker.amqp.composite import Performative
from broker.amqp.decode import u32_at
from broker.amqp.encode import BytesWriter, put_u16, put_u32
from broker.amqp.errors import FRAMING_ERROR, ConnectionFault

AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
TLS_HEADER: Final = b"AMQP\x02\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"

AMQP_FRAME: Final = 0x00
SASL_FRAME: Final = 0x01

HEAD_SIZE: Final = 8

# Sent to keep an idle connection alive (2.4.5).
EMPTY_FRAME: Final = b"\x00\x00\x00\x08\x02\x00\x00\x00"


def frame_size(data: bytes, at: i64, size_max: i64) -> i64:
    """Return the size in the frame header at `at`, all eight bytes of which must have arrived.

    Raise ConnectionFault if there can be no such frame, whatever follows.
    """
    size = u32_at(data, at)
    if size > size_max:
        raise ConnectionFault(
            FRAMING_ERROR, f"a frame of {int(size)} bytes, more than {int(size_max)}"
        )
    if size < HEAD_SIZE:
        raise ConnectionFault(FRAMING_ERROR, f"a frame of {int(size)} bytes")
    offset = i64(data[at + 4]) * 4
    if offset < HEAD_SIZE or offset > size:
        raise ConnectionFault(FRAMING_ERROR, f"a data offset of {int(offset)} bytes")
    return size


def body_at(data: bytes, at: i64) -> i64:
    """Return the position of the body of the frame at `at`, after the extended header."""
    return at + i64(data[at + 4]) * 4


def put_frame(out: BytesWriter, channel: i64, performative: Performative) -> None:
    start = begin_frame(out, AMQP_FRAME, channel)
    performative.write(out)
    end_frame(out, start)


def put_sasl_frame(out: BytesWriter, performative: Performative) -> None:
    start = begin_frame(out, SASL_FRAME, 0)
    performative.write(out)
    end_frame(out, start)


def begin_frame(out: BytesWriter, kind: i64, channel: i64) -> i64:
    """Write the header of a frame of yet unknown size; return its position, for `end_frame`."""
    start = len(out)
    put_u32(out, 0)
    out.append(2)
    out.append(int(kind))
    put_u16(out, channel)
    return start


def end_frame(out: BytesWriter, start: i64) -> None:
    """Write the size of the frame that `begin_frame` began at `start`."""
    size = len(out) - start
    out[start] = u8(size >> 24 & 0xFF)
    out[start + 1] = u8(size >> 16 & 0xFF)
    out[start + 2] = u8(size >> 8 & 0xFF)
    out[start + 3] = u8(size & 0xFF)
