"""Entry points that need no connection: values and performatives, sections, frames.

Apart from "no exception but a Fault" they check that data after the end changes nothing, that
`skip` and `take_value` agree, and that a decoded value survives encoding and decoding.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from librt.strings import BytesWriter

from broker.amqp.constructors import skip
from broker.amqp.decode import (
    binary_at,
    bool_at,
    descriptor_at,
    symbol_at,
    take_bool,
    take_uint,
    take_value,
    text_at,
    uint_at,
    ulong_at,
)
from broker.amqp.descriptors import (
    COORDINATOR,
    DISPOSITION,
    ERROR,
    SASL_CHALLENGE,
    SASL_INIT,
    SASL_RESPONSE,
    SOURCE,
    TARGET,
    TRANSFER,
)
from broker.amqp.encode import put_value
from broker.amqp.errors import Fault
from broker.amqp.frames import HEAD_SIZE, body_at, frame_size
from broker.amqp.limits import FIELD_VALUES_MAX
from broker.amqp.outcomes import read_error, read_outcome, read_state
from broker.amqp.sasl_frames import read_sasl_challenge, read_sasl_init, read_sasl_response
from broker.amqp.sections import PROPERTIES_FIELDS, Sections, put_header
from broker.amqp.terminus import read_coordinator, read_source, read_target
from broker.amqp.transfer import Disposition, Transfer
from broker.jms import MappingError, Profile, decode, encode
from broker.message import read_message
from broker.tracing.trace_context import sampled_context
from tests.conformance.frames import READERS, Body
from tests.support.clock import SimulatedClock

BEHIND: Final = b"\x00\x53\x75\xa0\x01x\x45\x00\x53"
"""Bytes that may follow in the buffer, and must not be read."""

NOISE: Final = b"\xff" * 300

FRAME_MAX: Final = 1 << 20

COMPOSITES: Final[dict[int, Callable[[bytes, int, int], Body]]] = {
    **READERS,
    SASL_INIT: read_sasl_init,
    SASL_CHALLENGE: read_sasl_challenge,
    SASL_RESPONSE: read_sasl_response,
    SOURCE: read_source,
    TARGET: read_target,
    COORDINATOR: read_coordinator,
    ERROR: read_error,
}
CODES: Final = list(COMPOSITES)

TRACE_DIGITS: Final = 32 + 16

KEYS: Final = [b"x-opt-jms-dest", b"x-opt-jms-msg-type", b"k", b""]

Reader = Callable[[bytes, int, int], object]


def verdict(read: Reader, data: bytes, at: int, end: int) -> object:
    """Return the result of `read` on `data[at:end]`, or the condition alone if it is a Fault."""
    try:
        return read(data, at, end)
    except Fault as fault:
        return ("fault", fault.condition)


def written(composite: Body) -> bytes:
    out = BytesWriter()
    composite.write(out)
    return out.getvalue()


# -- decoder


def decoder(data: bytes) -> None:
    """Run `take_value`, `skip`, and the readers of single types and of every composite.

    A composite is read as its descriptor says, and also as one other type.
    """
    end = len(data)
    _value(data, end)
    for read in (text_at, symbol_at, binary_at):
        verdict(read, data, 0, end)
    for number in (uint_at, ulong_at, bool_at):
        _of_data_path(number, data, 0, False)
    for taken in (take_uint, take_bool):
        _of_data_path(taken, data, 0)
    try:
        code, at = descriptor_at(data, 0, end)
    except Fault:
        code, at = 0, 0
    for state in (read_state, read_outcome):
        verdict(state, data, 0, end)
    _composite(CODES[end % len(CODES)], data, int(at), end)
    if code in COMPOSITES:
        _composite(int(code), data, int(at), end)
    transfer_of(data, int(at), end)
    disposition_of(data, int(at), end)


def _of_data_path(read: Callable[..., object], *facts: object) -> None:
    """Run a reader whose callers check the size before, or expect an IndexError."""
    with suppress(Fault, IndexError):
        read(*facts)


def _value(data: bytes, end: int) -> None:
    try:
        behind: object = skip(data, 0, end)
    except Fault as fault:
        behind = fault.condition
    try:
        value, at = take_value(data + BEHIND, 0, end)
    except Fault:
        with suppress(Fault):
            take_value(data, 0, end, FIELD_VALUES_MAX)
        return
    assert at == behind, f"take_value ends at {at}, skip says {behind}"
    once = _encoded(value)
    again, _ = take_value(once, 0, len(once))
    assert _encoded(again) == once, "a value changes when it is written and read"


def _encoded(value: object) -> bytes:
    out = BytesWriter()
    put_value(out, value)
    return out.getvalue()


def _composite(code: int, data: bytes, at: int, end: int) -> None:
    read = COMPOSITES[code]
    try:
        composite = read(data, at, end)
    except Fault:
        return
    once = written(composite)
    again = read(once, int(descriptor_at(once, 0, len(once))[1]), len(once))
    assert written(again) == once, f"composite {code:#x} changes when it is written and read"


def facts_of(read: Reader, data: bytes, at: int, end: int) -> object:
    """Like `verdict`, but alike for every Fault: of two faults, either may be noticed first."""
    try:
        return read(data, at, end)
    except Fault:
        return "a fault"


def transfer_of(data: bytes, at: int, end: int) -> None:
    """Check that a transfer reads alike with any data after it.

    The hot path reads fields before it checks where the frame ends.
    """
    facts = facts_of(_transfer, data[:end], at, end)
    assert facts == facts_of(_transfer, data + BEHIND, at, end), "a transfer before another frame"
    assert facts == facts_of(_transfer, data + NOISE, at, end), "a transfer before noise"


def _transfer(data: bytes, at: int, end: int) -> object:
    read = Transfer()
    payload = read.read(data, at, end)
    assert at < payload <= end, "a payload outside of its frame"
    tag = read.tag(data)
    assert tag is None or len(tag) <= 32, "a delivery-tag of more than 32 bytes"
    state = None
    if read.state_at >= 0:
        state = verdict(_state, data, int(read.state_at), end)
    numbers = (read.handle, read.delivery_id, read.message_format, read.settled)
    return (payload, tag, state, numbers, read.more, read.rcv_settle_mode, read.aborted)


def disposition_of(data: bytes, at: int, end: int) -> None:
    """Check that a disposition reads alike with any data after it."""
    facts = facts_of(_disposition, data[:end], at, end)
    assert facts == facts_of(_disposition, data + BEHIND, at, end), "a disposition before a frame"
    assert facts == facts_of(_disposition, data + NOISE, at, end), "a disposition before noise"


def _disposition(data: bytes, at: int, end: int) -> object:
    read = Disposition()
    read.read(data, at, end)
    state = None
    if read.state_at >= 0:
        state = verdict(_state, data, int(read.state_at), end)
    return (read.role, read.first, read.last, read.settled, read.state_code, state)


def _state(data: bytes, at: int, end: int) -> object:
    return written(read_state(data, at, end))


# -- sections


def sections(data: bytes) -> None:
    """Read a message's sections, and everything that the broker asks of them."""
    start = len(BEHIND)
    end = start + len(data)
    found = Sections()
    alone = Sections()
    among = BEHIND + data + BEHIND
    refused = verdict(alone.read, data, 0, len(data))
    assert refused == verdict(found.read, among, start, end), "sections and what is around them"
    if refused is not None:
        return
    assert start <= found.start_kept <= found.end == end
    assert found.start_kept == start + alone.start_kept
    for field in range(PROPERTIES_FIELDS):
        with suppress(Fault):
            found.text(among, field)
    for key in KEYS:
        with suppress(Fault):
            found.annotation(among, key)
    _kept(alone, data)
    for profile in Profile:
        _as_jms(data, profile)


