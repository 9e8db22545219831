"""The two performatives of the data path: transfer (core spec 2.7.5) and disposition (2.7.6).

A connection has one `Transfer` and one `Disposition` and reads every frame into
them, so nothing is allocated. Fields are read one after the other without a check
that each lies within the list; that is checked once, after the last of them.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, u8

from broker.amqp.composite import FieldWriter
from broker.amqp.decode import (
    descriptor_at,
    malformed,
    open_body,
    skip,
    take_bool,
    take_uint,
    u32_at,
)
from broker.amqp.descriptors import ACCEPTED as ACCEPTED_CODE
from broker.amqp.descriptors import DISPOSITION, TRANSFER
from broker.amqp.encode import BytesWriter, put_bool, put_descriptor, put_uint
from broker.amqp.errors import INVALID_FIELD, ConnectionFault
from broker.amqp.limits import DELIVERY_TAG_SIZE_MAX
from broker.amqp.outcomes import Accepted, State

TRANSFER_FIELDS: Final = 11
DISPOSITION_FIELDS: Final = 6


def _open(data: bytes, at: i64, end: i64, name: str) -> tuple[i64, i64, i64]:
    """Return count, first field and end of a performative's list."""
    if at < end:
        code = i64(data[at])
        if code == 0xC0 or code == 0xD0:
            return open_body(data, at + 1, end, code)
        if code == 0x45:
            return 0, at + 1, at + 1
    raise malformed(f"{name} is not a list")


def _take_state(data: bytes, at: i64, end: i64) -> tuple[i64, i64]:
    """Return the position of a delivery state, -1 for null, and the position after it."""
    behind = skip(data, at, end)
    code = i64(data[at])
    if code == 0x00:
        return at, behind
    if code == 0x40:
        return -1, behind
    raise malformed("a delivery state is not a described value")


@final
class Transfer:
    """The transfer frame that was read last.

    -1 means absent: a continuation may omit what the first frame stated (2.7.5).
    Positions are those of the data that was read.
    """

    def __init__(self) -> None:
        self.handle: i64 = -1
        self.delivery_id: i64 = -1
        self.tag_at: i64 = -1
        self.tag_size: i64 = 0
        self.message_format: i64 = -1
        self.settled: i64 = -1
        self.more: bool = False
        self.rcv_settle_mode: i64 = -1
        self.state_at: i64 = -1
        self.resume: bool = False
        self.aborted: bool = False
        self.batchable: bool = False

    def tag(self, data: bytes) -> bytes | None:
        """Return the delivery-tag within the data that was read, None if it is absent."""
        if self.tag_at < 0:
            return None
        return data[self.tag_at : self.tag_at + self.tag_size]

    def read(self, data: bytes, at: i64, end: i64) -> i64:
        """Read the transfer after its descriptor; return the position of its payload.

        `end` is the end of the frame. Raise ConnectionFault if the transfer is malformed.
        """
        count, first, behind = _open(data, at, end, "transfer")
        try:
            stop = self._read_fields(data, first, behind, count)
        except IndexError:
            raise malformed("transfer: a field is larger than its frame") from None
        if self.handle < 0:
            raise ConnectionFault(INVALID_FIELD, "transfer without handle")
        if stop != behind:
            raise malformed("transfer: its size does not match its fields")
        return behind

    def _read_fields(self, data: bytes, at: i64, end: i64, count: i64) -> i64:
        """Read the fields that senders usually set; leave the others to `_read_rest`."""
        self.handle = -1
        self.delivery_id = -1
        self.tag_at = -1
        self.tag_size = 0
        self.message_format = -1
        self.settled = -1
        self.more = False
        self.rcv_settle_mode = -1
        self.state_at = -1
        self.resume = False
        self.aborted = False
        self.batchable = False
        if count > 0:
            self.handle, at = take_uint(data, at)
        if count > 1:
            self.delivery_id, at = take_uint(data, at)
        if count > 2:
            at = self._read_tag(data, at)
        if count > 3:
            self.message_format, at = take_uint(data, at)
        if count > 4:
            self.settled, at = take_bool(data, at)
        if count > 5:
            more, at = take_bool(data, at)
            self.more = more > 0
        if count > 6:
            at = self._read_rest(data, at, end, count)
        return at

    def _read_tag(self, data: bytes, at: i64) -> i64:
        code = i64(data[at])
        if code == 0xA0:
            self.tag_at = at + 2
            self.tag_size = i64(data[at + 1])
        elif code == 0x40:
            return at + 1
        elif code == 0xB0:
            self.tag_at = at + 5
            self.tag_size = u32_at(data, at + 1)
        else:
            raise malformed("transfer: delivery-tag is not a binary")
        if self.tag_size > DELIVERY_TAG_SIZE_MAX:
            raise ConnectionFault(INVALID_FIELD, "transfer: delivery-tag of more than 32 bytes")
        return self.tag_at + self.tag_size

    def _read_rest(self, data: bytes, at: i64, end: i64, count: i64) -> i64:
        if count > TRANSFER_FIELDS:
            raise malformed("transfer has more than its fields")
        self.rcv_settle_mode, at = take_uint(data, at)
        if self.rcv_settle_mode > 1:
            raise ConnectionFault(INVALID_FIELD, "transfer: unknown rcv-settle-mode")
        if count > 7:
            self.state_at, at = _take_state(data, at, end)
        if count > 8:
            resume, at = take_bool(data, at)
            self.resume = resume > 0
        if count > 9:
            aborted, at = take_bool(data, at)
            self.aborted = aborted > 0
        if count > 10:
            batchable, at = take_bool(data, at)
            self.batchable = batchable > 0
        return at


