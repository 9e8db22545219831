"""`jms-broker sink`: messages that queries have staged and not committed, and their last batch."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.entities import EntityTable, add_list, add_show
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import json_of

sinks = Commands(
    help="List and show sinks, drop what they have staged.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

SINKS: Final = EntityTable(
    types=("sink",),
    columns=(
        "name",
        "batch",
        "committed_at_ms",
        "staged",
        "staged_bytes",
        "stages",
        "staged_at_ms",
    ),
    list_help="Print the queries that have staged or committed something; batch -1 means none"
    " committed.",
    argument="query",
    argument_help="The query, by the name in the list.",
    show_help="Print everything about one sink.",
)

Query = Annotated[str, typer.Argument(help=SINKS.argument_help, show_default=False)]

add_list(sinks, SINKS)
add_show(sinks, SINKS)


@sinks.command()
@at_broker
def abort(
    at: BrokerAt,
    query: Query,
    batch: Annotated[
        int, typer.Argument(help="The batch that will not be committed.", min=0, show_default=False)
    ],
    json: Json = False,
) -> None:
    """Drop the messages staged for one batch; a commit of that batch then fails."""
    with at.opened() as broker:
        dropped = broker.ask("ABORT", "sink", query, batch=batch)["messages"]
    _tell(f"dropped {dropped} messages of batch {batch}", {"dropped": dropped}, as_json=json)


@sinks.command()
@at_broker
def forget(
    at: BrokerAt,
    query: Query,
    json: Json = False,
) -> None:
    """Drop all messages staged for a query, and the number of its last batch.

    Use it only for a query that will not continue: its batches, done again, would be there twice.
    """
    with at.opened() as broker:
        dropped = broker.ask("FORGET", "sink", query)["messages"]
    told = {"forgotten": query, "dropped": dropped}
    _tell(f"forgot {query}, and dropped {dropped} messages", told, as_json=json)


def _tell(line: str, told: dict[str, object], *, as_json: bool) -> None:
    typer.echo(json_of(told) if as_json else line)
