"""The options of a run as a user types them, and the `Options` that cases get from them."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import unquote, urlsplit

import typer

from .logins import KNOWN
from .verdict import NAME, Options
from .version import HARNESS

AMQP: Final = "amqp"
AMQPS: Final = "amqps"

ENCRYPTED: Final = (AMQPS, "wss")
WEBSOCKET: Final = ("ws", "wss")
PORTS: Final = {AMQP: 5672, AMQPS: 5671, "ws": 5673, "wss": 5674}
"""The port of a URL without one, by its scheme."""

WITHIN_TLS: Final = {AMQP: AMQPS, "ws": "wss"}
"""The scheme of a URL with TLS, by the one without."""

WITHIN_WEBSOCKET: Final = {AMQP: "ws", AMQPS: "wss"}
"""The scheme of a URL of WebSocket, by the one of the same without."""

KINDS: Final = ("queue", "topic")
"""The kinds of addresses that may have a template."""

PASSWORD_VARIABLES: Final = ["AMQP_CONFORMANCE_PASSWORD", "JMS_BROKER_CONFORMANCE_PASSWORD"]
CLASS_PATH_VARIABLE: Final = "AMQP_CONFORMANCE_JMS_CLASS_PATH"
CA_VARIABLE: Final = "JMS_BROKER_CA"
CERT_VARIABLE: Final = "JMS_BROKER_CERT"
KEY_VARIABLE: Final = "JMS_BROKER_KEY"


class CannotRun(Exception):  # noqa: N818 - informs the user
    """There are no cases to run, no broker to run them against, or a file that cannot be used."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(HARNESS)
        raise typer.Exit


@dataclass(frozen=True)
class Asked:
    """The options of a run; the command line shows them in this order."""

    url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL",
            help="The broker, amqp://USER:PASSWORD@HOST:PORT, amqps://…, ws://… or wss://….",
            show_default=False,
        ),
    ] = None
    clause: Annotated[
        list[str],
        typer.Option(
            help="Only a clause and those below it: 2.6 of core, jms:13, anonterm:, …. May be"
            " repeated.",
            show_default=False,
        ),
    ] = field(default_factory=list)
    case: Annotated[
        list[str],
        typer.Option(
            help="Only the case of that name, with its frames. May be repeated, and is run"
            " besides those of --clause.",
            show_default=False,
        ),
    ] = field(default_factory=list)
    list_only: Annotated[
        bool,
        typer.Option(
            "--list",
            metavar="",
            help="List the chosen cases, each with source, clause and sentence, and run none.",
        ),
    ] = False
    strict_jms: Annotated[
        bool,
        typer.Option(
            "--strict-jms",
            metavar="",
            help="Fail what JMS wants and AMQP does not: message groups that are ignored, and an"
            " order that ignores priorities.",
        ),
    ] = False
    known: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file of expected failures: \\[failures], and a line NAME = 'REASON' for"
            " each case.",
            show_default=False,
        ),
    ] = None
    restart: Annotated[
        str | None,
        typer.Option(
            help="A shell command that restarts the broker, and ends when the old one is gone: for"
            " cases on what must outlive a restart, and to go on if the broker dies.",
            show_default=False,
        ),
    ] = None
    jms: Annotated[
        bool,
        typer.Option(
            "--jms",
            metavar="",
            help="Run the suite in Java over Qpid JMS as well, whose rules are jms-api:. It needs"
            " a JDK and Maven.",
        ),
    ] = False
    jms_class_path: Annotated[
        str | None,
        typer.Option(
            envvar=CLASS_PATH_VARIABLE,
            help="With --jms: the class path of Qpid JMS 2.x, such as /opt/qpid-jms/lib/*, in place"
            " of Maven.",
            show_default=False,
        ),
    ] = None
    junit: Annotated[
        Path | None, typer.Option(help="Write a report for build servers.", show_default=False)
    ] = None
    html: Annotated[
        Path | None, typer.Option(help="Write a report for people.", show_default=False)
    ] = None
    json: Annotated[
        Path | None,
        typer.Option(help="Write a report for programs, and for `compare`.", show_default=False),
    ] = None
    address: Annotated[
        str | None,
        typer.Option(
            help="A queue that exists, to be emptied; by default new ones are used.",
            show_default=False,
        ),
    ] = None
    address_template: Annotated[
        list[str],
        typer.Option(
            help="The form of new addresses, of queues or of topics: topic=amq.topic/{name}. May be"
            " repeated.",
            show_default=False,
        ),
    ] = field(default_factory=list)
    missing_address: Annotated[
        str | None,
        typer.Option(
            help="An address that does not exist and will not be made.", show_default=False
        ),
    ] = None
    blocking_address: Annotated[
        str | None,
        typer.Option(
            help="A small queue that gives no credit when it is full.", show_default=False
        ),
    ] = None
    rejecting_address: Annotated[
        str | None,
        typer.Option(help="A small queue that rejects when it is full.", show_default=False),
    ] = None
    dead_letter_address: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE=DEAD_LETTERS",
            help="A queue, and a small one that rejects when it is full, where messages go that"
            " consumers of the first reject.",
            show_default=False,
        ),
    ] = None
    deduplicating_address: Annotated[
        str | None,
        typer.Option(
            help="A queue that discards a message whose message-id it has had.", show_default=False
        ),
    ] = None
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Wait so many seconds for each answer.")
    ] = 5.0
    user: Annotated[
        str | None,
        typer.Option(help="The user to log in as; no login by default.", show_default=False),
    ] = None
    password: Annotated[
        str | None,
        typer.Option(
            envvar=PASSWORD_VARIABLES, help="The password of the user.", show_default=False
        ),
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
        bool,
        typer.Option("--tls", metavar="", help="Speak TLS, as with amqps:// in place of amqp://."),
    ] = False
    websocket: Annotated[
        bool,
        typer.Option(
            "--websocket",
            metavar="",
            help="Speak AMQP within WebSocket, as with ws:// in place of amqp://.",
        ),
    ] = False
    ca: Annotated[
        Path | None,
        typer.Option(
            help="With TLS: the PEM file of the authorities that the broker's certificate may be"
            f" signed by. [env var: {CA_VARIABLE}; default: those that this machine trusts]",
            show_default=False,
        ),
    ] = None
    cert: Annotated[
        Path | None,
        typer.Option(
            help="With TLS: the PEM file of the certificate to show. Without a user it also logs"
            f" in (EXTERNAL). [env var: {CERT_VARIABLE}]",
            show_default=False,
        ),
    ] = None
    key: Annotated[
        Path | None,
        typer.Option(
            help="The PEM file of the private key of --cert."
            f" [env var: {KEY_VARIABLE}; default: the file of --cert]",
            show_default=False,
        ),
    ] = None
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False


