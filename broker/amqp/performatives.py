"""The frame bodies that open and close things, and flow (core spec 2.7), each as its field table.

`transfer.py` has the two of the data path, exported from here too, and `sasl_frames.py`
those of the security layer. Every `read_` function starts after the descriptor. An
optional number that is absent is -1.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.composite import FieldReader, FieldWriter, Performative
from broker.amqp.decode import descriptor_at, malformed
from broker.amqp.descriptors import (
    ATTACH,
    BEGIN,
    CLOSE,
    COORDINATOR,
    DETACH,
    END,
    FLOW,
    OPEN,
    SOURCE,
    TARGET,
)
from broker.amqp.encode import BytesWriter
from broker.amqp.errors import LinkFault
from broker.amqp.outcomes import Error, error_at
from broker.amqp.terminus import (
    Coordinator,
    Source,
    Target,
    read_coordinator,
    read_source,
    read_target,
)
from broker.amqp.transfer import Disposition, Transfer, put_disposition

__all__ = [
    "Attach",
    "Begin",
    "Close",
    "Coordinator",
    "Detach",
    "Disposition",
    "End",
    "Error",
    "Flow",
    "Open",
    "Performative",
    "Source",
    "Target",
    "Transfer",
    "put_disposition",
    "read_attach",
    "read_begin",
    "read_close",
    "read_detach",
    "read_end",
    "read_flow",
    "read_open",
]

UINT_MAX: Final = 0xFFFF_FFFF
CHANNEL_MAX: Final = 0xFFFF

# role, 2.8.1
SENDER: Final = False
RECEIVER: Final = True

# sender-settle-mode, 2.8.2
SND_UNSETTLED: Final = 0
SND_SETTLED: Final = 1
SND_MIXED: Final = 2

# receiver-settle-mode, 2.8.3
RCV_FIRST: Final = 0
RCV_SECOND: Final = 1


@final
class Open(Performative):
    """The performative open, 2.7.1. `idle_time_out` is in ms."""

    def __init__(
        self,
        *,
        container_id: str,
        hostname: str | None = None,
        max_frame_size: i64 = UINT_MAX,
        channel_max: i64 = CHANNEL_MAX,
        idle_time_out: i64 = -1,
        outgoing_locales: list[str] | None = None,
        incoming_locales: list[str] | None = None,
        offered_capabilities: list[str] | None = None,
        desired_capabilities: list[str] | None = None,
        properties: dict[str, object] | None = None,
    ) -> None:
        self.container_id: Final = container_id
        self.hostname: Final = hostname
        self.max_frame_size: Final[i64] = max_frame_size
        self.channel_max: Final[i64] = channel_max
        self.idle_time_out: Final[i64] = idle_time_out
        self.outgoing_locales: Final = _texts(outgoing_locales)
        self.incoming_locales: Final = _texts(incoming_locales)
        self.offered_capabilities: Final = _texts(offered_capabilities)
        self.desired_capabilities: Final = _texts(desired_capabilities)
        self.properties: Final = _fields(properties)

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.string(self.container_id)
        fields.string(self.hostname)
        fields.uint(self.max_frame_size, UINT_MAX)
        fields.ushort(self.channel_max, CHANNEL_MAX)
        fields.uint(self.idle_time_out)
        fields.symbols(self.outgoing_locales)
        fields.symbols(self.incoming_locales)
        fields.symbols(self.offered_capabilities)
        fields.symbols(self.desired_capabilities)
        fields.fields(self.properties)
        fields.close(out, OPEN)


def read_open(data: bytes, at: i64, end: i64) -> Open:
    fields = FieldReader(data, at, end, "open")
    performative = Open(
        container_id=fields.require_string("container-id"),
        hostname=fields.string(),
        max_frame_size=fields.uint(UINT_MAX),
        channel_max=fields.ushort(CHANNEL_MAX),
        idle_time_out=fields.optional_uint(),
        outgoing_locales=fields.symbols(),
        incoming_locales=fields.symbols(),
        offered_capabilities=fields.symbols(),
        desired_capabilities=fields.symbols(),
        properties=fields.fields(),
    )
    fields.close()
    return performative


@final
class Begin(Performative):
    """The performative begin, 2.7.2."""

    def __init__(
        self,
        *,
        # fields without a default are first: mypyc 2.4.1 fails on them after a number that has one
        next_outgoing_id: i64,
        incoming_window: i64,
        outgoing_window: i64,
        remote_channel: i64 = -1,
        handle_max: i64 = UINT_MAX,
        offered_capabilities: list[str] | None = None,
        desired_capabilities: list[str] | None = None,
        properties: dict[str, object] | None = None,
    ) -> None:
        self.remote_channel: Final[i64] = remote_channel
        self.next_outgoing_id: Final[i64] = next_outgoing_id
        self.incoming_window: Final[i64] = incoming_window
        self.outgoing_window: Final[i64] = outgoing_window
        self.handle_max: Final[i64] = handle_max
        self.offered_capabilities: Final = _texts(offered_capabilities)
        self.desired_capabilities: Final = _texts(desired_capabilities)
        self.properties: Final = _fields(properties)

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.ushort(self.remote_channel)
        fields.uint(self.next_outgoing_id)
        fields.uint(self.incoming_window)
        fields.uint(self.outgoing_window)
        fields.uint(self.handle_max, UINT_MAX)
        fields.symbols(self.offered_capabilities)
        fields.symbols(self.desired_capabilities)
        fields.fields(self.properties)
        fields.close(out, BEGIN)


def read_begin(data: bytes, at: i64, end: i64) -> Begin:
    fields = FieldReader(data, at, end, "begin")
    performative = Begin(
        remote_channel=fields.ushort(-1),
        next_outgoing_id=fields.require_uint("next-outgoing-id"),
        incoming_window=fields.require_uint("incoming-window"),
        outgoing_window=fields.require_uint("outgoing-window"),
        handle_max=fields.uint(UINT_MAX),
        offered_capabilities=fields.symbols(),
        desired_capabilities=fields.symbols(),
        properties=fields.fields(),
    )
    fields.close()
    return performative


@final
class Attach(Performative):
    """The performative attach, 2.7.3. `max_message_size` 0 is no limit.

    `fault` is the reason that a terminus that was read cannot be honoured: the link must be
    refused with it, and that terminus is None here.
    """

    def __init__(
        self,
        *,
        name: str,
        handle: i64,
        role: bool,
        snd_settle_mode: i64 = SND_MIXED,
        rcv_settle_mode: i64 = RCV_FIRST,
        source: Source | None = None,
        target: Target | Coordinator | None = None,
        unsettled: bytes | None = None,
        incomplete_unsettled: bool = False,
        initial_delivery_count: i64 = -1,
        max_message_size: i64 = 0,
        offered_capabilities: list[str] | None = None,
        desired_capabilities: list[str] | None = None,
        properties: dict[str, object] | None = None,
        fault: LinkFault | None = None,
    ) -> None:
        self.name: Final = name
        self.handle: Final[i64] = handle
        self.role: Final = role
        self.snd_settle_mode: Final[i64] = snd_settle_mode
        self.rcv_settle_mode: Final[i64] = rcv_settle_mode
        self.source: Final = source
        self.target: Final = target
        self.unsettled = unsettled
        self.has_unsettled: Final = unsettled is not None
        self.incomplete_unsettled = incomplete_unsettled
        self.initial_delivery_count: Final[i64] = initial_delivery_count
        self.max_message_size: Final[i64] = max_message_size
        self.offered_capabilities: Final = _texts(offered_capabilities)
        self.desired_capabilities: Final = _texts(desired_capabilities)
        self.properties: Final = _fields(properties)
        self.fault: Final = fault

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.string(self.name)
        fields.uint(self.handle)
        fields.require_boolean(self.role)
        fields.ubyte(self.snd_settle_mode, SND_MIXED)
        fields.ubyte(self.rcv_settle_mode, RCV_FIRST)
        if self.source is None:
            fields.skip()
        else:
            self.source.write(fields.field())
        if self.target is None:
            fields.skip()
        else:
            self.target.write(fields.field())
        fields.raw(self.unsettled)
        fields.boolean(self.incomplete_unsettled)
        fields.uint(self.initial_delivery_count)
        fields.ulong(self.max_message_size, 0)
        fields.symbols(self.offered_capabilities)
        fields.symbols(self.desired_capabilities)
        fields.fields(self.properties)
        fields.close(out, ATTACH)


def read_attach(data: bytes, at: i64, end: i64) -> Attach:
    fields = FieldReader(data, at, end, "attach")
    name = fields.require_string("name")
    handle = fields.require_uint("handle")
    role = fields.require_boolean("role")
    snd_settle_mode = fields.choice("snd-settle-mode", SND_MIXED, SND_MIXED)
    rcv_settle_mode = fields.choice("rcv-settle-mode", RCV_FIRST, RCV_SECOND)
    source: Source | None = None
    target: Target | Coordinator | None = None
    fault: LinkFault | None = None
    try:
        source = _source_at(data, fields.composite(), fields.end)
    except LinkFault as problem:
        fault = problem
    try:
        target = _target_at(data, fields.composite(), fields.end)
    except LinkFault as problem:
        fault = problem
    performative = Attach(
        name=name,
        handle=handle,
        role=role,
        snd_settle_mode=snd_settle_mode,
        rcv_settle_mode=rcv_settle_mode,
        source=source,
        target=target,
        unsettled=fields.map(),
        incomplete_unsettled=fields.boolean(False),
        initial_delivery_count=fields.optional_uint(),
        max_message_size=fields.ulong(0),
        offered_capabilities=fields.symbols(),
        desired_capabilities=fields.symbols(),
        properties=fields.fields(),
        fault=fault,
    )
    fields.close()
    return performative


def _source_at(data: bytes, at: i64, end: i64) -> Source | None:
    if at < 0:
        return None
    code, at = descriptor_at(data, at, end)
    if code != SOURCE:
        raise malformed("attach: source is something else")
    return read_source(data, at, end)


def _target_at(data: bytes, at: i64, end: i64) -> Target | Coordinator | None:
    if at < 0:
        return None
    code, at = descriptor_at(data, at, end)
    if code == TARGET:
        return read_target(data, at, end)
    if code == COORDINATOR:
        return read_coordinator(data, at, end)
    raise malformed("attach: target is something else")


@final
class Flow(Performative):
    """The performative flow, 2.7.4."""

    def __init__(
        self,
        *,
        incoming_window: i64,
        next_outgoing_id: i64,
        outgoing_window: i64,
        next_incoming_id: i64 = -1,
        handle: i64 = -1,
        delivery_count: i64 = -1,
        link_credit: i64 = -1,
        available: i64 = -1,
        drain: bool = False,
        echo: bool = False,
        properties: dict[str, object] | None = None,
    ) -> None:
        self.next_incoming_id: Final[i64] = next_incoming_id
        self.incoming_window: Final[i64] = incoming_window
        self.next_outgoing_id: Final[i64] = next_outgoing_id
        self.outgoing_window: Final[i64] = outgoing_window
        self.handle: Final[i64] = handle
        self.delivery_count: Final[i64] = delivery_count
        self.link_credit: Final[i64] = link_credit
        self.available: Final[i64] = available
        self.drain: Final = drain
        self.echo: Final = echo
        self.properties: Final = _fields(properties)

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.uint(self.next_incoming_id)
        fields.uint(self.incoming_window)
        fields.uint(self.next_outgoing_id)
        fields.uint(self.outgoing_window)
        fields.uint(self.handle)
        fields.uint(self.delivery_count)
        fields.uint(self.link_credit)
        fields.uint(self.available)
        fields.boolean(self.drain)
        fields.boolean(self.echo)
        fields.fields(self.properties)
        fields.close(out, FLOW)


def read_flow(data: bytes, at: i64, end: i64) -> Flow:
    fields = FieldReader(data, at, end, "flow")
    performative = Flow(
        next_incoming_id=fields.optional_uint(),
        incoming_window=fields.require_uint("incoming-window"),
        next_outgoing_id=fields.require_uint("next-outgoing-id"),
        outgoing_window=fields.require_uint("outgoing-window"),
        handle=fields.optional_uint(),
        delivery_count=fields.optional_uint(),
        link_credit=fields.optional_uint(),
        available=fields.optional_uint(),
        drain=fields.boolean(False),
        echo=fields.boolean(False),
        properties=fields.fields(),
    )
    fields.close()
    return performative


@final
class Detach(Performative):
    """The performative detach, 2.7.7."""

    def __init__(self, *, handle: i64, closed: bool = False, error: Error | None = None) -> None:
        self.handle: Final[i64] = handle
        self.closed: Final = closed
        self.error: Final = error

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.uint(self.handle)
        fields.boolean(self.closed)
        _put_error(fields, self.error)
        fields.close(out, DETACH)


def read_detach(data: bytes, at: i64, end: i64) -> Detach:
    fields = FieldReader(data, at, end, "detach")
    performative = Detach(
        handle=fields.require_uint("handle"),
        closed=fields.boolean(False),
        error=error_at(data, fields.composite(), fields.end),
    )
    fields.close()
    return performative


@final
class End(Performative):
    """The performative end, 2.7.8."""

    def __init__(self, *, error: Error | None = None) -> None:
        self.error: Final = error

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        _put_error(fields, self.error)
        fields.close(out, END)


def read_end(data: bytes, at: i64, end: i64) -> End:
    fields = FieldReader(data, at, end, "end")
    performative = End(error=error_at(data, fields.composite(), fields.end))
    fields.close()
    return performative


@final
class Close(Performative):
    """The performative close, 2.7.9."""

    def __init__(self, *, error: Error | None = None) -> None:
        self.error: Final = error

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        _put_error(fields, self.error)
        fields.close(out, CLOSE)


def read_close(data: bytes, at: i64, end: i64) -> Close:
    fields = FieldReader(data, at, end, "close")
    performative = Close(error=error_at(data, fields.composite(), fields.end))
    fields.close()
    return performative


def _put_error(fields: FieldWriter, error: Error | None) -> None:
    if error is not None:
        error.write(fields.field())


def _texts(texts: list[str] | None) -> list[str]:
    return texts if texts is not None else []


def _fields(fields: dict[str, object] | None) -> dict[str, object]:
    return fields if fields is not None else {}
