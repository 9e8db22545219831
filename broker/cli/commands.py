"""Tables of commands whose help shows a type only for options that take a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

ARGUMENTS: Final = "broker.cli.arguments"
"""Key of the metadata of click's context: the arguments of the command, as they were typed."""


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """Return `parameters`, changed so that the help of flags says `--all`, not `--all <bool>`."""
    for each in parameters:
        if getattr(each, "is_flag", False):  # arguments have no such attribute
            each.metavar = ""
    return parameters


class PlainCommand(TyperCommand):
    """A command whose help shows no type for flags; the option --help is one of them."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """A group of commands whose help shows no type for flags.

    The outermost group keeps the arguments of the whole command in the context, as ARGUMENTS.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta.setdefault(ARGUMENTS, list(args))
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


class Commands(typer.Typer):
    """A `Typer` whose groups and commands show no type for flags."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"cls": PlainGroup, **options})

    def command(self, name: str | None = None, **options: Any) -> Callable[..., Any]:
        return super().command(name, **{"cls": PlainCommand, **options})