@final
class Disposition:
    """The disposition frame that was read last.

    `role` is True for a receiver's, `last` is `first` if it is absent. `state_at` and
    `state_code` are the position and the descriptor of the state, -1 if there is none;
    `state_code` is -1, too, if the descriptor is unknown.
    """

    def __init__(self) -> None:
        self.role: bool = False
        self.first: i64 = -1
        self.last: i64 = -1
        self.settled: bool = False
        self.state_at: i64 = -1
        self.state_code: i64 = -1
        self.batchable: bool = False

    def read(self, data: bytes, at: i64, end: i64) -> None:
        """Read the disposition after its descriptor; `end` is the end of the frame.

        Raise ConnectionFault if it is malformed.
        """
        count, first, behind = _open(data, at, end, "disposition")
        if count > DISPOSITION_FIELDS:
            raise malformed("disposition has more than its fields")
        try:
            stop = self._read_fields(data, first, behind, count)
        except IndexError:
            raise malformed("disposition: a field is larger than its frame") from None
        if stop != behind:
            raise malformed("disposition: its size does not match its fields")

    def _read_fields(self, data: bytes, at: i64, end: i64, count: i64) -> i64:
        role: i64 = -1
        self.first = -1
        self.last = -1
        self.settled = False
        self.state_at = -1
        self.state_code = -1
        self.batchable = False
        if count > 0:
            role, at = take_bool(data, at)
        if count > 1:
            self.first, at = take_uint(data, at)
        if role < 0 or self.first < 0:
            raise ConnectionFault(INVALID_FIELD, "disposition without role or first")
        self.role = role > 0
        if count > 2:
            self.last, at = take_uint(data, at)
        if self.last < 0:
            self.last = self.first
        if count > 3:
            settled, at = take_bool(data, at)
            self.settled = settled > 0
        if count > 4:
            self.state_at, at = _take_state(data, at, end)
            if self.state_at >= 0:
                self.state_code, _ = descriptor_at(data, self.state_at, end)
        if count > 5:
            batchable, at = take_bool(data, at)
            self.batchable = batchable > 0
        return at


def put_transfer(
    out: BytesWriter,
    *,
    handle: i64,
    delivery_id: i64,
    settled: bool,
    message_format: i64,
    more: bool,
    state: State | None = None,
    tag: bytes = b"",
    resume: bool = False,
) -> None:
    """Write a transfer in that `state`, up to its payload (2.7.5).

    An empty `tag` stands for the delivery-id. `resume`: the peer has the delivery (2.6.13).
    """
    fields = FieldWriter()
    fields.uint(handle)
    fields.uint(delivery_id)
    fields.binary(tag or int(delivery_id).to_bytes(4, "big"))
    fields.uint(message_format)
    fields.require_boolean(settled)
    fields.require_boolean(more)
    fields.skip()
    if state is None:
        fields.skip()
    else:
        state.write(fields.field())
    fields.boolean(resume)
    fields.close(out, TRANSFER)


def put_aborted(
    out: BytesWriter,
    *,
    handle: i64,
    delivery_id: i64,
    settled: bool,
    message_format: i64,
    tag: bytes = b"",
    resume: bool = False,
) -> None:
    """Write a transfer that aborts its delivery, and settles it (2.7.5); tags as `put_transfer`."""
    fields = FieldWriter()
    fields.uint(handle)
    fields.uint(delivery_id)
    fields.binary(tag or int(delivery_id).to_bytes(4, "big"))
    fields.uint(message_format)
    fields.require_boolean(settled)
    for _ in ("more", "rcv-settle-mode", "state"):
        fields.skip()
    fields.boolean(resume)
    fields.require_boolean(True)
    fields.close(out, TRANSFER)


def put_disposition(
    out: BytesWriter,
    *,
    role: bool,
    first: i64,
    last: i64,
    settled: bool,
    state: State | None,
) -> None:
    """Write a disposition with its descriptor; `last` may be `first`."""
    if isinstance(state, Accepted):
        _put_accepted(out, first, last, role=role, settled=settled)
        return
    fields = FieldWriter()
    fields.require_boolean(role)
    fields.uint(first)
    fields.uint(last, first)
    fields.boolean(settled)
    if state is not None:
        state.write(fields.field())
    fields.close(out, DISPOSITION)


def _put_accepted(out: BytesWriter, first: i64, last: i64, *, role: bool, settled: bool) -> None:
    """Write the answer to nearly every delivery, without a buffer in between."""
    put_descriptor(out, DISPOSITION)
    start = len(out)
    out.append(0xC0)
    out.append(0)
    out.append(5)
    put_bool(out, role)
    put_uint(out, first)
    if last == first:
        out.append(0x40)
    else:
        put_uint(out, last)
    out.append(0x41 if settled else 0x42)
    put_descriptor(out, ACCEPTED_CODE)
    out.append(0x45)
    out[start + 1] = u8(len(out) - start - 2)
