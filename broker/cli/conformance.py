"""Options of `jms-broker conformance`. The harness itself is tests/conformance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from broker.cli.client_tls import AMQPS, Ca, Cert, ClientTls, Key, chosen_tls
from broker.cli.ending import EXIT_USAGE, fail
from broker.cli.managing import taking

AMQP: Final = "amqp"

WITHIN_TLS: Final = {AMQP: AMQPS, "ws": "wss"}
"""The scheme of a URL with TLS, by the one without."""

WITHIN_WEBSOCKET: Final = {AMQP: "ws", AMQPS: "wss"}
"""The scheme of a URL of WebSocket, by the one of the same without."""


@dataclass(frozen=True)
class ConformanceLogin:
    """The options that say how to reach the broker under test, and how to log in."""

    user: Annotated[
        str | None, typer.Option(help="The user to log in as; no login by default.")
    ] = None
    password: Annotated[
        str | None,
        typer.Option(envvar="JMS_BROKER_CONFORMANCE_PASSWORD", help="The password of the user."),
    ] = None
    mechanism: Annotated[
        str | None,
        typer.Option(
            help="The only SASL mechanism to log in with: PLAIN, ANONYMOUS, EXTERNAL, SCRAM-SHA-256"
            " or SCRAM-SHA-512.",
            show_default=False,
        ),
    ] = None
    tls: Annotated[
        bool, typer.Option("--tls", help="Speak TLS, as with amqps:// in place of amqp://.")
    ] = False
    websocket: Annotated[
        bool,
        typer.Option(
            "--websocket", help="Speak AMQP within WebSocket, as with ws:// in place of amqp://."
        ),
    ] = False
    ca: Ca = None
    cert: Cert = None
    key: Key = None

    def url(self, typed: str) -> str:
        """Return the URL of the broker: of WebSocket, and of TLS, if they are asked for."""
        scheme, separator, rest = typed.partition("://")
        if self.websocket:
            scheme = WITHIN_WEBSOCKET.get(scheme, scheme)
        if self.tls:
            scheme = WITHIN_TLS.get(scheme, scheme)
        return f"{scheme}{separator}{rest}"

    def files(self, url: str) -> ClientTls | None:
        """Return the files for TLS, None without TLS. Raise ClientTlsError, URLError."""
        scheme, _, rest = url.partition("://")
        is_encrypted = scheme in WITHIN_TLS.values()
        if not is_encrypted and (self.ca, self.cert, self.key) == (None, None, None):
            return None  # the harness itself says which URLs it takes
        # the options are those of TLS, whatever is spoken within it
        place = f"{AMQPS if is_encrypted else AMQP}://{rest}"
        return chosen_tls(place, ca=self.ca, cert=self.cert, key=self.key)


@taking(ConformanceLogin)
def conformance(
    login: ConformanceLogin,
    url: Annotated[
        str,
        typer.Argument(
            help="The broker, amqp://USER:PASSWORD@HOST:PORT, amqps://…, ws://… or wss://…."
        ),
    ],
    clause: Annotated[
        str | None,
        typer.Option(help="Only a clause and those below it: 2.6 of core, jms:13, anonterm:, …."),
    ] = None,
    case: Annotated[
        str | None, typer.Option(help="Only the case of that name, with its frames.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write a report for build servers.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report for people.")] = None,
    address: Annotated[
        str | None,
        typer.Option(help="A queue that exists, to be emptied; by default new ones are used."),
    ] = None,
    missing_address: Annotated[
        str | None, typer.Option(help="An address that does not exist and will not be made.")
    ] = None,
    blocking_address: Annotated[
        str | None, typer.Option(help="A small queue that gives no credit when it is full.")
    ] = None,
    rejecting_address: Annotated[
        str | None, typer.Option(help="A small queue that rejects when it is full.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Wait so many seconds for each answer.")
    ] = 5.0,
) -> None:
    """Test a broker, this one or another, against the rules of AMQP 1.0."""
    options = {
        "clause": clause,
        "case": case,
        "junit": junit,
        "html": html,
        "address": address,
        "missing_address": missing_address,
        "blocking_address": blocking_address,
        "rejecting_address": rejecting_address,
        "timeout_s": timeout,
    }
    raise typer.Exit(_run(login, login.url(url), options))


def _run(login: ConformanceLogin, url: str, options: Mapping[str, object]) -> int:
    """Run the harness; return its exit status."""
    try:
        files = login.files(url)
        context = None if files is None else files.context()
    except ValueError as error:
        fail(str(error), EXIT_USAGE)
    # in a wheel, the harness is in the package; in a checkout, among the other tests
    package = "broker" if find_spec("broker.conformance") is not None else "tests"
    status: int = import_module(f"{package}.conformance.command").run(
        url=url,
        user=login.user,
        password=login.password,
        mechanism=login.mechanism,
        context=context,
        shows_certificate=files is not None and files.cert is not None,
        **options,
    )
    return status
