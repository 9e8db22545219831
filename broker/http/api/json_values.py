"""Values of management as JSON: AMQP has types that JSON lacks."""

from __future__ import annotations

import binascii
import json
import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from broker.amqp.types import Array, Decimal, Described, Float, Integer, Map, Symbol
from broker.management.request import BAD_REQUEST, Refused
from broker.management.stretches import in_portions

BINARY: Final = "base64"
"""The only name of an object that stands for binary data."""

SAFE_INTEGER: Final = 2**53
"""Numbers from here on are texts, because programs read the numbers of JSON as doubles."""


def encoded(value: object) -> bytes:
    """Return `value` as JSON."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False).encode(
        errors="backslashreplace"
    )


async def encoded_in_portions(value: object) -> bytes:
    """Return `value` as JSON; the lists in it are encoded in portions, beside other work."""
    if not isinstance(value, Mapping):
        return encoded(value)
    pairs = [
        encoded(str(name)) + b": " + (await _list_in_portions(each))
        if isinstance(each, list)
        else encoded({name: each})[1:-1]
        for name, each in value.items()
    ]
    return b"{" + b", ".join(pairs) + b"}"


async def _list_in_portions(items: list[object]) -> bytes:
    parts = [encoded(each) async for portion in in_portions(items) for each in portion]
    return b"[" + b", ".join(parts) + b"]"


def decoded(value: object) -> object:
    """Return a value of JSON with binary data, `{"base64": …}`, as bytes; Refused if it is none."""
    if isinstance(value, dict):
        if list(value) == [BINARY] and isinstance(value[BINARY], str):
            try:
                return b64decode(value[BINARY], validate=True)
            except (binascii.Error, ValueError):
                raise Refused(BAD_REQUEST, f"{BINARY} must be binary data in base64") from None
        return {name: decoded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [decoded(each) for each in value]
    return value


def plain(value: object) -> object:
    """Return `value` with types of JSON alone.

    Binary is `{"base64": …}`, a described value `{"descriptor": …, "value": …}`, a map whose keys
    are no texts a list of pairs. Numbers that doubles cannot hold are texts.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integer | Float):
        return plain(value.value)
    if isinstance(value, int):
        return value if -SAFE_INTEGER < value < SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    return _amqp(value)


def _amqp(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return {BINARY: b64encode(value).decode()}
    if isinstance(value, Symbol):
        return value.text
    if isinstance(value, Map):
        pairs = [(plain(key), plain(each)) for key, each in value.pairs]
        named = {key: each for key, each in pairs if isinstance(key, str)}
        # a symbol and a text may be two keys of one name
        return named if len(named) == len(pairs) else [list(pair) for pair in pairs]
    if isinstance(value, Array):
        return [plain(each) for each in value.values]
    if isinstance(value, Described):
        return {"descriptor": plain(value.descriptor), "value": plain(value.value)}
    if isinstance(value, Decimal):
        return {BINARY: b64encode(value.raw).decode()}
    if isinstance(value, UUID):
        return str(value)
    return str(value)
