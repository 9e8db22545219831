"""The unsettled map of an attach (core 2.7.3): the state of each delivery of a link, by its tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from mypy_extensions import i64

from broker.amqp.constructors import open_compound, skip
from broker.amqp.decode import binary_at, malformed
from broker.amqp.encode import BytesWriter, put_binary, put_compound, put_null
from broker.amqp.errors import (
    INVALID_FIELD,
    NOT_IMPLEMENTED,
    RESOURCE_LIMIT_EXCEEDED,
    ConnectionFault,
    LinkFault,
)
from broker.amqp.limits import DELIVERY_TAG_SIZE_MAX, UNSETTLED_MAP_MAX
from broker.amqp.outcomes import DeliveryState, State, read_state

if TYPE_CHECKING:
    from broker.amqp.performatives import Attach

UnsettledStates: TypeAlias = list[tuple[bytes, State | None]]
"""Tags with their states, in the order in which a map lists them; None is null."""

PeerStates: TypeAlias = dict[bytes, DeliveryState | None] | None
"""The states in a peer's map by their tags, None if its attach has no map."""

MAP_OVERHEAD: Final[i64] = 32
"""Maximum bytes that a map adds to an attach beside its entries: its head, longer list sizes."""


def read_unsettled_map(encoded: bytes | None) -> PeerStates:
    """Return the states in a peer's map by their tags.

    A state that is null, or that the broker does not know, is None. Raise LinkFault if the map has
    more than UNSETTLED_MAP_MAX tags, or a key that is no tag.
    """
    if encoded is None:
        return None
    states: dict[bytes, DeliveryState | None] = {}
    count, at, end = open_compound(encoded, 0, i64(len(encoded)))
    if count > 2 * UNSETTLED_MAP_MAX:
        raise LinkFault(
            RESOURCE_LIMIT_EXCEEDED, f"an unsettled map has at most {UNSETTLED_MAP_MAX} deliveries"
        )
    for _ in range(count >> 1):
        state_at = skip(encoded, at, end)
        tag: bytes | None = None
        if encoded[at] == 0xA0 or encoded[at] == 0xB0:
            tag = binary_at(encoded, at, end)
        if tag is None or i64(len(tag)) > DELIVERY_TAG_SIZE_MAX:
            raise LinkFault(INVALID_FIELD, "a key of an unsettled map is a delivery-tag")
        at = state_at
        behind = skip(encoded, at, end)
        states[tag] = _state_at(encoded, at, behind)
        at = behind
    if at != end:
        raise malformed("attach: the size of unsettled does not match its content")
    return states


def _state_at(encoded: bytes, at: i64, end: i64) -> DeliveryState | None:
    if encoded[at] == 0x40:
        return None
    try:
        return read_state(encoded, at, end)
    except ConnectionFault as fault:
        if fault.condition != NOT_IMPLEMENTED:
            raise
        return None


def put_unsettled_map(attach: Attach, states: UnsettledStates, frame_size_max: i64) -> bool:
    """Put `states` into `attach`, as far as its frame has room; return whether all of them are in.

    If not, the attach says that its map is incomplete.
    """
    head = BytesWriter()
    attach.write(head)
    room = frame_size_max - i64(len(head)) - MAP_OVERHEAD
    content = BytesWriter()
    count: i64 = 0
    is_complete = True
    for tag, state in states:
        before = len(content)
        put_binary(content, tag)
        if state is None:
            put_null(content)
        else:
            state.write(content)
        if i64(len(content)) > room:
            content.truncate(before)
            is_complete = False
            break
        count += 2
    out = BytesWriter()
    put_compound(out, 0xC1, content, count=count)
    attach.unsettled = out.getvalue()
    attach.incomplete_unsettled = not is_complete
    return is_complete
