"""Frames as a client writes and reads them: builders with defaults, and the way back from bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from librt.strings import BytesWriter

from broker.amqp.composite import FieldWriter
from broker.amqp.decode import descriptor_at
from broker.amqp.descriptors import (
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    OPEN,
    SASL_MECHANISMS,
    SASL_OUTCOME,
    TRANSFER,
)
from broker.amqp.encode import put_binary, put_descriptor, put_value
from broker.amqp.frames import (
    AMQP_HEADER,
    HEAD_SIZE,
    SASL_FRAME,
    begin_frame,
    body_at,
    end_frame,
)
from broker.amqp.outcomes import ACCEPTED, DeliveryState, State, read_state
from broker.amqp.performatives import (
    RECEIVER,
    SENDER,
    Attach,
    Flow,
    Open,
    put_disposition,
    read_attach,
    read_begin,
    read_close,
    read_detach,
    read_end,
    read_flow,
    read_open,
)
from broker.amqp.sasl_frames import read_sasl_mechanisms, read_sasl_outcome
from broker.amqp.sections import put_header
from broker.amqp.terminus import Coordinator, Source, Target
from broker.amqp.transfer import Disposition as DispositionReader
from broker.amqp.transfer import Transfer as TransferReader
from broker.amqp.types import Map, Symbol

READERS = {
    OPEN: read_open,
    BEGIN: read_begin,
    ATTACH: read_attach,
    FLOW: read_flow,
    DETACH: read_detach,
    END: read_end,
    CLOSE: read_close,
    SASL_MECHANISMS: read_sasl_mechanisms,
    SASL_OUTCOME: read_sasl_outcome,
}

NULL = b"\x40"


class Body(Protocol):
    """What a frame may hold: a performative of the engine's, or one of those here."""

    def write(self, out: BytesWriter) -> None:
        """Write it with its descriptor."""


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A transfer frame with its payload. None leaves a field out."""

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
        fields.close(out, TRANSFER)
        out.write(self.payload)


@dataclass(frozen=True, kw_only=True)
class Disposition:
    """A disposition frame. `last` None is `first`."""

    role: bool = RECEIVER
    first: int = 0
    last: int | None = None
    settled: bool = True
    state: DeliveryState | None = ACCEPTED

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
class Frame:
    """A frame that came: `body` None is an empty one."""

    channel: int
    body: Body | None
    size: int = 0


@dataclass(frozen=True)
class Header:
    """A protocol header, in the place of a frame."""

    data: bytes

    def write(self, out: BytesWriter) -> None:
        out.write(self.data)


def frames_in(data: bytes) -> Iterator[Frame]:
    """Every protocol header and frame in `data`, which must end with a whole one."""
    at = 0
    while at < len(data):
        if data[at : at + 4] == b"AMQP":
            yield Frame(0, Header(data[at : at + HEAD_SIZE]), HEAD_SIZE)
            at += HEAD_SIZE
            continue
        size = int.from_bytes(data[at : at + 4])
        assert size >= HEAD_SIZE, data[at:]
        end = at + size
        assert end <= len(data), "the output ends within a frame"
        channel = int.from_bytes(data[at + 6 : at + 8])
        yield Frame(channel, _body(data, int(body_at(data, at)), end), size)
        at = end


def _body(data: bytes, at: int, end: int) -> Body | None:
    if at == end:
        return None
    code, behind = descriptor_at(data, at, end)
    if code == TRANSFER:
        return _transfer(data, int(behind), end)
    if code == DISPOSITION:
        return _disposition(data, int(behind), end)
    return READERS[int(code)](data, behind, end)


def _transfer(data: bytes, at: int, end: int) -> Transfer:
    read = TransferReader()
    payload_at = read.read(data, at, end)
    return Transfer(
        handle=int(read.handle),
        delivery_id=_optional(int(read.delivery_id)),
        tag=read.tag(data),
        message_format=_optional(int(read.message_format)),
        settled=None if read.settled < 0 else read.settled == 1,
        more=read.more,
        rcv_settle_mode=_optional(int(read.rcv_settle_mode)),
        state=None if read.state_at < 0 else read_state(data, read.state_at, end),
        resume=read.resume,
        aborted=read.aborted,
        payload=data[payload_at:end],
    )


def _disposition(data: bytes, at: int, end: int) -> Disposition:
    read = DispositionReader()
    read.read(data, at, end)
    return Disposition(
        role=read.role,
        first=int(read.first),
        last=int(read.last),
        settled=read.settled,
        state=None if read.state_at < 0 else read_state(data, read.state_at, end),
    )


def _optional(number: int) -> int | None:
    return None if number < 0 else number


def frame(body: Body, channel: int = 0) -> bytes:
    """One AMQP frame."""
    out = BytesWriter()
    start = begin_frame(out, 0, channel)
    body.write(out)
    end_frame(out, start)
    return out.getvalue()


def raw_frame(body: bytes, channel: int = 0, kind: int = 0) -> bytes:
    """A frame with any body."""
    out = BytesWriter()
    start = begin_frame(out, kind, channel)
    out.write(body)
    end_frame(out, start)
    return out.getvalue()


def sasl_frame(body: Body) -> bytes:
    """One SASL frame."""
    out = BytesWriter()
    start = begin_frame(out, SASL_FRAME, 0)
    body.write(out)
    end_frame(out, start)
    return out.getvalue()


def opening(container_id: str = "client", **fields: object) -> bytes:
    """The AMQP header and an open."""
    return AMQP_HEADER + frame(Open(container_id=container_id, **fields))  # type: ignore[arg-type]


def attach_sender(
    address: str | None = "q",
    *,
    name: str = "sender",
    handle: int = 0,
    kind: str = "",
    source: Source | None = None,
    target: Target | Coordinator | None = None,
    **fields: object,
) -> Attach:
    """The attach of a client that sends to `address`; None is the anonymous relay."""
    return Attach(
        name=name,
        handle=handle,
        role=SENDER,
        source=source or Source(address="client"),
        target=target or Target(address=address, capabilities=[kind] if kind else []),
        initial_delivery_count=0,
        **fields,  # type: ignore[arg-type]
    )


def attach_receiver(
    address: str | None = "q",
    *,
    name: str = "receiver",
    handle: int = 0,
    kind: str = "",
    source: Source | None = None,
    **fields: object,
) -> Attach:
    """The attach of a client that receives from `address`."""
    return Attach(
        name=name,
        handle=handle,
        role=RECEIVER,
        source=source or Source(address=address, capabilities=[kind] if kind else []),
        target=Target(),
        **fields,  # type: ignore[arg-type]
    )


def flow(
    *,
    handle: int | None = None,
    credit: int | None = None,
    delivery_count: int | None = None,
    next_incoming_id: int | None = 0,
    incoming_window: int = 1000,
    next_outgoing_id: int = 0,
    drain: bool = False,
    echo: bool = False,
) -> Flow:
    """A flow; what the peer has sent so far is passed in where it matters."""
    return Flow(
        next_incoming_id=-1 if next_incoming_id is None else next_incoming_id,
        incoming_window=incoming_window,
        next_outgoing_id=next_outgoing_id,
        outgoing_window=1000,
        handle=-1 if handle is None else handle,
        delivery_count=-1 if delivery_count is None else delivery_count,
        link_credit=-1 if credit is None else credit,
        drain=drain,
        echo=echo,
    )


def message(
    body: bytes = b"hello",
    *,
    durable: bool = False,
    priority: int = 4,
    ttl: int = -1,
    to: str | None = None,
    annotations: dict[str, object] | None = None,
) -> bytes:
    """An encoded message with one data section."""
    out = BytesWriter()
    if durable or priority != 4 or ttl >= 0:
        put_header(
            out,
            durable=durable,
            priority=priority,
            ttl=ttl,
            first_acquirer=False,
            delivery_count=0,
        )
    if annotations:
        put_descriptor(out, 0x72)
        put_value(out, Map([(Symbol(key), value) for key, value in annotations.items()]))
    if to is not None:
        fields = FieldWriter()
        fields.skip()
        fields.skip()
        fields.string(to)
        fields.close(out, 0x73)
    put_descriptor(out, 0x75)
    put_binary(out, body)
    return out.getvalue()


def body_of(payload: bytes) -> bytes:
    """The content of the one data section at the end of a message."""
    at = payload.index(b"\x00\x53\x75")
    return payload[at + 5 :] if payload[at + 3] == 0xA0 else payload[at + 8 :]


def header_of(payload: bytes) -> list[object]:
    """The fields of the header section that a message starts with, as a list."""
    from broker.amqp.decode import take_value
    from broker.amqp.types import Described

    value, _ = take_value(payload, 0, len(payload))
    assert isinstance(value, Described)
    assert isinstance(value.value, list)
    return [*value.value, *[None] * (5 - len(value.value))]