def options_of(asked: Asked) -> Options:
    """Return the broker's address and the options; raise CannotRun if the URL is no address."""
    url = _with_layers(asked)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or PORTS.get(parts.scheme)
    except ValueError as error:
        raise CannotRun(_no_address(url, str(error))) from None
    if parts.scheme not in PORTS or host is None or port is None:
        raise CannotRun(
            f"{_without_login(url)} is not like amqp://HOST:PORT or amqps://HOST:PORT,"
            " or ws://HOST:PORT/PATH or wss://HOST:PORT/PATH"
        )
    if asked.mechanism is not None and asked.mechanism not in KNOWN:
        raise CannotRun(f"--mechanism {asked.mechanism} is none of {', '.join(KNOWN)}")
    templates = _templates(asked.address_template)
    if asked.dead_letter_address is not None and not _is_pair(asked.dead_letter_address):
        raise CannotRun(
            f"--dead-letter-address {asked.dead_letter_address} is not like QUEUE=DEAD_LETTERS"
        )
    context, shows_certificate = _tls(asked, is_encrypted=parts.scheme in ENCRYPTED)
    return Options(
        host=host,
        port=port,
        user=_either(asked.user, parts.username),
        password=_either(asked.password, parts.password),
        address=asked.address,
        missing_address=asked.missing_address,
        blocking_address=asked.blocking_address,
        rejecting_address=asked.rejecting_address,
        dead_letter_address=asked.dead_letter_address,
        deduplicating_address=asked.deduplicating_address,
        timeout_s=asked.timeout,
        context=context,
        shows_certificate=shows_certificate,
        mechanism=asked.mechanism,
        websocket=(parts.path or "/") if parts.scheme in WEBSOCKET else None,
        strict_jms=asked.strict_jms,
        restart=asked.restart,
        queue_template=templates.get("queue", NAME),
        topic_template=templates.get("topic", NAME),
    )


