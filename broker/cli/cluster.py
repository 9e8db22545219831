"""`jms-broker cluster`: the brokers of a group, and which of them leads."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.entities import EntityTable, add_list, add_show
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import json_of

cluster = Commands(
    help="List the brokers of a group, have another one lead, forget one.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

MEMBERS: Final = EntityTable(
    types=("member",),
    columns=("name", "leads", "up", "urls"),
    list_help="Print the members of the group whose names match PATTERN, sorted by name.",
    argument="name",
    argument_help="A member, as in the list.",
    show_help="Print one member of the group.",
)

add_list(cluster, MEMBERS)
add_show(cluster, MEMBERS)


@cluster.command()
@at_broker
def switch(
    at: BrokerAt,
    name: Annotated[
        str,
        typer.Argument(help="The member that is to lead. Without it: any other one."),
    ] = "",
    json: Json = False,
) -> None:
    """Have another member lead: the leader closes all connections, and stands by.

    Clients are sent to the new leader. If it does not take over within two seconds, any member may.
    """
    with at.opened() as broker:
        told = broker.ask("SWITCH", "member", name)
    typer.echo(json_of(told) if json else f"{told['heir']} takes over")


@cluster.command()
@at_broker
def forget(
    at: BrokerAt,
    name: Annotated[str, typer.Argument(help="A member that is not up.", show_default=False)],
    json: Json = False,
) -> None:
    """Forget a member that is no more: clients are no longer told where it was."""
    with at.opened() as broker:
        broker.ask("DELETE", "member", name)
    typer.echo(json_of({"forgotten": name}) if json else f"forgot {name}")
