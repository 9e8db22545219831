"""`jms-broker lease`: list, show and release leases of messages."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.entities import EntityTable, add_list, add_show
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import json_of

leases = Commands(
    help="List, show and release leases of messages.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

LEASES: Final = EntityTable(
    types=("lease",),
    columns=("name", "address", "subscription", "messages", "batch", "settled", "expires_at_ms"),
    list_help="Print the leases whose name matches PATTERN, sorted by name, with message counts.",
    argument="name",
    argument_help="The lease, as in the list.",
    show_help="Print everything about one lease.",
)

Name = Annotated[str, typer.Argument(help=LEASES.argument_help, show_default=False)]

add_list(leases, LEASES)
add_show(leases, LEASES)


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
