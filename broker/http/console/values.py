"""Values as people read them: sizes, durations, times, and parts of messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode

from broker.amqp.types import Map
from broker.http.api.json_values import plain
from broker.http.console.listings import BYTES, DURATION, FLAG, NUMBER, TIME

UNITS: Final = ("KiB", "MiB", "GiB", "TiB")

STEP: Final = 1024

DUMP_MAX: Final = 4096
"""Maximum bytes that a page shows in hexadecimal."""

LINE: Final = 16
"""Bytes in a line of them."""

NOTHING: Final = "\N{EN DASH}"
"""Stands for a value that is missing."""


def size_text(size: int) -> str:
    """Return a number of bytes with its unit."""
    if size < STEP:
        return f"{size} B"
    power = 1
    while size >= STEP ** (power + 1) and power < len(UNITS):
        power += 1
    return f"{size / STEP**power:.1f} {UNITS[power - 1]}"


def duration_text(ms: int) -> str:
    """Return a duration of `ms` milliseconds in its two largest units."""
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms // 1000
    for name, length, smaller, part in (("d", 86_400, "h", 3600), ("h", 3600, "min", 60)):
        if seconds >= length:
            return f"{seconds // length} {name} {seconds % length // part} {smaller}"
    if seconds >= 60:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds} s"


def time_text(ms: int) -> str:
    """Return a time in ms since 1970, in UTC."""
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):  # a client may state any time
        return f"{ms} ms"


def shown(value: object, form: str = "") -> str:
    """Return a value as a cell of a table shows it."""
    if value is None or value == "":
        return NOTHING
    if form == FLAG or isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _number(value, form)
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(shown(each) for each in value) or NOTHING
    return _json(value)


def _number(value: int, form: str) -> str:
    if form == TIME:
        return time_text(value) if value > 0 else NOTHING
    if form == DURATION:
        return duration_text(value) if value > 0 else NOTHING
    if form == BYTES:
        return size_text(value)
    return f"{value:,}"


def form_of(attribute: str) -> str:
    """Return the form of an attribute by its name, as records of management are named."""
    if attribute.endswith(("_at_ms", "_at")) or attribute == "found_ms":
        return TIME
    if attribute.endswith("_ms"):
        return DURATION
    if attribute == "bytes" or attribute.endswith("_bytes") or attribute == "size":
        return BYTES
    return NUMBER


def table_of(value: object) -> list[tuple[str, str, str]]:
    """Return a section of a message as rows: the name, the type of AMQP, the value as text."""
    pairs = value.pairs if isinstance(value, Map) else []
    if isinstance(value, Mapping):
        pairs = list(value.items())
    return [
        (str(plain(name)), _type_of(each), each if isinstance(each, str) else _json(each))
        for name, each in pairs
        if each is not None
    ]


def _json(value: object) -> str:
    return json.dumps(plain(value), ensure_ascii=False)


def _type_of(value: object) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "double"), (str, "string")):
        if isinstance(value, kind):
            return name
    return "binary" if isinstance(value, bytes) else type(value).__name__.lower()


def dump(data: bytes) -> str:
    """Return the first DUMP_MAX bytes in hexadecimal, with their characters."""
    lines = []
    for at in range(0, min(len(data), DUMP_MAX), LINE):
        piece = data[at : at + LINE]
        characters = "".join(chr(each) if 32 <= each < 127 else "." for each in piece)
        lines.append(f"{at:06x}  {piece.hex(' '):<47}  {characters}")
    return "\n".join(lines)


def address_of(path: str, name: str = "", /, **query: object) -> str:
    """Return the URL of a page of the console; empty parameters are left out."""
    url = f"/console{path}"
    if name:
        url += f"/{quote(name, safe='')}"
    pairs = [(key, str(value)) for key, value in query.items() if value not in ("", None)]
    return f"{url}?{urlencode(pairs)}" if pairs else url
