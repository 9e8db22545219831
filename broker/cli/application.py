"""The commands and options of `jms-broker`, their help and completion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from broker import __version__
from broker.cli import serve as server
from broker.cli.commands import ARGUMENTS, Commands, PlainGroup
from broker.cli.context import apply_context
from broker.cli.ending import DOCTOR_STATUSES, EXIT_STATUSES
from broker.cli.importing import CommandPlace, ImportedCommands
from broker.compiled import COMPILED, SLOWER, is_compiled

COMMANDS: Final[Mapping[str, CommandPlace]] = {
    "send": CommandPlace("broker.cli.messages:send", EXIT_STATUSES),
    "receive": CommandPlace("broker.cli.messages:receive", EXIT_STATUSES),
    "browse": CommandPlace("broker.cli.messages:browse", EXIT_STATUSES),
    "conformance": CommandPlace("broker.cli.conformance:conformance"),
    "embed": CommandPlace("broker.cli.embed:embed"),
    "backup": CommandPlace("broker.cli.backup:backup"),
    "reload": CommandPlace("broker.cli.reload:reload", EXIT_STATUSES),
    "log-level": CommandPlace("broker.cli.log_level:log_level", EXIT_STATUSES),
    "doctor": CommandPlace("broker.cli.doctor:doctor", DOCTOR_STATUSES),
    "drain": CommandPlace("broker.cli.drain:drain", EXIT_STATUSES),
    "top": CommandPlace("broker.cli.top:top", EXIT_STATUSES),
    "load": CommandPlace("broker.cli.load.command:load", EXIT_STATUSES),
    "healthcheck": CommandPlace("broker.cli.healthcheck:healthcheck"),
    "events": CommandPlace("broker.cli.events:events"),
    "user": CommandPlace("broker.cli.users:users"),
    "token": CommandPlace("broker.cli.tokens:tokens"),
    "login": CommandPlace("broker.cli.logins:logins"),
    "cluster": CommandPlace("broker.cli.cluster:cluster"),
    "acl": CommandPlace("broker.cli.acl:acl"),
    "audit": CommandPlace("broker.cli.audit:audit"),
    "tls": CommandPlace("broker.cli.tls:tls"),
    "config": CommandPlace("broker.cli.config:config"),
    "node": CommandPlace("broker.cli.nodes:nodes"),
    "connection": CommandPlace("broker.cli.connections:connections"),
    "message": CommandPlace("broker.cli.queued:queued"),
    "suspended-link": CommandPlace("broker.cli.suspended_links:suspended_links"),
    "transaction": CommandPlace("broker.cli.transactions:transactions"),
    "subscription": CommandPlace("broker.cli.subscriptions:subscriptions"),
    "lease": CommandPlace("broker.cli.leases:leases"),
    "sink": CommandPlace("broker.cli.sinks:sinks"),
    "bridge": CommandPlace("broker.cli.bridges:bridges"),
    "store": CommandPlace("broker.cli.store:store"),
    "definitions": CommandPlace("broker.cli.definitions:definitions"),
    "context": CommandPlace("broker.cli.context:context"),
    "explain": CommandPlace("broker.cli.explain:explain"),
    "pipeline": CommandPlace("pyspark_amqp.cli:pipeline"),
}
"""The commands behind `serve`, in the order of the help."""


class ApplicationGroup(PlainGroup):
    """The outermost group: a command that is not run is imported for the help alone."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = ImportedCommands(self.commands, COMMANDS)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the base class has it
        return list(self.commands)


application = Commands(
    cls=ApplicationGroup,
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
