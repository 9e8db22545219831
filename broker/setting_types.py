"""Types of settings: numbers with their limits, the paths of files, and the URL of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

UINT_MAX: Final = 2**32 - 1

BALLAST_MIN: Final = 1024 * 1024
"""Minimum bytes of a ballast: with less a store could not even begin a new log."""

MEMORY: Final = "memory"
SQLITE: Final = "sqlite:///"
POSTGRESQL: Final = "postgresql://"


def _no_flag(value: object) -> object:
    """Raise ValueError for a boolean: Python counts `true` as 1, an operator does not."""
    if isinstance(value, bool):
        raise ValueError("Input should be a number")  # noqa: TRY004 - pydantic reports no other
    return value


def _store(value: str) -> str:
    """Raise ValueError unless `value` is `memory`, an SQLite file or a PostgreSQL database."""
    if value == MEMORY:
        return value
    if value.startswith(POSTGRESQL):
        if not urlsplit(value).path.strip("/"):
            raise ValueError(f"Input should be {POSTGRESQL}HOST/DATABASE: it names no database")
        return value
    if not value.removeprefix(SQLITE).strip("/"):
        raise ValueError(f"Input should be {MEMORY!r}, or {SQLITE}PATH with the path of a file")
    if not value.startswith(SQLITE):
        raise ValueError(
            f"Input should be {MEMORY!r}, {SQLITE}PATH or {POSTGRESQL}USER@HOST/DATABASE"
        )
    return value


def _file(value: Path) -> Path:
    """Raise ValueError for an empty path, which would be the current folder."""
    if value == Path():
        raise ValueError(
            "Input should be the path of a file: leave the setting out for its default"
        )
    return value


def _ballast(value: int) -> int:
    """Raise ValueError for a ballast that is too small for any commit; 0 is none."""
    if 0 < value < BALLAST_MIN:
        raise ValueError(f"Input should be 0, or at least {BALLAST_MIN}")
    return value


FilePath = Annotated[Path, AfterValidator(_file)]
Number = Annotated[int, BeforeValidator(_no_flag)]
Uint = Annotated[Number, Field(ge=0, le=UINT_MAX)]
Factor = Annotated[float, BeforeValidator(_no_flag), Field(ge=1, le=100)]
Count = Annotated[Number, Field(ge=0, le=2**53)]
Window = Annotated[Number, Field(ge=0, le=1_000_000)]
Ballast = Annotated[Count, AfterValidator(_ballast)]
"""Bytes that a store keeps on the disk for its last commits."""

Port = Annotated[Number, Field(ge=1, le=65535)]
"""A port that clients know."""

StoreUrl = Annotated[str, AfterValidator(_store)]
"""The store of messages: `memory`, an SQLite file or a PostgreSQL database."""
