"""Values of AMQP in JSON's types, whether proton or the HTTP API has decoded them."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import UUID


def plain(value: object) -> object:
    """Return `value` in JSON's types. Binary becomes {"base64": …}, to be distinct from text."""
    match value:
        case bytes() | bytearray() | memoryview():
            return {"base64": base64.b64encode(bytes(value)).decode()}
        case dict():
            return {_key(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case UUID():
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case _:
            return _plain_of_proton(value)


def _plain_of_proton(value: Any) -> object:
    """Return a value of proton's Array or Described, or of another class, in JSON's types.

    They are known by their attributes, since proton need not be installed.
    """
    if hasattr(value, "elements"):
        return [plain(item) for item in value.elements]
    if hasattr(value, "descriptor"):
        return {"descriptor": plain(value.descriptor), "value": plain(value.value)}
    return str(value)


def _key(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(plain(key))
