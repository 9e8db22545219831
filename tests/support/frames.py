"""Frames as a client writes and reads them: builders with defaults, and a decoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from librt.strings import BytesWriter

from broker.amqp.composite import FieldWriter
from broker.amqp.encode import put_binary, put_descriptor, put_value
from broker.amqp.frames import (
    AMQP_HEADER,
    HEAD_SIZE,
)
from broker.amqp.performatives import (
    RECEIVER,
    SENDER,
    Attach,
    Flow,
    Open,
)
from broker.amqp.sections import put_header
from broker.amqp.terminus import Coordinator, Source, Target
from broker.amqp.types import Map, Symbol
from tests.conformance.frames import (
    Body,
    Disposition,
    Empty,
    Header,
    Transfer,
    frame,
    raw_frame,
    read_frame,
    sasl_frame,
)

__all__ = ["Body", "Disposition", "Header", "Transfer", "frame", "raw_frame", "sasl_frame"]

NULL = b"\x40"


@dataclass(frozen=True)
class Frame:
    """A received frame; `body` is None for an empty frame, `size` is in bytes."""

    channel: int
    body: Body | None
    size: int = 0


def frames_in(data: bytes) -> Iterator[Frame]:
    """Yield every protocol header and frame in `data`, which must end with a complete one."""
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
        body = read_frame(data[at:end]).body
        yield Frame(channel, None if isinstance(body, Empty) else body, size)
        at = end


def opening(container_id: str = "client", **fields: object) -> bytes:
    """Return the AMQP header and an open."""
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
    """Return the attach of a client that sends to `address`; None is the anonymous relay."""
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
    target: Target | None = None,
    **fields: object,
) -> Attach:
    """Return the attach of a client that receives from `address`."""
    return Attach(
        name=name,
        handle=handle,
        role=RECEIVER,
        source=source or Source(address=address, capabilities=[kind] if kind else []),
        target=target or Target(),
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
    properties: dict[str, object] | None = None,
) -> Flow:
    """Return a flow; a test passes the numbers of earlier transfers if they matter."""
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
        properties=properties,
    )


def message(
    body: bytes = b"hello",
    *,
    durable: bool = False,
    priority: int = 4,
    ttl: int = -1,
    to: str | None = None,
    subject: str | None = None,
    annotations: dict[str, object] | None = None,
    message_id: object = None,
    user_id: bytes | None = None,
    properties: Mapping[str, object] | None = None,
) -> bytes:
    """Return an encoded message with one data section; `ttl` is in ms, -1 for none."""
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
    if any(field is not None for field in (to, subject, message_id, user_id)):
        fields = FieldWriter()
        if message_id is None:
            fields.skip()
        else:
            put_value(fields.field(), message_id)
        fields.binary(user_id)
        fields.string(to)
        fields.string(subject)
        fields.close(out, 0x73)
    if properties:
        put_descriptor(out, 0x74)
        put_value(out, Map(list(properties.items())))
    put_descriptor(out, 0x75)
    put_binary(out, body)
    return out.getvalue()


def body_of(payload: bytes) -> bytes:
    """Return the content of the one data section at the end of a message."""
    at = payload.index(b"\x00\x53\x75")
    return payload[at + 5 :] if payload[at + 3] == 0xA0 else payload[at + 8 :]


def header_of(payload: bytes) -> list[object]:
    """Return the five fields of the header section with which a message starts."""
    from broker.amqp.decode import take_value
    from broker.amqp.types import Described

    value, _ = take_value(payload, 0, len(payload))
    assert isinstance(value, Described)
    assert isinstance(value.value, list)
    return [*value.value, *[None] * (5 - len(value.value))]
