"""`jms-broker connection`: the connections of a running broker."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.entities import EntityTable, add_list
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import json_of, print_record, print_records

connections = Commands(
    help="List, show and close connections.", epilog=EXIT_STATUSES, no_args_is_help=True
)

CONNECTIONS: Final = EntityTable(
    types=("connection",),
    columns=(
        *("identity", "name", "user", "claimed_user", "address", "links"),
        *("unsettled", "oldest_unsettled_ms", "output_blocked_ms"),
    ),
    list_help="Print the connections whose container-id matches PATTERN, sorted by it.",
    argument="identity",
    argument_help="The connection's number, as in the list.",
    show_help="Print a connection and its links, the links sorted by address.",
)
LINK_COLUMNS = (
    *("session", "role", "address", "credit", "unsettled", "oldest_unsettled_ms", "name"),
)

Identity = Annotated[str, typer.Argument(help=CONNECTIONS.argument_help, show_default=False)]

add_list(connections, CONNECTIONS)


@connections.command(help=CONNECTIONS.show_help)
@at_broker
def show(
    at: BrokerAt,
    identity: Identity,
    json: Json = False,
) -> None:
    """Print the connection `identity`, then its links."""
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
