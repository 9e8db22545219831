"""`jms-broker user`: the users who log in with a password.

The settings and the modules that read them are imported only when a command runs: without them
`send` and `receive`, which are typed more often, start in two thirds of the time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES, EXIT_USAGE, fail
from broker.cli.managing import BrokerAt, Timeout, taking
from broker.cli.messages import ANSWER_TIMEOUT_S
from broker.cli.serve import CONFIG_VARIABLE

if TYPE_CHECKING:
    from broker.cli.accounts import UserStore

users = Commands(
    help="Add, list and remove users: in the file of the broker's settings, or, with --url, by a"
    " broker that runs.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

Config = Annotated[
    Path | None,
    typer.Option(
        envvar=CONFIG_VARIABLE,
        help="The TOML file with the broker's settings, which name the users file.",
        show_default=False,
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        envvar="JMS_BROKER_URL",
        help="A running broker, amqp://USER:PASSWORD@HOST:PORT, that is to change its own file."
        " Wins over the environment's settings.",
        show_default=False,
    ),
]
Administrator = Annotated[
    str | None,
    typer.Option("--user", help="With --url: an administrator of the broker.", show_default=False),
]
AdministratorPassword = Annotated[
    str | None,
    typer.Option(
        "--password",
        help="The administrator's password; asked for where --user is given and this is not.",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(help="The user's name.", show_default=False)]


@dataclass(frozen=True)
class Place:
    """The options that choose a users file or a running broker."""

    context: typer.Context
    config: Config = None
    url: Url = None
    user: Administrator = None
    password: AdministratorPassword = None
    timeout: Timeout = ANSWER_TIMEOUT_S

    @contextmanager
    def opened(self) -> Iterator[UserStore]:
        """Open the users for the block; an error in it ends the command with one line."""
        url = self._url()
        if url is not None:
            from broker.cli.accounts import BrokerAccounts

            at = BrokerAt(url, self.user, self.password, self.timeout)
            with at.opened() as requests:
                yield BrokerAccounts(requests, url)
            return
        if self.user is not None or self.password is not None:
            fail("--user and --password are for --url: a file is changed without", EXIT_USAGE)
        from broker.cli.accounts import FileAccounts
        from broker.security.authenticate import UsersError
        from broker.settings import SettingsError, load_settings

        try:
            yield FileAccounts(load_settings(self.config), self.config)
        except (SettingsError, UsersError) as error:
            fail(str(error))

    def _url(self) -> str | None:
        """Return the URL of the broker to ask, None for a file. A typed option wins."""
        if self._is_typed("config") and self._is_typed("url"):
            fail("--config names a file of settings, --url a broker: give one", EXIT_USAGE)
        return None if self._is_typed("config") else self.url

    def _is_typed(self, name: str) -> bool:
        source = self.context.get_parameter_source(name)
        return source is not None and source.name == "COMMANDLINE"


@users.command(epilog=EXIT_STATUSES)
@taking(Place)
def add(
    place: Place,
    name: Name,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
    administrator: Annotated[
        bool | None,
        typer.Option(help="Whether the user may manage the broker.", show_default=False),
    ] = None,
) -> None:
    """Add a user, or give one a new password. A running broker applies the change at once.

    An administrator may manage the broker: node, connection and the like. An existing administrator
    stays one, unless --no-administrator is given.

    Without --url, the file is written that the settings name, from --config and the JMS_BROKER_
    variables; with --url, that broker writes its own file. The output names the file.
    """
    from broker.security.authenticate import refusal_of_name

    refusal = refusal_of_name(name)
    if refusal is not None:
        fail(refusal)
    if password_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = typer.prompt(
            f"Password for {name}", hide_input=True, confirmation_prompt=True, err=True
        )
    with place.opened() as known:
        new = known.add(name, password, administrator=administrator)
        done = f"added {name} to" if new else f"changed the password of {name} in"
        typer.echo(f"{done} {known.place()}")
        warning = known.still_open()
    if warning is not None:
        typer.echo(f"jms-broker: warning: {warning}", err=True)


@users.command("list", epilog=EXIT_STATUSES)
@taking(Place)
def list_names(place: Place) -> None:
    """Print the users' names; a tab and the word administrator follow those of administrators."""
    with place.opened() as known:
        for name, administrator in known.administrators():
            typer.echo(f"{name}\tadministrator" if administrator else name)


@users.command(epilog=EXIT_STATUSES)
@taking(Place)
def remove(place: Place, name: Name) -> None:
    """Remove a user. Open connections stay open."""
    with place.opened() as known:
        known.remove(name)
        typer.echo(f"removed {name} from {known.place()}")
