"""Paths of URLs that end with the name of an entity."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.convertors import PathConvertor, register_url_convertor

NOT_UTF8: Final = "the path must be UTF-8, percent-encoded"


class NamePathConvertor(PathConvertor):
    """Like Starlette's `path`, but also matches line ends.

    A path with one must get the response of the part of the server that it was sent to.
    """

    regex = r"[\s\S]*"


def accept_line_ends_in_paths() -> None:
    """Let `{name:path}` and mounts match line ends, in routes that are made from now on.

    The convertors of Starlette belong to the whole process.
    """
    register_url_convertor("path", NamePathConvertor())


def is_utf8(raw_path: bytes) -> bool:
    """Return whether a percent-encoded path is UTF-8: else its names would be taken for others."""
    try:
        unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError:
        return False
    return True
