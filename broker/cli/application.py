"""The commands and options of `jms-broker`, their help and completion."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from broker import __version__
from broker.cli import serve as server
from broker.cli.acl import acl
from broker.cli.audit import audit
from broker.cli.backup import backup
from broker.cli.client_tls import Ca, Cert, Key, chosen_tls
from broker.cli.cluster import cluster
from broker.cli.commands import ARGUMENTS, Commands
from broker.cli.config import config as configuration
from broker.cli.conformance import conformance
from broker.cli.connections import connections
from broker.cli.context import apply_context, context
from broker.cli.definitions import definitions
from broker.cli.doctor import STATUSES, doctor
from broker.cli.drain import drain
from broker.cli.embed import embed
from broker.cli.ending import EXIT_STATUSES, fail
from broker.cli.events import events
from broker.cli.explain import explain
from broker.cli.leases import leases
from broker.cli.load.command import load
from broker.cli.log_level import log_level
from broker.cli.logins import logins
from broker.cli.messages import browse, receive, send
from broker.cli.nodes import nodes
from broker.cli.queued import queued
from broker.cli.reload import reload
from broker.cli.sinks import sinks
from broker.cli.store import store as stores
from broker.cli.subscriptions import subscriptions
from broker.cli.tls import tls
from broker.cli.tokens import tokens
from broker.cli.top import top
from broker.cli.transactions import transactions
from broker.cli.users import users
from broker.compiled import COMPILED, SLOWER, is_compiled

application = Commands(
    help="A JMS message broker that speaks AMQP 1.0, and a client for it and others.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jms-broker {__version__} ({COMPILED if is_compiled() else SLOWER})")
        raise typer.Exit


@application.callback()
def _common(
    typed: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version, and whether the broker is compiled.",
        ),
    ] = False,
) -> None:
    apply_context(typed, typed.meta[ARGUMENTS])


@application.command()
def serve(
    config: Annotated[
        Path | None,
        typer.Option(envvar=server.CONFIG_VARIABLE, help="The TOML file with the settings."),
    ] = None,
    bind: Annotated[
        str | None, typer.Option(help="The address to listen on. [default: 127.0.0.1]")
    ] = None,
    port: Annotated[
        str | None, typer.Option(help="The port; 0 takes a free one. [default: 5672]")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="Where messages are kept: memory, sqlite:///PATH or"
            " postgresql://USER@HOST/DATABASE. [default: sqlite:///data/store.db]"
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            help="Run this one of the shards of the settings. [default: a process for each]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a broker until SIGTERM or SIGINT. With shards in the settings, run one for each."""
    file = str(config) if config is not None else None
    server.run({"config": file, "bind": bind, "port": port, "store": store, "shard": shard})


application.command(epilog=EXIT_STATUSES)(send)
application.command(epilog=EXIT_STATUSES)(receive)
application.command(epilog=EXIT_STATUSES)(browse)
application.command()(conformance)
application.command()(embed)
application.command()(backup)
application.command(epilog=EXIT_STATUSES)(reload)
application.command("log-level", epilog=EXIT_STATUSES)(log_level)
application.command(epilog=STATUSES)(doctor)
application.command(epilog=EXIT_STATUSES)(drain)
application.command(epilog=EXIT_STATUSES)(top)
application.command(epilog=EXIT_STATUSES)(load)


@application.command()
def healthcheck(
    url: Annotated[
        str | None,
        typer.Option(
            help="The broker, amqp://USER:PASSWORD@HOST:PORT or amqps://… [default: the one that"
            " `jms-broker serve` starts here]",
            show_default=False,
        ),
    ] = None,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    config: Annotated[
        Path | None,
        typer.Option(envvar=server.CONFIG_VARIABLE, help="The TOML file with its settings."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Count it as down after so many seconds.")
    ] = 5.0,
    shard: Annotated[
        str | None,
        typer.Option(
            help="The shard, if the settings have some. [default: all of them]", show_default=False
        ),
    ] = None,
) -> None:
    """Exit with 0 if a broker opens and closes a connection, else with 1 and the reason."""
    from broker.cli.healthcheck import run

    try:
        tls = None if url is None else chosen_tls(url, ca=ca, cert=cert, key=key)
    except ValueError as error:
        fail(str(error))
    run(url, config, timeout, shard=shard, tls=tls)


application.command()(events)
application.add_typer(users, name="user")
application.add_typer(tokens, name="token")
application.add_typer(logins, name="login")
application.add_typer(cluster, name="cluster")
application.add_typer(acl, name="acl")
application.add_typer(audit, name="audit")
application.add_typer(tls, name="tls")
application.add_typer(configuration, name="config")
application.add_typer(nodes, name="node")
application.add_typer(connections, name="connection")
application.add_typer(queued, name="message")
application.add_typer(transactions, name="transaction")
application.add_typer(subscriptions, name="subscription")
application.add_typer(leases, name="lease")
application.add_typer(sinks, name="sink")
application.add_typer(stores, name="store")
application.add_typer(definitions, name="definitions")
application.add_typer(context, name="context")
application.add_typer(explain, name="explain")
application.add_typer(import_module("pyspark_amqp.cli").pipeline, name="pipeline")
