"""Values of columns in the names of folders, such as `date=2026-01-31`, as Hive has them."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote

NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The value in the name of a folder of rows whose column is null or an empty text."""


def folder_values(folder: Path) -> dict[str, str | None]:
    """Return the values of the columns that are in the names of the folders of a relative path."""
    pairs = (part.partition("=") for part in folder.parts)
    return {name: None if value == NO_VALUE else unquote(value) for name, _, value in pairs}
