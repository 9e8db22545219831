"""`jms-broker context`: named brokers, one of which all commands talk to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from broker.cli.broker_url import MANAGEMENT_SCHEMES, URLError, split_url, without_password
from broker.cli.client_tls import TLS_SCHEMES
from broker.cli.commands import Commands
from broker.cli.ending import EXIT_NOT_FOUND, EXIT_STATUSES, EXIT_USAGE, fail
from broker.cli.managing import Json
from broker.cli.named_brokers import (
    ContextError,
    Contexts,
    NamedBroker,
    contexts_file,
    contexts_locked,
    counting,
    read_contexts,
    takes_context,
    write_contexts,
)
from broker.cli.printing import print_records

context = Commands(
    help="Named brokers. Commands with --url talk to the one in use if neither --url nor"
    " JMS_BROKER_URL nor --config is given.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

COLUMNS: Final = ("name", "in_use", "url", "user", "ca", "cert", "key")

Name = Annotated[str, typer.Argument(help="The name of the context.", show_default=False)]


@contextmanager
def _told() -> Iterator[None]:
    """End the command with one line if contexts cannot be used."""
    try:
        yield
    except ContextError as error:
        fail(str(error))


@contextmanager
def _changing() -> Iterator[None]:
    """Like `_told`, for a command that changes the contexts: no other does at the same time."""
    with _told(), contexts_locked():
        yield


@context.command(epilog=EXIT_STATUSES)
def add(
    name: Name,
    url: Annotated[
        str, typer.Argument(help="amqp://HOST:PORT or amqps://HOST:PORT.", show_default=False)
    ],
    user: Annotated[
        str | None,
        typer.Option(
            help="The user to log in as; commands ask for the password.", show_default=False
        ),
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option(help="With TLS: as --ca of other commands.", show_default=False),
    ] = None,
    cert: Annotated[
        Path | None,
        typer.Option(help="With TLS: as --cert of other commands.", show_default=False),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="With TLS: as --key of other commands.", show_default=False),
    ] = None,
) -> None:
    """Add a context, or replace the one of that name. The first one is in use at once.

    The file of contexts is for you alone. Rather than a password in the URL, give --user, or a
    certificate.
    """
    try:
        is_tls = split_url(url, MANAGEMENT_SCHEMES).scheme in TLS_SCHEMES
    except URLError as error:
        fail(str(error), EXIT_USAGE)
    if not is_tls and (ca or cert or key):
        text = "--ca, --cert and --key are for TLS: write amqps:// or https:// in the URL"
        fail(text, EXIT_USAGE)
    if key is not None and cert is None:
        fail(f"--key {key} needs --cert, the certificate of that key", EXIT_USAGE)
    broker = NamedBroker(url=url, user=user, ca=_file(ca), cert=_file(cert), key=_file(key))
    with _changing():
        contexts = read_contexts()
        try:
            changed = contexts.with_broker(name, broker)
        except ContextError as error:
            fail(str(error), EXIT_USAGE)
        write_contexts(changed)
    typer.echo(f"{'changed' if name in contexts.brokers else 'added'} context {name}")


def _file(path: Path | None) -> str | None:
    """Return the absolute path of a file: commands may run in other folders."""
    return None if path is None else str(path.absolute())


@context.command(epilog=EXIT_STATUSES)
def use(name: Name) -> None:
    """Use a context from now on."""
    with _changing():
        _use(read_contexts(), name)


@context.command("-", epilog=EXIT_STATUSES)
def use_previous() -> None:
    """Use the context that was in use before."""
    with _changing():
        contexts = read_contexts()
        if not contexts.previous:
            fail("no other context was in use before", EXIT_NOT_FOUND)
        _use(contexts, contexts.previous)


def _use(contexts: Contexts, name: str) -> None:
    try:
        write_contexts(contexts.using(name))
    except KeyError:
        fail(f"no context {name} in {contexts_file()}", EXIT_NOT_FOUND)
    typer.echo(f"using context {name}: {without_password(contexts.brokers[name].url)}")


@context.command("list", epilog=EXIT_STATUSES)
def list_contexts(json: Json = False) -> None:
    """Print all contexts, without passwords."""
    with _told():
        contexts = read_contexts()
    records = [
        {
            "name": name,
            "in_use": name == contexts.current,
            "url": without_password(each.url),
            "user": each.user,
            "ca": each.ca,
            "cert": each.cert,
            "key": each.key,
        }
        for name, each in sorted(contexts.brokers.items())
    ]
    print_records(records, COLUMNS, as_json=json)


@context.command(epilog=EXIT_STATUSES)
def remove(name: Name) -> None:
    """Remove a context. If it was in use, none is."""
    with _changing():
        contexts = read_contexts()
        try:
            write_contexts(contexts.without(name))
        except KeyError:
            fail(f"no context {name} in {contexts_file()}", EXIT_NOT_FOUND)
    typer.echo(f"removed context {name}")


def apply_context(typed: typer.Context, arguments: list[str]) -> None:
    """Let the context in use count for the command that `arguments` select, if it needs one."""
    if not takes_context(typed.command, arguments):
        return
    with _told():
        broker = read_contexts().chosen()
    if broker is None:
        return
    password = None
    if broker.needs_password() and not any(each.startswith("--user") for each in arguments):
        password = typer.prompt("Password", hide_input=True, err=True)
    typed.with_resource(counting(broker, password))
