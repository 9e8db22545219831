"""`jms-broker user`: who may enter with a password.

Settings and what reads them are imported when a command runs: `send` and
`receive`, which are typed more often, start in two thirds of the time without.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from broker.cli.commands import Commands
from broker.cli.serve import CONFIG_VARIABLE

if TYPE_CHECKING:
    from broker.security.authenticate import Users

users = Commands(help="Add, list and remove users.", no_args_is_help=True)

Config = Annotated[
    Path | None,
    typer.Option(envvar=CONFIG_VARIABLE, help="The TOML file that names the users file."),
]
Name = Annotated[str, typer.Argument(help="The user's name.", show_default=False)]


@users.command()
def add(
    name: Name,
    config: Config = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
    administrator: Annotated[
        bool | None,
        typer.Option(help="Whether the user may manage the broker.", show_default=False),
    ] = None,
) -> None:
    """Add a user, or give one a new password. A broker that runs knows at once.

    An administrator may manage the broker: node, connection and the like. Whoever
    was one still is, unless --no-administrator says otherwise.
    """
    from broker.security.authenticate import refusal_of_name

    refusal = refusal_of_name(name)
    if refusal is not None:
        _fail(refusal)
    if password_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    with _opened(config) as known:
        new = known.add(name, password, administrator=administrator)
    typer.echo(f"added {name}" if new else f"changed the password of {name}")


@users.command("list")
def list_names(config: Config = None) -> None:
    """Print the names in the users file; behind a tab, who of them is an administrator."""
    with _opened(config) as known:
        for name in known.names():
            marked = known.is_administrator(name)
            typer.echo(f"{name}\tadministrator" if marked else name)


@users.command()
def remove(name: Name, config: Config = None) -> None:
    """Take a user out of the users file. Connections that are open stay open."""
    with _opened(config) as known:
        known.remove(name)
    typer.echo(f"removed {name}")


@contextmanager
def _opened(config: Path | None) -> Iterator[Users]:
    """The users file. What is wrong with it, or with what is done to it, ends the command."""
    from broker.security.authenticate import Users, UsersError
    from broker.settings import SettingsError, load_settings

    try:
        yield Users(load_settings(config).users_file)
    except (SettingsError, UsersError) as error:
        _fail(str(error))


def _fail(text: str) -> NoReturn:
    typer.echo(f"jms-broker: {text}", err=True)
    raise typer.Exit(1)
