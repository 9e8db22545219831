"""Paths of URLs that end with the name of an entity."""

from __future__ import annotations

from starlette.convertors import PathConvertor, register_url_convertor


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
