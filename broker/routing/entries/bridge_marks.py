"""The annotation with the names of the bridges that a message has passed.

A bridge adds its name in front of the bare message, which stays as it is (PRD-05). A message that
has passed a bridge is not passed by it again, nor by a ninth bridge: so loops end.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.decode import descriptor_at, open_compound
from broker.amqp.descriptors import MESSAGE_ANNOTATIONS
from broker.amqp.encode import (
    BytesWriter,
    put_compound,
    put_descriptor,
    put_string,
    put_symbol,
    put_value,
)
from broker.amqp.errors import Fault
from broker.amqp.limits import SECTIONS_BEFORE_BODY_MAX
from broker.amqp.sections import annotation_at
from broker.amqp.types import Map, Symbol, combined
from broker.message import Message, bytes_before_body, with_annotations

PASSED: Final = "x-opt-bridges"
PASSED_KEY: Final = b"x-opt-bridges"
"""The annotation: a list of strings, the name of the bridge that was passed first at its start."""

ORIGIN_ID: Final = "x-opt-bridge-id"
ORIGIN_ID_KEY: Final = b"x-opt-bridge-id"
"""The annotation by which a broker of another kind recognizes a message that comes twice."""

PASSED_MAX: Final = 8
"""Maximum bridges that a message passes."""

MARK_BYTES_MAX: Final[i64] = 1024
"""More bytes than the annotations of one bridge take."""


def passed_by(message: Message) -> list[str] | None:
    """Return the names of the bridges that `message` has passed, the first one at the start.

    None if its annotation is no list of strings.
    """
    encoded = message.encoded
    if message.opaque or not _is_annotated(encoded):
        return []
    try:
        end = i64(len(encoded))
        _, at = descriptor_at(encoded, 0, end)
        if annotation_at(encoded, at, end, PASSED_KEY) < 0:
            return []
        value = message.annotations().get(Symbol(PASSED))
    except Fault:
        return None
    if not isinstance(value, list):
        return None
    names: list[str] = []
    for each in value:
        if not isinstance(each, str):
            return None
        names.append(each)
    return names


def _is_annotated(encoded: bytes) -> bool:
    """Return whether message-annotations are the first section of `encoded`."""
    if len(encoded) < 3:
        return False
    if encoded[0] == 0 and encoded[1] == 0x53:
        return encoded[2] == MESSAGE_ANNOTATIONS
    try:
        code, _ = descriptor_at(encoded, 0, i64(len(encoded)))
    except Fault:
        return False
    return code == MESSAGE_ANNOTATIONS


def may_pass(message: Message, bridge: str) -> bool:
    """Return whether `message` may pass the bridge of that name.

    One whose annotation cannot be read may not: it could be in a loop.
    """
    names = passed_by(message)
    return names is not None and bridge not in names and len(names) < PASSED_MAX


@final
class BridgeMark:
    """The annotations that the bridge `name` adds; with `tells_id`, each message's id as well."""

    def __init__(self, name: str, *, tells_id: bool) -> None:
        self._name: Final = name
        self.tells_id: Final = tells_id
        pair = BytesWriter()
        put_symbol(pair, PASSED)
        put_value(pair, [name])
        self._pair: Final[bytes] = pair.getvalue()
        out = BytesWriter()
        put_descriptor(out, MESSAGE_ANNOTATIONS)
        put_compound(out, 0xC1, pair, count=2)
        self._section: Final[bytes] = out.getvalue()

    def marked(self, message: Message, origin_id: str) -> bytes | None:
        """Return the sections of `message` with the annotations; None if it has no room for them.

        `origin_id` counts only if this mark tells it. An opaque message stays as it is.
        """
        encoded = message.encoded
        if message.opaque:
            return encoded
        size = i64(len(encoded))
        most = SECTIONS_BEFORE_BODY_MAX - MARK_BYTES_MAX
        if size > most and bytes_before_body(encoded, 0) > most:
            return None
        if not _is_annotated(encoded):
            if self.tells_id:
                return self._spliced(BytesWriter(), 0, origin_id) + encoded
            return self._section + encoded
        try:
            _, at = descriptor_at(encoded, 0, size)
            is_there = annotation_at(encoded, at, size, PASSED_KEY) >= 0
            if is_there or (self.tells_id and annotation_at(encoded, at, size, ORIGIN_ID_KEY) >= 0):
                return self._replaced(message, origin_id)
            count, first, behind = open_compound(encoded, at, size)
        except Fault:
            return None
        content = BytesWriter()
        content.write(encoded[first:behind])
        return self._spliced(content, count, origin_id) + encoded[behind:]

    def _spliced(self, content: BytesWriter, count: i64, origin_id: str) -> bytes:
        """Return an annotations section of the `count` values in `content`, and this mark's."""
        content.write(self._pair)
        count += 2
        if self.tells_id:
            put_symbol(content, ORIGIN_ID)
            put_string(content, origin_id)
            count += 2
        out = BytesWriter()
        put_descriptor(out, MESSAGE_ANNOTATIONS)
        put_compound(out, 0xC1, content, count=int(count))
        return out.getvalue()

    def _replaced(self, message: Message, origin_id: str) -> bytes | None:
        """Return the sections of a message that another bridge has marked before."""
        names = passed_by(message)
        if names is None:
            return None
        listed: list[object] = [*names, self._name]
        pairs: list[tuple[object, object]] = [(Symbol(PASSED), listed)]
        if self.tells_id:
            pairs.append((Symbol(ORIGIN_ID), origin_id))
        try:
            return with_annotations(message.encoded, combined(message.annotations(), Map(pairs)))
        except Fault:
            return None
