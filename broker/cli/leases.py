"""`jms-broker lease`: list, show and release leases of messages."""

from __future__ import annotations

from typing import Annotated

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.managing import BrokerAt, Count, Json, Pattern, at_broker
from broker.cli.printing import json_of, print_record, print_records

leases = Commands(
    help="List, show and release leases of messages.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

COLUMNS = ("name", "address", "subscription", "messages", "batch", "settled", "expires_at_ms")

Name = Annotated[str, typer.Argument(help="The lease, as in the list.", show_default=False)]


@leases.command("list")
@at_broker
def list_leases(
    at: BrokerAt,
    pattern: Pattern = "*",
    count: Count = None,
    json: Json = False,
) -> None:
    """Print the leases whose name matches PATTERN, sorted by name, with message counts."""
    with at.opened() as broker:
        records = broker.records("lease", limit=count, filter=pattern)
        print_records(records, COLUMNS, as_json=json)


@leases.command()
@at_broker
def show(
    at: BrokerAt,
    name: Name,
    json: Json = False,
) -> None:
    """Print everything about one lease."""
    with at.opened() as broker:
        print_record(broker.ask("READ", "lease", name), as_json=json)


@leases.command()
@at_broker
def release(
    at: BrokerAt,
    name: Name,
    json: Json = False,
) -> None:
    """End a lease: its messages return to their places, and its program's requests fail as gone."""
    with at.opened() as broker:
        returned = broker.ask("RELEASE", "lease", name)["messages"]
    told = {"released": name, "messages": returned}
    typer.echo(json_of(told) if json else f"released {name}: {returned} messages wait again")
