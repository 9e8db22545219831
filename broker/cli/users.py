"""`jms-broker user`: who may enter with a password."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from broker.cli.serve import CONFIG_VARIABLE
from broker.security.authenticate import Users, UsersError, refusal_of_name
from broker.settings import SettingsError, load_settings

users = typer.Typer(help="Add, list and remove users.", no_args_is_help=True)

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
) -> None:
    """Add a user, or give one a new password. A broker that runs knows at once."""
    refusal = refusal_of_name(name)
    if refusal is not None:
        _fail(refusal)
    if password_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    try:
        new = _open(config).add(name, password)
    except UsersError as error:
        _fail(str(error))
    typer.echo(f"added {name}" if new else f"changed the password of {name}")


@users.command("list")
def list_names(config: Config = None) -> None:
    """Print the names in the users file."""
    try:
        names = _open(config).names()
    except UsersError as error:
        _fail(str(error))
    for name in names:
        typer.echo(name)


@users.command()
def remove(name: Name, config: Config = None) -> None:
    """Take a user out of the users file. Connections that are open stay open."""
    try:
        _open(config).remove(name)
    except UsersError as error:
        _fail(str(error))
    typer.echo(f"removed {name}")


def _open(config: Path | None) -> Users:
    try:
        return Users(load_settings(config).users_file)
    except SettingsError as error:
        _fail(str(error))


def _fail(text: str) -> NoReturn:
    typer.echo(f"jms-broker: {text}", err=True)
    raise typer.Exit(1)
