"""`jms-broker login`: the sources of failed logins of a running broker."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.entities import EntityTable, add_list, add_show
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import json_of

logins = Commands(
    help="List sources of failed logins, and let one log in again at once.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

SOURCES: Final = EntityTable(
    types=("login-source",),
    columns=("name", "failures", "last_at", "throttled_ms"),
    list_help="Print where failed logins came from whose address matches PATTERN, sorted by it.",
    argument="source",
    argument_help="The address that logins came from, as in the list.",
    show_help="Print the failed logins from one address.",
)

Source = Annotated[str, typer.Argument(help=SOURCES.argument_help, show_default=False)]

add_list(logins, SOURCES)
add_show(logins, SOURCES)


@logins.command()
@at_broker
def forget(at: BrokerAt, source: Source, json: Json = False) -> None:
    """Forget the failed logins from an address: its next login is checked at once."""
    with at.opened() as broker:
        broker.ask("DELETE", "login-source", source)
    typer.echo(json_of({"forgotten": source}) if json else f"forgot the failed logins of {source}")
