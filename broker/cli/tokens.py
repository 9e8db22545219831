"""`jms-broker token`: API tokens, by which programs log in over HTTP."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES, EXIT_USAGE, fail
from broker.cli.entities import EntityTable, add_list, add_show
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import json_of

tokens = Commands(
    help="List, make and revoke API tokens, by which programs log in over HTTP.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

TOKENS: Final = EntityTable(
    types=("token",),
    columns=("name", "owner", "description", "roles", "state", "expires_at", "used_at"),
    list_help="Print the API tokens whose id matches PATTERN, sorted by id; never their secrets.",
    argument="id",
    argument_help="The token's id, as in the list.",
    show_help="Print everything about one API token, except its secret.",
)

Id = Annotated[str, typer.Argument(help=TOKENS.argument_help, show_default=False)]

add_list(tokens, TOKENS)
add_show(tokens, TOKENS)


@tokens.command()
@at_broker
def create(
    at: BrokerAt,
    owner: Annotated[
        str | None,
        typer.Option(
            help="The user in whose name the token logs in. [default: the user of this command]",
            show_default=False,
        ),
    ] = None,
    description: Annotated[
        str | None, typer.Option(help="What the token is for.", show_default=False)
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            help="A role of the owner that the token has; may be repeated. [default: all]",
            show_default=False,
        ),
    ] = None,
    expires: Annotated[
        str, typer.Option(help="When it ends: a duration such as 12h or 90d, up to 3650d.")
    ] = "90d",
    json: Json = False,
) -> None:
    """Make an API token, and print it: the broker does not show it again."""
    from broker.cli.duration import seconds_in

    try:
        expires_in_s = seconds_in(expires)
    except ValueError as error:
        fail(str(error), EXIT_USAGE)
    with at.opened() as broker:
        made = broker.ask(
            "CREATE",
            "token",
            owner=owner,
            description=description,
            roles=role or None,
            expires_in_s=expires_in_s,
        )
    if json:
        typer.echo(json_of(made))
        return
    typer.echo(
        f"API token {made['name']} of user {made['owner']}, until {made['expires_at']};"
        " it is not shown again:",
        err=True,
    )
    typer.echo(made["token"])


@tokens.command()
@at_broker
def revoke(at: BrokerAt, id: Id, json: Json = False) -> None:  # noqa: A002 - the argument's name
    """Revoke an API token: programs that use it are refused from their next request on."""
    with at.opened() as broker:
        broker.ask("DELETE", "token", id)
    typer.echo(json_of({"revoked": id}) if json else f"revoked {id}")