def _as_jms(data: bytes, profile: Profile) -> None:
    """Decode a JMS message; if that works, what is encoded again must decode alike."""
    try:
        once = encode(decode(data, now_ms=0, profile=profile))
    except MappingError:
        return
    again = encode(decode(once, now_ms=0, profile=profile))
    assert again == once, "a JMS message changes when it is written and read"


def _kept(found: Sections, data: bytes) -> None:
    """Check that the forwarded message decodes alike: our header and the bytes that are kept."""
    try:
        message = read_message(found, data, SimulatedClock())
    except Fault:  # the message is refused: its delivery time or its group is invalid
        return
    context = sampled_context(message)
    assert context is None or len(context.trace_id) + len(context.span_id) == TRACE_DIGITS
    out = BytesWriter()
    put_header(
        out,
        durable=message.durable,
        priority=message.priority,
        ttl=message.ttl_ms,
        first_acquirer=True,
        delivery_count=1,
    )
    whole = out.getvalue() + message.encoded
    again = Sections()
    again.read(whole, 0, len(whole))
    assert (again.durable, again.priority, again.ttl) == (found.durable, found.priority, found.ttl)
    assert again.absolute_expiry_time == found.absolute_expiry_time


# -- frames


def frames(data: bytes) -> None:
    """Read frame headers one after another, and the bodies of complete frames."""
    at = 0
    while len(data) - at >= HEAD_SIZE:
        try:
            size = int(frame_size(data, at, FRAME_MAX))
        except Fault:
            return
        assert HEAD_SIZE <= size <= FRAME_MAX
        body = int(body_at(data, at))
        assert at + HEAD_SIZE <= body <= at + size
        end = at + size
        if end > len(data):
            return
        if body < end:
            _body(data, body, end)
        at = end


def _body(data: bytes, at: int, end: int) -> None:
    try:
        code, behind = descriptor_at(data, at, end)
    except Fault:
        return
    if code == TRANSFER:
        transfer_of(data, int(behind), end)
    elif code == DISPOSITION:
        disposition_of(data, int(behind), end)
    elif code in COMPOSITES:
        read = COMPOSITES[int(code)]
        whole = verdict(lambda *facts: written(read(*facts)), data, int(behind), end)
        alone = verdict(lambda *facts: written(read(*facts)), data[:end], int(behind), end)
        assert whole == alone, "a frame and what is behind it"
