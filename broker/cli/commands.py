"""Tables of commands whose help shows a type only for options that take a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """Return `parameters`; the help of those that are flags says `--all`, not `--all <bool>`."""
    for each in parameters:
        if getattr(each, "is_flag", False):  # arguments have no such attribute
            each.metavar = ""
    return parameters


class PlainCommand(TyperCommand):
    """A command with such a help. The option --help itself is one of the parameters."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """A command with commands below it, and such a help."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


class Commands(typer.Typer):
    """A `Typer` that makes all of its commands so."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"cls": PlainGroup, **options})

    def command(self, name: str | None = None, **options: Any) -> Callable[..., Any]:
        return super().command(name, **{"cls": PlainCommand, **options})
