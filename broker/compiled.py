"""Whether this process runs the compiled broker or the interpreted one."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import Final

ENGINE: Final = "broker.amqp.connection"
"""Compiled or not, it stands for all modules that the wheel compiles together."""

BUILD: Final = "build"
"""The property of our `open` that says to clients which of the two this is."""

COMPILED: Final = "compiled"
INTERPRETED: Final = "interpreted"

SLOWER: Final = "interpreted, at about a twentieth of the compiled broker's speed"
"""How `--version` and `healthcheck` put it to people."""


def is_compiled(module: str = ENGINE) -> bool:
    """Return True if `module` is machine code, made by mypyc. The module is not imported."""
    found = find_spec(module)
    return found is not None and str(found.origin).endswith(tuple(EXTENSION_SUFFIXES))


def build_kind() -> str:
    """Return "compiled" or "interpreted": what `--version`, the log and our `open` say."""
    return COMPILED if is_compiled() else INTERPRETED
