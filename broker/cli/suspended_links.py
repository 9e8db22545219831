"""`jms-broker suspended-link`: links whose unsettled deliveries may be resumed."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.entities import EntityTable, add_list, add_show
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import json_of

suspended_links = Commands(
    help="List, show and end links that are suspended with unsettled deliveries.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

SUSPENDED_LINKS: Final = EntityTable(
    types=("suspended-link",),
    columns=(
        *("identity", "name", "container_id", "role", "address"),
        *("unsettled", "bytes", "remaining_ms"),
    ),
    list_help="Print the suspended links whose identity matches PATTERN, sorted by it.",
    argument="identity",
    argument_help="The suspended link, as in the list.",
    show_help="Print everything about one suspended link.",
)

Identity = Annotated[str, typer.Argument(help=SUSPENDED_LINKS.argument_help, show_default=False)]

add_list(suspended_links, SUSPENDED_LINKS)
add_show(suspended_links, SUSPENDED_LINKS)


@suspended_links.command()
@at_broker
def end(at: BrokerAt, identity: Identity, json: Json = False) -> None:
    """End a suspended link: its messages wait again, and its client can no longer resume them."""
    with at.opened() as broker:
        broker.ask("END", "suspended-link", identity)
    typer.echo(json_of({"ended": identity}) if json else f"ended {identity}")
