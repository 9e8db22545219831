"""`jms-broker tls`: check the certificates that the settings name, or the TLS of a broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.client_tls import AMQPS, Ca, Cert, ClientTls, ClientTlsError, Key, chosen_tls
from broker.cli.commands import Commands
from broker.cli.ending import (
    EXIT_FAILURE,
    EXIT_STATUSES,
    EXIT_UNREACHABLE,
    EXIT_USAGE,
    fail,
)
from broker.cli.managing import Json
from broker.cli.printing import print_record, print_records
from broker.cli.serve import CONFIG_VARIABLE

if TYPE_CHECKING:
    from broker.settings import Settings
    from broker.tls_settings import TlsSettings

tls = Commands(help="Check certificates.", epilog=EXIT_STATUSES, no_args_is_help=True)

COLUMNS: Final = ("result", "setting", "check", "days", "finding")
FAILED: Final = "failed"


@tls.callback()
def _group() -> None:
    """Keep the group: typer would drop the name of its only command."""


@tls.command(epilog=EXIT_STATUSES)
def check(
    broker: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST:PORT]",
            help="A broker to connect to, at port 5671 unless it has another. [default: the files"
            " that the settings name]",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(envvar=CONFIG_VARIABLE, help="The TOML file with the settings of the broker."),
    ] = None,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Wait so many seconds for each answer of a broker.")
    ] = 5.0,
    json: Json = False,
) -> None:
    """Check the certificates of the settings, or connect to a broker and check those that it shows.

    The exit status is 1 if something is wrong. An end of validity within 30 days is a warning.
    """
    if broker is not None:
        _check_broker(broker, _files(broker, ca, cert, key), timeout, json=json)
        return
    for name, file in (("ca", ca), ("cert", cert), ("key", key)):
        if file is not None:
            fail(f"--{name} is for a connection: give HOST:PORT, too", EXIT_USAGE)
    _check_settings(config, json=json)


# -- the files of the settings


def _check_settings(config: Path | None, *, json: bool) -> None:
    from broker.net.tls_check import findings
    from broker.settings import SettingsError, load_settings

    try:
        tables = list(_tables(load_settings(config)))
    except SettingsError as error:
        fail("; ".join(str(error).splitlines()), EXIT_USAGE)
    if not tables:
        fail(
            "the settings have no TLS: set certificate and key in [tls], and a [[listener]] of the"
            " kind amqps or wss, or http.tls = true"
        )
    now_s = time.time()
    found = [each for place, table in tables for each in findings(table, place, now_s=now_s)]
    print_records([each.record() for each in found], COLUMNS, as_json=json)
    if any(each.level == FAILED for each in found):
        raise typer.Exit(EXIT_FAILURE)


def _tables(settings: Settings) -> Iterator[tuple[str, TlsSettings]]:
    """Return each table of TLS, under the name that errors of the broker have for it."""
    if settings.tls is not None:
        yield "tls", settings.tls
    for listener in settings.listener:
        if listener.tls is not None:
            yield f"listener {listener.name}: tls", listener.tls


# -- a broker


def _files(broker: str, ca: Path | None, cert: Path | None, key: Path | None) -> ClientTls:
    """Return the files of the client; wrong options end the command."""
    try:
        return chosen_tls(_url(broker), ca=ca, cert=cert, key=key) or ClientTls()
    except ValueError as error:
        fail(str(error), EXIT_USAGE)


def _url(broker: str) -> str:
    """Return the URL of a broker that was typed as HOST:PORT, or as amqps://HOST:PORT."""
    scheme, separator, _ = broker.partition("://")
    if not separator:
        return f"{AMQPS}://{broker}"
    if scheme != AMQPS:
        fail(f"{broker}: write HOST:PORT, with the port at which TLS is spoken", EXIT_USAGE)
    return broker


def _check_broker(broker: str, files: ClientTls, timeout_s: float, *, json: bool) -> None:
    from broker.cli.broker_url import split_url
    from broker.cli.tls_peer import TlsPeer, UnreachableError
    from broker.cli.wire import place_of

    host, port = place_of(split_url(_url(broker)))
    try:
        report = TlsPeer(host, port, files, timeout_s=timeout_s).report()
    except UnreachableError as error:
        fail(f"{host}:{port}: {error}", EXIT_UNREACHABLE)
    except ClientTlsError as error:
        fail(str(error), EXIT_USAGE)
    now_s = time.time()
    problems, warning = report.problems(), report.warning(now_s)
    record = report.record(now_s)
    if json:
        record |= {"problems": problems, "warnings": [warning] if warning else []}
    else:
        record["names"] = ", ".join(report.facts.names) if report.facts is not None else ""
    print_record(record, as_json=json)
    if warning and not json:
        typer.echo(f"jms-broker: warning: {warning}", err=True)
    if problems:
        fail("; ".join(problems))
