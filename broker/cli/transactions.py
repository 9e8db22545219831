"""`jms-broker transaction`: the open transactions of a running broker."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.entities import EntityTable, add_list, add_show
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import json_of

transactions = Commands(
    help="List, show and roll back open transactions.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

TRANSACTIONS: Final = EntityTable(
    types=("transaction",),
    columns=(
        *("identity", "connection", "container_id", "user"),
        *("operations", "bytes", "remaining_ms"),
    ),
    list_help="Print the open transactions whose identity matches PATTERN, sorted by it.",
    argument="identity",
    argument_help="The transaction, as in the list.",
    show_help="Print everything about one open transaction.",
)

Identity = Annotated[str, typer.Argument(help=TRANSACTIONS.argument_help, show_default=False)]

add_list(transactions, TRANSACTIONS)
add_show(transactions, TRANSACTIONS)


@transactions.command()
@at_broker
def rollback(at: BrokerAt, identity: Identity, json: Json = False) -> None:
    """Roll a transaction back: its client's commit fails, and messages it received return."""
    with at.opened() as broker:
        broker.ask("ROLLBACK", "transaction", identity)
    typer.echo(json_of({"rolled_back": identity}) if json else f"rolled back {identity}")
