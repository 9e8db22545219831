"""Encoded messages for cases, and the contents of received ones."""

from __future__ import annotations

from librt.strings import BytesWriter

from broker.amqp.decode import take_value
from broker.amqp.encode import put_binary, put_descriptor, put_value
from broker.amqp.types import Described, ULong

from .verdict import Failed


def section(code: int, value: object) -> bytes:
    """Return a section of a message: any value after a descriptor."""
    out = BytesWriter()
    put_descriptor(out, code)
    put_value(out, value)
    return out.getvalue()


def message(body: bytes = b"conformance", *before: bytes) -> bytes:
    """Return a message with one data section, after the sections `before`."""
    out = BytesWriter()
    put_descriptor(out, 0x75)
    put_binary(out, body)
    return b"".join(before) + out.getvalue()


def sections(payload: bytes) -> list[tuple[int, object]]:
    """Return descriptor and decoded value of each section of an encoded message."""
    found: list[tuple[int, object]] = []
    at = 0
    while at < len(payload):
        value, behind = take_value(payload, at, len(payload))
        if not isinstance(value, Described) or not isinstance(value.descriptor, ULong):
            raise Failed("a section of a message", payload[at : at + 32].hex())
        found.append((value.descriptor.value, value.value))
        at = int(behind)
    return found


def body_of(payload: bytes) -> bytes:
    """Return the content of a message's data sections."""
    return b"".join(
        value for code, value in sections(payload) if code == 0x75 and isinstance(value, bytes)
    )
