"""Frames as a client writes and reads them, and as a report shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from librt.strings import BytesWriter

from broker.amqp import descriptors
from broker.amqp.composite import FieldWriter
from broker.amqp.decode import descriptor_at, take_value
from broker.amqp.errors import Fault
from broker.amqp.frames import AMQP_FRAME, HEAD_SIZE, SASL_FRAME, begin_frame, body_at, end_frame
from broker.amqp.outcomes import ACCEPTED, DeliveryState, State, read_state
from broker.amqp.performatives import (
    RECEIVER,
    put_disposition,
    read_attach,
    read_begin,
    read_close,
    read_detach,
    read_end,
    read_flow,
    read_open,
)
from broker.amqp.sasl_frames import read_sasl_challenge, read_sasl_mechanisms, read_sasl_outcome
from broker.amqp.transfer import Disposition as DispositionReader
from broker.amqp.transfer import Transfer as TransferReader

from .words import in_words


class Body(Protocol):
    """The body of a frame: a performative of the engine, or a class of this module."""

    def write(self, out: BytesWriter) -> None:
        """Write the body with its descriptor."""


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A transfer frame with its payload; a field that is None is left out."""

    handle: int = 0
    delivery_id: int | None = 0
    tag: bytes | None = b"tag"
    message_format: int | None = 0
    settled: bool | None = None
    more: bool = False
    rcv_settle_mode: int | None = None
    state: State | None = None
    resume: bool = False
    aborted: bool = False
    batchable: bool = False
    payload: bytes = b""

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.uint(self.handle)
        fields.uint(-1 if self.delivery_id is None else self.delivery_id)
        fields.binary(self.tag)
        fields.uint(-1 if self.message_format is None else self.message_format)
        if self.settled is None:
            fields.skip()
        else:
            fields.require_boolean(self.settled)
        fields.boolean(self.more)
        fields.ubyte(-1 if self.rcv_settle_mode is None else self.rcv_settle_mode)
        if self.state is None:
            fields.skip()
        else:
            self.state.write(fields.field())
        fields.boolean(self.resume)
        fields.boolean(self.aborted)
        fields.boolean(self.batchable)
        fields.close(out, descriptors.TRANSFER)
        out.write(self.payload)


@dataclass(frozen=True, kw_only=True)
class Disposition:
    """A disposition frame; `last` of None means `first`."""

    role: bool = RECEIVER
    first: int = 0
    last: int | None = None
    settled: bool = True
    state: DeliveryState | None = ACCEPTED

    def covers(self, delivery_id: int) -> bool:
        """Return whether the delivery is in the range."""
        return self.first <= delivery_id <= (self.first if self.last is None else self.last)

    def write(self, out: BytesWriter) -> None:
        put_disposition(
            out,
            role=self.role,
            first=self.first,
            last=self.first if self.last is None else self.last,
            settled=self.settled,
            state=self.state,
        )


@dataclass(frozen=True)
class Empty:
    """A frame without a body (2.3.1), which keeps a connection open."""

    def write(self, out: BytesWriter) -> None:
        """Write nothing."""


@dataclass(frozen=True)
class Header:
    """A protocol header, in the place of a frame."""

    data: bytes

    def write(self, out: BytesWriter) -> None:
        out.write(self.data)


@dataclass(frozen=True)
class Frame:
    """A received frame or protocol header, with its bytes."""

    channel: int
    body: Body
    raw: bytes
    kind: int = AMQP_FRAME

    def fields(self) -> list[object]:
        """Return the fields of the performative as they were encoded, for rules on types."""
        value, _ = take_value(self.raw, body_at(self.raw, 0), len(self.raw))
        fields: list[object] = value.value  # type: ignore[attr-defined]
        return fields


