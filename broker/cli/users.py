"""`jms-broker user`: the users who log in.

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

from broker.cli.client_tls import Ca, Cert, Key
from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES, EXIT_USAGE, fail
from broker.cli.managing import BrokerAt, Json, Timeout, Token, taking
from broker.cli.messages import ANSWER_TIMEOUT_S
from broker.cli.serve import CONFIG_VARIABLE
from broker.cli.shard_option import ShardAsUrl

if TYPE_CHECKING:
    from broker.cli.accounts import UserStore

users = Commands(
    help="Add, change, list and remove users: in the file of the broker's settings, or, with --url,"
    " by a broker that runs.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

COLUMNS = ("name", "roles", "administrator", "enabled", "source")

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
        help="A running broker, amqp://USER:PASSWORD@HOST:PORT, amqps://… or https://…, that is to"
        " change its own users."
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
        help="The administrator's password; asked for if only --user is given.",
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
    token: Token = None
    timeout: Timeout = ANSWER_TIMEOUT_S
    ca: Ca = None
    cert: Cert = None
    key: Key = None
    shard: ShardAsUrl = None

    @contextmanager
    def opened(self) -> Iterator[UserStore]:
        """Open the users for the block; an error in it ends the command with one line."""
        url = self._url()
        if url is not None:
            from broker.cli.accounts import BrokerAccounts

            at = BrokerAt(
                url,
                self.user,
                self.password,
                self.token,
                timeout=self.timeout,
                ca=self.ca,
                cert=self.cert,
                key=self.key,
            )
            with at.opened() as requests:
                yield BrokerAccounts(requests, url)
            return
        if self.user is not None or self.password is not None:
            fail("--user and --password are for --url: a file is changed without", EXIT_USAGE)
        from broker.cli.accounts import FileAccounts
        from broker.security.account import UsersError
        from broker.settings import SettingsError, load_settings

        try:
            yield FileAccounts(load_settings(self.config), self.config)
        except (SettingsError, UsersError) as error:
            fail(str(error))

    def _url(self) -> str | None:
        """Return the URL of the broker to ask, None for a file. A typed option wins."""
        if self._is_typed("config") and self._is_typed("url"):
            fail("--config names a file of settings, --url a broker: give one", EXIT_USAGE)
        return self.url if self._is_typed("shard") or not self._is_typed("config") else None

    def _is_typed(self, name: str) -> bool:
        source = self.context.get_parameter_source(name)
        return source is not None and source.name == "COMMANDLINE"


PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input.")
]
Roles = Annotated[
    list[str] | None,
    typer.Option(help="A role of the user; may be repeated.", show_default=False),
]
Certificates = Annotated[
    list[str] | None,
    typer.Option(
        help="A name in a client certificate that logs in as the user; may be repeated.",
        show_default=False,
    ),
]
NoScram = Annotated[
    bool,
    typer.Option(
        "--no-scram",
        help="Store no verifiers for SCRAM. The broker offers SCRAM only if every user has them.",
    ),
]


def _new_password(name: str, *, from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    typed: str = typer.prompt(
        f"Password for {name}", hide_input=True, confirmation_prompt=True, err=True
    )
    return typed


@users.command(epilog=EXIT_STATUSES)
@taking(Place)
def add(
    place: Place,
    name: Name,
    password_stdin: PasswordStdin = False,
    role: Roles = None,
    administrator: Annotated[
        bool | None,
        typer.Option(help="Whether the user has the role admin.", show_default=False),
    ] = None,
    certificate: Certificates = None,
    no_scram: NoScram = False,
) -> None:
    """Add a user, or give one a new password. A running broker applies the change at once.

    A user with the role admin may manage the broker: node, connection and the like. A new user has
    the role application unless others are given. An existing user keeps its roles and certificates
    unless others are given; --no-administrator takes the role admin away.

    Without --url, the file is written that the settings name, from --config and the JMS_BROKER_
    variables; with --url, that broker writes its own file, or its store if the broker is a member
    of a group or cannot write the file. The output names the place.
    """
    from broker.cli.accounts import Wishes
    from broker.security.account import APPLICATION_ROLE, refusal_of_name, refusal_of_roles

    refusal = refusal_of_name(name) or refusal_of_roles(tuple(role or ()))
    if refusal is not None:
        fail(refusal)
    password = _new_password(name, from_stdin=password_stdin)
    wishes = Wishes(
        administrator=administrator,
        roles=role or None,
        certificates=certificate or None,
        scram=not no_scram,
    )
    with place.opened() as known:
        new = known.add(name, password, wishes)
        done = f"added {name} to" if new else f"changed the password of {name} in"
        typer.echo(f"{done} {known.place()}")
        warning = known.still_open()
    if new and not wishes.are_about_roles:
        typer.echo(f"role {APPLICATION_ROLE}: may not manage the broker; --role gives others")
    if warning is not None:
        typer.echo(f"jms-broker: warning: {warning}", err=True)


@users.command(epilog=EXIT_STATUSES)
@taking(Place)
def passwd(
    place: Place,
    name: Name,
    password_stdin: PasswordStdin = False,
    keep_old: Annotated[
        str | None,
        typer.Option(
            help="Let the old password in, too, for so long: 90s, 30m, 1h, at most 7d.",
            show_default=False,
        ),
    ] = None,
    no_scram: NoScram = False,
) -> None:
    """Change the password of a user, who keeps its roles.

    With --keep-old, the programs that log in as the user can be changed one after the other.
    """
    from broker.cli.duration import seconds_in

    try:
        keep_old_s = 0 if keep_old is None else seconds_in(keep_old)
    except ValueError as error:
        fail(f"--keep-old: {error}", EXIT_USAGE)
    password = _new_password(name, from_stdin=password_stdin)
    with place.opened() as known:
        until = known.passwd(name, password, keep_old_s=keep_old_s, scram=not no_scram)
        typer.echo(f"changed the password of {name} in {known.place()}")
    if until is not None:
        typer.echo(f"the old password enters until {until}, too")


@users.command(epilog=EXIT_STATUSES)
@taking(Place)
def roles(
    place: Place,
    name: Name,
    role: Annotated[
        list[str],
        typer.Argument(metavar="ROLE...", help="The roles of the user.", show_default=False),
    ],
) -> None:
    """Give a user these roles in place of those that it has; its password stays.

    Its connections stay open. A running broker applies the roles within five seconds: links that
    lost their right are detached.
    """
    with place.opened() as known:
        changed = known.set_roles(name, role)
        done = "changed the roles of" if changed else "unchanged: the roles of"
        typer.echo(f"{done} {name} in {known.place()}")


@users.command("list", epilog=EXIT_STATUSES)
@taking(Place)
def list_users(place: Place, json: Json = False) -> None:
    """Print the users, and whether the file, the store or the settings have them (`source`).

    A user of the store is in no file: the broker could not write its file. The first administrator
    may be in the settings alone.
    """
    from broker.cli.printing import print_records

    with place.opened() as known:
        print_records(known.records(), COLUMNS, as_json=json)


@users.command(epilog=EXIT_STATUSES)
@taking(Place)
def show(place: Place, name: Name, json: Json = False) -> None:
    """Print what is known of a user, but no password hash."""
    from broker.cli.printing import print_record

    with place.opened() as known:
        print_record(known.record(name), as_json=json)


@users.command(epilog=EXIT_STATUSES)
@taking(Place)
def disable(place: Place, name: Name) -> None:
    """Keep a user from logging in, and leave it in the file.

    A running broker closes its connections within five seconds.
    """
    with place.opened() as known:
        changed = known.set_enabled(name, enabled=False)
        typer.echo(f"{'disabled' if changed else 'already disabled:'} {name} in {known.place()}")


@users.command(epilog=EXIT_STATUSES)
@taking(Place)
def enable(place: Place, name: Name) -> None:
    """Let a disabled user log in again."""
    with place.opened() as known:
        changed = known.set_enabled(name, enabled=True)
        typer.echo(f"{'enabled' if changed else 'already enabled:'} {name} in {known.place()}")


@users.command(epilog=EXIT_STATUSES)
@taking(Place)
def remove(place: Place, name: Name) -> None:
    """Remove a user. A running broker closes its connections within five seconds."""
    with place.opened() as known:
        known.remove(name)
        typer.echo(f"removed {name} from {known.place()}")
