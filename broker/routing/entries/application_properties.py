"""Rewriting of the application-properties of an encoded message."""

from __future__ import annotations

from librt.strings import BytesWriter
from mypy_extensions import i64

from broker.amqp.decode import descriptor_at, malformed, skip, take_value
from broker.amqp.descriptors import APPLICATION_PROPERTIES
from broker.amqp.encode import put_descriptor, put_value
from broker.amqp.types import Map


def with_properties(
    encoded: bytes, added: list[tuple[object, object]], *, without: frozenset[str]
) -> bytes:
    """Return an encoded message with the properties `added`, and without its own in `without`.

    The section is left out if no property remains. Raise Fault if the message's own properties
    cannot be read.
    """
    start, end = _section(encoded)
    kept = [pair for pair in _pairs(encoded, start, end) if pair[0] not in without]
    pairs = kept + added
    return encoded[:start] + (_encoded(pairs) if pairs else b"") + encoded[end:]


def _section(encoded: bytes) -> tuple[i64, i64]:
    """Return the offsets of start and end of the section; its place, twice, if there is none."""
    at: i64 = 0
    end = i64(len(encoded))
    while at < end:
        code, value = descriptor_at(encoded, at, end)
        if code > APPLICATION_PROPERTIES:
            break
        behind = skip(encoded, value, end)
        if code == APPLICATION_PROPERTIES:
            return at, behind
        at = behind
    return at, at


def _pairs(encoded: bytes, start: i64, end: i64) -> list[tuple[object, object]]:
    if start == end:
        return []
    _, at = descriptor_at(encoded, start, end)
    value, _ = take_value(encoded, at, end)
    if not isinstance(value, Map):
        raise malformed("application-properties that are not a map")
    return value.pairs


def _encoded(pairs: list[tuple[object, object]]) -> bytes:
    out = BytesWriter()
    put_descriptor(out, APPLICATION_PROPERTIES)
    put_value(out, Map(pairs))
    return out.getvalue()
