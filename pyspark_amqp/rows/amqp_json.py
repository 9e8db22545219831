"""Values of any AMQP type as JSON, and back.

JSON's own values stand for AMQP's boolean, string, long, double, list and null; a long is written
without a point, a double with one. Every other type is an object of one member that names it:
`{"int": 5}`, `{"timestamp": 1700000000000}`, `{"binary": "c0ffee"}`, `{"map": [[key, value], …]}`.
"""

from __future__ import annotations

import json
import math
import struct
import uuid
from collections.abc import Callable
from typing import Final

from broker.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Integer,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

NAMES: Final[dict[type[object], str]] = {
    Byte: "byte",
    Short: "short",
    Int: "int",
    UByte: "ubyte",
    UShort: "ushort",
    UInt: "uint",
    ULong: "ulong",
    Char: "char",
    Timestamp: "timestamp",
}
"""Names of the types whose values are numbers in Python, except long."""

SURROGATES: Final = range(0xD800, 0xE000)
"""Code points of which Java makes chars, and that are no characters."""

DOUBLE: Final = struct.Struct(">d")
NOT_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_json(value: object) -> str:
    """Return the JSON text of a value of any AMQP type; raise ValueError for other types."""
    return json.dumps(_told(value), ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> object:
    """Return the value that `to_json` has written; raise ValueError if `text` is none."""
    try:
        return _meant(json.loads(text))
    except (TypeError, KeyError, RecursionError, struct.error) as error:
        raise ValueError(f"no AMQP value is {text:.100}: {error}") from None


def plain_json(values: object) -> str:
    """Return JSON for people and for Spark's JSON functions: types that JSON lacks are lost."""
    return json.dumps(_plain(values), ensure_ascii=False, separators=(",", ":"))


def text_of(value: object) -> str | None:
    """Return a value as text, without its type: JSON, a text as it is, None for null."""
    plain = _plain(value)
    if plain is None or isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def annotations_json(annotations: Map) -> str:
    """Return a JSON object by the names of annotations.

    The name of a key that is not a symbol, or a symbol that begins with `#`, is `#` and its JSON.
    """
    return json.dumps(
        {_key_text(key): _told(value) for key, value in annotations.pairs},
        ensure_ascii=False,
        separators=(",", ":"),
    )


def annotations_from_json(text: str) -> Map:
    """Return the annotations that `annotations_json` has written.

    Raise ValueError or TypeError if `text` is none.
    """
    told = json.loads(text)
    if not isinstance(told, dict):
        raise TypeError(f"annotations are a JSON object, not {text:.100}")
    return Map([(_key_meant(key), from_json(json.dumps(value))) for key, value in told.items()])


def _key_text(key: object) -> str:
    if isinstance(key, Symbol) and not key.text.startswith("#"):
        return key.text
    return f"#{to_json(key)}"


def _key_meant(key: str) -> object:
    return from_json(key[1:]) if key.startswith("#") else Symbol(key)


def _told(value: object) -> object:
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"double": _not_number(value)}
    if isinstance(value, Integer):
        return {NAMES[type(value)]: value.value}
    if isinstance(value, Float):
        number = value.value
        return {"float": number if math.isfinite(number) else _not_number(number)}
    if isinstance(value, bytes):
        return {"binary": value.hex()}
    if isinstance(value, list):
        return [_told(item) for item in value]
    if isinstance(value, dict):
        return {"map": [[_told(key), _told(held)] for key, held in value.items()]}
    if isinstance(value, Map):
        return {"map": [[_told(key), _told(held)] for key, held in value.pairs]}
    return _told_rare(value)


def _told_rare(value: object) -> object:
    if isinstance(value, uuid.UUID):
        return {"uuid": str(value)}
    if isinstance(value, Symbol):
        return {"symbol": value.text}
    if isinstance(value, Decimal):
        return {"decimal": value.raw.hex()}
    if isinstance(value, Described):
        return {"described": [_told(value.descriptor), _told(value.value)]}
    if isinstance(value, Array):
        descriptor = None if value.descriptor is None else _told(value.descriptor)
        items = [_told(item) for item in value.values]
        return {"array": [value.code, items, descriptor, value.zero_width_count]}
    raise ValueError(f"no AMQP value is a {type(value).__name__}")


def _not_number(value: float) -> str:
    """Return a name for NaN or an infinite value; for an unusual form of NaN, its bits."""
    if math.isnan(value):
        bits = DOUBLE.pack(value)
        return "NaN" if bits == DOUBLE.pack(math.nan) else f"0x{bits.hex()}"
    return "Infinity" if value > 0 else "-Infinity"


def _meant(told: object) -> object:
    if isinstance(told, list):
        return [_meant(item) for item in told]
    if not isinstance(told, dict):
        return told
    if len(told) != 1:
        raise ValueError(f"a type has one name, not {sorted(told)!r:.100}")
    [(name, value)] = told.items()
    return READERS[name](value)


def _number(value: object) -> float:
    if isinstance(value, str) and value.startswith("0x"):
        number: float
        (number,) = DOUBLE.unpack(bytes.fromhex(value[2:]))
        return number
    return NOT_NUMBERS[value] if isinstance(value, str) else float(value)  # type: ignore[arg-type]


def _described(parts: list[object]) -> Described:
    descriptor, value = (_meant(part) for part in parts)
    if not isinstance(descriptor, (ULong, Symbol)):
        raise TypeError(f"a descriptor is a symbol or a ulong, not {descriptor!r:.100}")
    return Described(descriptor, value)


def _array(parts: tuple[int, list[object], object, int]) -> Array:
    code, items, told, zero_width_count = parts
    descriptor = _meant(told)
    if descriptor is not None and not isinstance(descriptor, (ULong, Symbol)):
        raise TypeError(f"a descriptor is a symbol or a ulong, not {descriptor!r:.100}")
    values = [_meant(item) for item in items]
    return Array(code, values, descriptor=descriptor, zero_width_count=zero_width_count)


READERS: Final[dict[str, Callable[..., object]]] = {
    **{name: kind for kind, name in NAMES.items()},
    "double": _number,
    "float": lambda value: Float(_number(value)),
    "binary": bytes.fromhex,
    "map": lambda pairs: Map([(_meant(key), _meant(value)) for key, value in pairs]),
    "uuid": uuid.UUID,
    "symbol": Symbol,
    "decimal": lambda raw: Decimal(bytes.fromhex(raw)),
    "described": _described,
    "array": _array,
}


def _plain(value: object) -> object:
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, Float):
        value = value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_number(value)
    if isinstance(value, Char):
        # a lone surrogate, which Java has and UTF-8 has not, is told as by `to_json`
        return _told(value) if value.value in SURROGATES else chr(value.value)
    if isinstance(value, Integer):
        return value.value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(held) for key, held in value.items()}
    if isinstance(value, Map):
        return {str(_plain(key)): _plain(held) for key, held in value.pairs}
    if isinstance(value, (uuid.UUID, Symbol)):
        return str(value)
    return _told(value)
