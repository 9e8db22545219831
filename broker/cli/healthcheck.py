"""`jms-broker healthcheck`: test whether a broker opens and closes a connection.

Containers and supervisors run it every few seconds, so it sends the engine's frames on a plain
socket, without Proton. A broker that asks for a password has shown by its SASL mechanisms that it
serves, so no password has to be stored for the check.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import unquote

import typer

from broker.amqp.errors import ConnectionFault
from broker.amqp.frames import AMQP_HEADER
from broker.amqp.performatives import Close, Open
from broker.amqp.sasl import ANONYMOUS, EXTERNAL, PLAIN
from broker.amqp.sasl_frames import SASL_OK, SaslInit, SaslOutcome
from broker.cli.broker_url import URLError, split_url
from broker.cli.client_tls import (
    AMQPS,
    Ca,
    Cert,
    ClientTls,
    ClientTlsError,
    Key,
    chosen_tls,
    handshake_failure,
)
from broker.cli.ending import fail
from broker.cli.serve import CONFIG_VARIABLE
from broker.cli.wire import Unhealthy, Wire, place_of
from broker.compiled import BUILD, INTERPRETED, SLOWER, build_kind

if TYPE_CHECKING:
    from broker.settings import Settings

THIS_MACHINE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not listened on
"""The address to connect to, by the wildcard address that a broker listens on."""


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
        typer.Option(envvar=CONFIG_VARIABLE, help="The TOML file with its settings."),
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
    try:
        tls = None if url is None else chosen_tls(url, ca=ca, cert=cert, key=key)
    except ValueError as error:
        fail(str(error))
    run(url, config, timeout, shard=shard, tls=tls)


def run(
    url: str | None,
    config: Path | None,
    timeout_s: float,
    *,
    shard: str | None = None,
    tls: ClientTls | None = None,
) -> None:
    """Print the verdict; exit with status 1 if the broker counts as down.

    `url` None means the broker with the settings of the environment and `config`: that `shard`, or
    else all shards if there are some.
    """
    try:
        if url is None:  # the broker of this installation, so it has the build of this one
            for each in urls_of_settings(config, shard):
                print(f"healthy: {check(each, timeout_s, build=build_kind())}")
        else:
            print(f"healthy: {check(url, timeout_s, tls=tls)}")
    except Unhealthy as verdict:
        print(f"jms-broker: {verdict}", file=sys.stderr)
        sys.exit(1)


def urls_of_settings(config: Path | None, shard: str | None = None) -> list[str]:
    """Return the URL of the broker with the settings of the environment and `config`.

    With shards, it is the URL of that `shard`, or there is one for each. Raise Unhealthy if the
    settings are wrong, or if they leave the choice of a port to the system.
    """
    from broker.settings import SettingsError, load_settings

    try:
        settings = load_settings(config)
        if shard is None and settings.shard:
            chosen = [settings.of_shard(each.name) for each in settings.shard]
        else:
            chosen = [settings.of_shard(shard)]
    except SettingsError as error:
        raise Unhealthy("; ".join(str(error).splitlines())) from None
    return [url_of_settings_in(each) for each in chosen]


def url_of_settings_in(settings: Settings) -> str:
    """Return the URL of the broker with `settings`; Unhealthy if the system chooses its port."""
    if settings.port == 0:
        raise Unhealthy(
            "port = 0 is a free port that only the broker knows: name the broker by --url"
        )
    host = THIS_MACHINE.get(settings.bind, settings.bind)
    return f"amqp://[{host}]:{settings.port}" if ":" in host else f"amqp://{host}:{settings.port}"


def offers_anonymous(url: str, timeout_s: float) -> bool:
    """Return True if a broker answers at `url` and lets clients in without a password."""
    try:
        with Wire.to(url, timeout_s, None) as wire:
            return ANONYMOUS in wire.mechanisms()
    except (OSError, ConnectionFault, Unhealthy):
        return False


def check(url: str, timeout_s: float, *, build: str = "", tls: ClientTls | None = None) -> str:
    """Return what the broker at `url` did to count as up; raise Unhealthy if it is down.

    The text says if the broker runs interpreted, by its `open`, or by `build` if the `open` does
    not say or the broker asks for a password before it. `tls` has the files for amqps://.
    """
    try:
        parts = split_url(url)
    except URLError as error:
        raise Unhealthy(str(error)) from None
    host, port = place_of(parts)
    used = (tls or ClientTls()) if parts.scheme == AMQPS else None
    place = f"{host}:{port}"
    login = (unquote(parts.username or ""), unquote(parts.password or ""))
    try:
        with Wire.to(url, timeout_s, used) as wire:
            shows_certificate = used is not None and used.cert is not None
            return _converse(wire, login, build=build, shows_certificate=shows_certificate)
    except TimeoutError:
        raise Unhealthy(f"{place} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise Unhealthy(f"{place}: {_reason(error, host, used)}") from None
    except ClientTlsError as error:
        raise Unhealthy(str(error)) from None
    except ConnectionFault as fault:
        raise Unhealthy(f"{place} does not speak AMQP 1.0: {fault}") from None
    except Unhealthy as verdict:
        raise Unhealthy(f"{place} {verdict}") from None


def _reason(error: OSError, host: str, tls: ClientTls | None) -> str:
    """Return the reason of a failed connection in words."""
    if tls is not None:
        import ssl

        if isinstance(error, ssl.SSLError):
            return handshake_failure(error, host, tls)
    return error.strerror or str(error)


def _converse(wire: Wire, login: tuple[str, str], *, build: str, shows_certificate: bool) -> str:
    """Open and close a connection; return what was done.

    Without a user in `login`, stop if the broker asks for a password: it has answered.
    """
    mechanisms = wire.mechanisms()
    user, password = login
    init = _init(mechanisms, user, password, shows_certificate=shows_certificate)
    if init is None:
        return _with_build(f"asks for a password ({', '.join(mechanisms)})", build)
    wire.send_sasl(init)
    outcome = wire.expect(SaslOutcome)
    if outcome.code != SASL_OK:
        raise Unhealthy(f"refuses {repr(user) if user else 'strangers'} (code {int(outcome.code)})")
    wire.send_bytes(AMQP_HEADER)
    wire.send(Open(container_id=f"jms-broker-healthcheck-{os.urandom(4).hex()}"))
    wire.expect_header(AMQP_HEADER)
    told = wire.expect(Open).properties.get(BUILD, build)
    wire.send(Close())
    wire.expect(Close)
    return _with_build("opened and closed a connection", told)


def _init(
    mechanisms: list[str], user: str, password: str, *, shows_certificate: bool
) -> SaslInit | None:
    """Return the login, None if it needs a password and there is no user.

    Raise Unhealthy if the broker does not offer PLAIN to a user.
    """
    if user:
        if PLAIN not in mechanisms:
            raise Unhealthy(
                f"does not offer PLAIN here ({', '.join(mechanisms)}): use amqps://, or leave the"
                " user out of the URL"
            )
        return SaslInit(mechanism=PLAIN, initial_response=f"\0{user}\0{password}".encode())
    if shows_certificate and EXTERNAL in mechanisms:
        return SaslInit(mechanism=EXTERNAL, initial_response=b"")
    return SaslInit(mechanism=ANONYMOUS) if ANONYMOUS in mechanisms else None


def _with_build(done: str, build: object) -> str:
    """Return `done`, with a note that the broker is slow if `build` says it is not compiled."""
    return f"{done}; it runs {SLOWER}" if build == INTERPRETED else done
