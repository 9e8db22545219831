"""`jms-broker bridge`: list, show, pause and resume bridges to other brokers."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.entities import EntityTable, add_list, add_show
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import json_of

bridges = Commands(
    help="List, show, pause and resume bridges to other brokers.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

BRIDGES: Final = EntityTable(
    types=("bridge",),
    columns=("name", "source", "target", "url", "state", "held", "moved", "error"),
    list_help="Print the bridges whose name matches PATTERN, sorted by name, with their states.",
    argument="name",
    argument_help="The bridge, as in the list.",
    show_help="Print everything about one bridge.",
)

Name = Annotated[str, typer.Argument(help=BRIDGES.argument_help, show_default=False)]

add_list(bridges, BRIDGES)
add_show(bridges, BRIDGES)


@bridges.command()
@at_broker
def pause(at: BrokerAt, name: Name, json: Json = False) -> None:
    """Let a bridge take no more messages, until it is resumed or the broker is started again."""
    with at.opened() as broker:
        broker.ask("PAUSE", "bridge", name)
    typer.echo(json_of({"paused": name}) if json else f"paused {name}")


@bridges.command()
@at_broker
def resume(at: BrokerAt, name: Name, json: Json = False) -> None:
    """Let a bridge take messages again; one that waits for its next attempt begins it at once."""
    with at.opened() as broker:
        broker.ask("RESUME", "bridge", name)
    typer.echo(json_of({"resumed": name}) if json else f"resumed {name}")
