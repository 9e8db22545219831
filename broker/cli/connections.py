"""`jms-broker connection`: the connections of a running broker."""

from __future__ import annotations

from typing import Annotated

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.managing import BrokerAt, Count, Json, Pattern, at_broker
from broker.cli.printing import json_of, print_record, print_records

connections = Commands(
    help="List, show and close connections.", epilog=EXIT_STATUSES, no_args_is_help=True
)

COLUMNS = (
    *("identity", "name", "user", "claimed_user", "address", "links"),
    *("unsettled", "oldest_unsettled_ms", "output_blocked_ms"),
)
LINK_COLUMNS = (
    *("session", "role", "address", "credit", "unsettled", "oldest_unsettled_ms", "name"),
)

Identity = Annotated[
    str, typer.Argument(help="The connection's number, as in the list.", show_default=False)
]


@connections.command("list")
@at_broker
def list_connections(
    at: BrokerAt,
    pattern: Pattern = "*",
    count: Count = None,
    json: Json = False,
) -> None:
    """Print the connections whose container-id matches PATTERN, sorted by it."""
    with at.opened() as broker:
        records = broker.records("connection", limit=count, filter=pattern)
        print_records(records, COLUMNS, as_json=json)


@connections.command()
@at_broker
def show(
    at: BrokerAt,
    identity: Identity,
    json: Json = False,
) -> None:
    """Print a connection and its links, the links sorted by address."""
    with at.opened() as broker:
        record = broker.ask("READ", "connection", identity)
        links = list(broker.records("link", connection=identity))
    if json:
        print_record({**record, "links": links}, as_json=True)
        return
    print_record(record, as_json=False)
    typer.echo()
    print_records(links, LINK_COLUMNS, as_json=False)


@connections.command()
@at_broker
def close(
    at: BrokerAt,
    identity: Identity,
    reason: Annotated[
        str | None, typer.Option(help="What its client is told.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Close a connection with amqp:connection:forced. Its client may connect again."""
    with at.opened() as broker:
        broker.ask("DELETE", "connection", identity, reason=reason)
    typer.echo(json_of({"closed": identity}) if json else f"closed {identity}")
