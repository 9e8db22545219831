"""The commands `amqp-conformance` and `jms-broker conformance`, which are one: `run`, `compare`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from .asked import Asked
from .command import EXIT_STATUSES, run
from .comparison import compare

RUN: Final = "run"


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """Return `parameters`, changed so that the help of a flag shows no type."""
    for each in parameters:
        if getattr(each, "is_flag", False):  # arguments have no such attribute
            each.metavar = ""
    return parameters


class PlainCommand(TyperCommand):
    """A command whose help shows a type only for options that take a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


class DefaultGroup(TyperGroup):
    """A group of commands in which `run` need not be typed."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_command = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if is_command else [RUN, *args])


def of_options(options: type) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """Return a decorator: the command has the fields of the dataclass `options` as its options."""
    hints = get_type_hints(options, include_extras=True)
    parameters = [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=[] if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(options)
    ]

    def taking(command: Callable[[Any], None]) -> Callable[..., None]:
        @wraps(command)
        def told(**given: Any) -> None:
            command(options(**given))

        told.__annotations__ = hints
        vars(told)["__signature__"] = Signature(parameters)
        return told

    return taking


application = typer.Typer(
    cls=DefaultGroup,
    help=(
        "Test a broker, this one or another, against the rules of AMQP 1.0 and of JMS over it. The"
        " word `run` may be left out."
    ),
    add_completion=False,
    pretty_exceptions_enable=False,
)


@application.command(
    name=RUN,
    cls=PlainCommand,
    epilog=f"{EXIT_STATUSES} The command `compare` puts reports of --json side by side.",
)
@of_options(Asked)
def run_cases(asked: Asked) -> None:
    """Run the cases against a broker, and report which rules it keeps."""
    raise typer.Exit(run(asked))


@application.command(
    name="compare",
    cls=PlainCommand,
    epilog="Exit status: 0 done, 2 a file is no report of --json, or is not there, or a page could"
    " not be written.",
)
def compare_reports(
    reports: Annotated[
        list[Path], typer.Argument(help="Files that --json wrote, one for each broker.")
    ],
    html: Annotated[
        Path | None, typer.Option(help="Write a page for people.", show_default=False)
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a page in Markdown.", show_default=False)
    ] = None,
) -> None:
    """Compare the results of several brokers, or of several runs, clause by clause."""
    raise typer.Exit(compare(reports, html=html, markdown=markdown))


def main() -> None:
    """Run the program `amqp-conformance`."""
    application(prog_name="amqp-conformance")


if __name__ == "__main__":
    main()