READERS: Final[dict[int, Callable[[bytes, int, int], Body]]] = {
    descriptors.OPEN: read_open,
    descriptors.BEGIN: read_begin,
    descriptors.ATTACH: read_attach,
    descriptors.FLOW: read_flow,
    descriptors.DETACH: read_detach,
    descriptors.END: read_end,
    descriptors.CLOSE: read_close,
    descriptors.SASL_MECHANISMS: read_sasl_mechanisms,
    descriptors.SASL_CHALLENGE: read_sasl_challenge,
    descriptors.SASL_OUTCOME: read_sasl_outcome,
}


def frame(body: Body, channel: int = 0, *, kind: int = AMQP_FRAME) -> bytes:
    """Return a frame as the codec writes it."""
    out = BytesWriter()
    start = begin_frame(out, kind, channel)
    body.write(out)
    end_frame(out, start)
    return out.getvalue()


def sasl_frame(body: Body) -> bytes:
    return frame(body, kind=SASL_FRAME)


def raw_frame(
    body: bytes, channel: int = 0, *, kind: int = AMQP_FRAME, size: int | None = None, doff: int = 2
) -> bytes:
    """Return a frame with any body; `size` and `doff` may be wrong."""
    length = HEAD_SIZE + len(body) if size is None else size
    return length.to_bytes(4) + bytes([doff, kind]) + channel.to_bytes(2) + body


def read_frame(raw: bytes) -> Frame:
    """Return the frame in `raw`; raise Fault if the engine's codec finds it malformed."""
    channel = int.from_bytes(raw[6:8])
    at = int(body_at(raw, 0))
    if at >= len(raw):
        return Frame(channel, Empty(), raw, raw[5])
    code, behind = descriptor_at(raw, at, len(raw))
    return Frame(channel, _body(raw, int(code), int(behind)), raw, raw[5])


def _body(data: bytes, code: int, at: int) -> Body:
    if code == descriptors.TRANSFER:
        return _transfer(data, at)
    if code == descriptors.DISPOSITION:
        return _disposition(data, at)
    reader = READERS.get(code)
    if reader is None:
        raise Fault("amqp:not-implemented", f"a frame with descriptor 0x{code:02x}")
    return reader(data, at, len(data))


def _transfer(data: bytes, at: int) -> Transfer:
    read = TransferReader()
    payload_at = read.read(data, at, len(data))
    return Transfer(
        handle=int(read.handle),
        delivery_id=_optional(int(read.delivery_id)),
        tag=read.tag(data),
        message_format=_optional(int(read.message_format)),
        settled=None if read.settled < 0 else read.settled == 1,
        more=read.more,
        rcv_settle_mode=_optional(int(read.rcv_settle_mode)),
        state=None if read.state_at < 0 else read_state(data, read.state_at, len(data)),
        resume=read.resume,
        aborted=read.aborted,
        batchable=read.batchable,
        payload=data[payload_at:],
    )


def _disposition(data: bytes, at: int) -> Disposition:
    read = DispositionReader()
    read.read(data, at, len(data))
    return Disposition(
        role=read.role,
        first=int(read.first),
        last=int(read.last),
        settled=read.settled,
        state=None if read.state_at < 0 else read_state(data, read.state_at, len(data)),
    )


def _optional(number: int) -> int | None:
    return None if number < 0 else number


def described(raw: bytes) -> str:
    """Return a line about a frame or header of either end, even a malformed one."""
    if raw[:4] == b"AMQP":
        return f"header AMQP {'.'.join(str(byte) for byte in raw[4:8])}"
    if len(raw) < HEAD_SIZE:
        return f"bytes {raw.hex()}"
    place = f"channel {int.from_bytes(raw[6:8])}"
    at = raw[4] * 4
    if at == len(raw) == int.from_bytes(raw[:4]):
        return f"{place} empty frame"
    try:
        value, behind = take_value(raw, at, len(raw))
    except (Fault, IndexError):
        return f"bytes {raw[:64].hex()}{'…' if len(raw) > 64 else ''}"
    payload = len(raw) - int(behind)
    return f"{place} {in_words(value)}" + (f" + {payload} bytes" if payload else "")