def _no_address(url: str, error: str) -> str:
    """Return why `url` is no address; `error` of urlsplit, which may quote a part of a login."""
    if "@" not in url:
        return f"{url}: {error}"
    hint = (
        "its host or port is wrong, or its login has a character to be written as %2F, %23 or %3F"
    )
    return f"{_without_login(url)}: {hint}"


def _without_login(url: str) -> str:
    """Return `url` without user and password, also if they are not written as they should be."""
    _, at, place = url.rpartition("@")
    if not at:
        return url
    scheme, separator, _ = url.partition("://")
    return f"{scheme}{separator}…@{place}" if separator and scheme.isalnum() else f"…@{place}"


def _with_layers(asked: Asked) -> str:
    """Return the URL of the broker: of WebSocket, and of TLS, if they are asked for."""
    if asked.url is None:
        raise CannotRun("which broker? Give its URL, amqp://HOST:PORT, or --list for the cases")
    scheme, separator, rest = asked.url.partition("://")
    if asked.websocket:
        scheme = WITHIN_WEBSOCKET.get(scheme, scheme)
    if asked.tls:
        scheme = WITHIN_TLS.get(scheme, scheme)
    return f"{scheme}{separator}{rest}"


def _either(typed: str | None, in_url: str | None) -> str | None:
    """Return the option, or without it the part of the URL."""
    return unquote(in_url) if typed is None and in_url is not None else typed


def _is_pair(typed: str) -> bool:
    """Return whether there is something on both sides of the first equals sign."""
    first, _, second = typed.partition("=")
    return bool(first and second)


def _templates(typed: list[str]) -> dict[str, str]:
    """Return the templates by kind. Raise CannotRun for one that is not KIND=…{name}…."""
    found: dict[str, str] = {}
    for each in typed:
        kind, _, template = each.partition("=")
        if kind not in KINDS or template.count(NAME) != 1:
            raise CannotRun(
                f"--address-template {each} is not like topic=amq.topic/{NAME}"
                f" or queue=/queues/{NAME}"
            )
        found[kind] = template
    return found


def _tls(asked: Asked, *, is_encrypted: bool) -> tuple[ssl.SSLContext | None, bool]:
    """Return the context of TLS, None without TLS, and whether it has a certificate to show.

    Raise CannotRun for files that cannot be used, or that need TLS.
    """
    if not is_encrypted:
        for name, file in (("ca", asked.ca), ("cert", asked.cert), ("key", asked.key)):
            if file is not None:
                raise CannotRun(f"--{name} is for TLS: write amqps:// or wss:// in the URL")
        return None, False
    ca, cert, key = tls_files(asked)
    if key is not None and cert is None:
        raise CannotRun(f"--key {key} needs --cert, the certificate of that key")
    for option, path in (("--ca", ca), ("--cert", cert), ("--key", key)):
        if path is not None and not path.is_file():
            raise CannotRun(f"{option} {path}: there is no such file")
    try:
        context = ssl.create_default_context(cafile=ca)
    except (ssl.SSLError, OSError) as error:
        raise CannotRun(f"--ca {ca}: no certificates in PEM form: {error}") from None
    if cert is not None:
        _show(context, cert, key)
    return context, cert is not None


def tls_files(asked: Asked) -> tuple[Path | None, Path | None, Path | None]:
    """Return the files of the authorities, the certificate and its key, each None if not given.

    The variables of the environment replace files that were not typed: the key's only together
    with the certificate's.
    """
    ca, cert, key = asked.ca or _path_in(CA_VARIABLE), asked.cert, asked.key
    if cert is None and key is None:
        cert, key = _path_in(CERT_VARIABLE), _path_in(KEY_VARIABLE)
    return ca, cert, key


def _show(context: ssl.SSLContext, cert: Path, key: Path | None) -> None:
    """Load the certificate and its key into `context`. Raise CannotRun if they do not fit."""

    def no_password() -> str:
        # without this function OpenSSL asks on the terminal
        raise CannotRun(f"--key {key or cert}: the key has a password. Write it without one")

    try:
        context.load_cert_chain(cert, key, no_password)
    except (ssl.SSLError, OSError) as error:
        raise CannotRun(
            f"--cert {cert}: no certificate in PEM form with its key in {key or cert}: {error}"
        ) from None


def _path_in(variable: str) -> Path | None:
    """Return the path in a variable of the environment; None if it is empty or not set."""
    value = os.environ.get(variable)
    return Path(value) if value else None
