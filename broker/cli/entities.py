"""The commands `list` and `show`, which work alike for all types of entities of a broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_NOT_FOUND, EXIT_USAGE, fail
from broker.cli.managing import BrokerAt, Count, Json, NodeKind, Pattern, at_broker
from broker.cli.printing import print_record, print_records

if TYPE_CHECKING:
    from broker.cli.requests import Requests

Kind = Annotated[
    NodeKind | None,
    typer.Option(
        help="The kind of NAME; needed only if a queue and a topic have that name.",
        show_default=False,
    ),
]
OneKind = Annotated[
    NodeKind | None, typer.Option(help="Only queues, or only topics.", show_default=False)
]


@dataclass(frozen=True)
class EntityTable:
    """The entities of a group of commands: their `types`, the columns of `list`, the help texts.

    `argument` is the name of the argument of `show`. Nodes have two types: their commands have the
    option --kind.
    """

    types: tuple[str, ...]
    columns: tuple[str, ...]
    list_help: str
    argument: str
    argument_help: str
    show_help: str

    def has_kinds(self) -> bool:
        """Return whether there are entities of several types."""
        return len(self.types) > 1

    def type_of(self, broker: Requests, name: str, kind: NodeKind | None) -> str:
        """Return the type of the entity `name`: `kind`, or for None the one that there is."""
        return kind_of(broker, name, kind) if self.has_kinds() else self.types[0]


def add_list(commands: Commands, table: EntityTable) -> None:
    """Add a command `list` to `commands`, which prints a line for each entity of `table`."""

    def list_entities(
        at: BrokerAt, *, pattern: str, count: int | None, json: bool, kind: NodeKind | None = None
    ) -> None:
        types = table.types if kind is None else (kind.value,)
        with at.opened() as broker:
            found = [broker.records(each, limit=count, filter=pattern) for each in types]
            records = islice(chain.from_iterable(found), count)
            # a refusal for topics leaves no queues on the output
            all_records = list(records) if table.has_kinds() else records
            print_records(all_records, table.columns, as_json=json)

    parameters = [
        _option("pattern", Pattern, "*"),
        *([_option("kind", OneKind, None)] if table.has_kinds() else []),
        _option("count", Count, None),
        _option("json", Json, False),
    ]
    commands.command("list", help=table.list_help)(_at_broker(list_entities, parameters))


def add_show(commands: Commands, table: EntityTable) -> None:
    """Add a command `show` to `commands`, which prints all attributes of one entity of `table`."""

    def show(at: BrokerAt, *, json: bool, kind: NodeKind | None = None, **argument: str) -> None:
        name = argument[table.argument]
        with at.opened() as broker:
            found = broker.ask("READ", table.type_of(broker, name, kind), name)
            print_record(found, as_json=json)

    wanted = Annotated[str, typer.Argument(help=table.argument_help, show_default=False)]
    parameters = [
        _option(table.argument, wanted, Parameter.empty),
        *([_option("kind", Kind, None)] if table.has_kinds() else []),
        _option("json", Json, False),
    ]
    commands.command("show", help=table.show_help)(_at_broker(show, parameters))


def _option(name: str, annotation: Any, default: object) -> Parameter:
    """Return a parameter of a command, as typer reads it."""
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation, default=default)


def _at_broker(command: Callable[..., None], parameters: list[Parameter]) -> Callable[..., None]:
    """Return `command` with `parameters` and the options of `BrokerAt`."""
    at = _option("at", BrokerAt, Parameter.empty)
    vars(command)["__signature__"] = Signature([at, *parameters])
    return at_broker(command)


def kind_of(broker: Requests, name: str, kind: NodeKind | None) -> str:
    """Return `kind`, or the kind of the node `name` if it is None.

    End the command if there is no such node, or both a queue and a topic.
    """
    if kind is not None:
        return kind.value
    found = [each.value for each in NodeKind if broker.find(each.value, name) is not None]
    if not found:
        fail(f"no queue or topic {name}", EXIT_NOT_FOUND)
    if len(found) > 1:
        fail(f"there are a queue and a topic {name}: say which with --kind", EXIT_USAGE)
    return found[0]
