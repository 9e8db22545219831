"""Finds out whether this process runs the compiled broker or the interpreted one."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import Final

ENGINE: Final = "broker.amqp.connection"
"""The module that is looked at in place of all modules that the wheel compiles together."""

BUILD: Final = "build"
"""The property of the broker's `open` that gives clients the `build_kind`."""

COMPILED: Final = "compiled"
INTERPRETED: Final = "interpreted"

SLOWER: Final = "interpreted, at about a twentieth of the compiled broker's speed"
"""The text of `--version` and `healthcheck` for an interpreted broker."""


def is_compiled(module: str = ENGINE) -> bool:
    """Return whether `module` is machine code, made by mypyc. The module is not imported."""
    found = find_spec(module)
    return found is not None and str(found.origin).endswith(tuple(EXTENSION_SUFFIXES))


def build_kind() -> str:
    """Return "compiled" or "interpreted", for `--version`, the log and the broker's `open`."""
    return COMPILED if is_compiled() else INTERPRETED
