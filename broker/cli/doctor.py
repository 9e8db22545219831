"""`jms-broker doctor`: look for known faults of a broker, of its settings, files and machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import unquote

import typer

from broker.cli.broker_url import MANAGEMENT_SCHEMES, split_url
from broker.cli.client_tls import Ca, Cert, Key, chosen_tls
from broker.cli.ending import (
    EXIT_FAILURE,
    EXIT_USAGE,
    errors_told,
    fail,
)
from broker.cli.managing import Json, Password, Timeout, Token, User, taking
from broker.cli.messages import ANSWER_TIMEOUT_S
from broker.cli.printing import print_records
from broker.cli.serve import CONFIG_VARIABLE
from broker.cli.shard_option import Shard

if TYPE_CHECKING:
    from broker.doctor.checked_broker import RunningBroker
    from broker.settings import Settings

COLUMNS: Final = ("code", "level", "check", "finding", "remedy")

WATCH_S: Final = 1.0


@dataclass(frozen=True)
class DoctorPlace:
    """The options for the running broker that the doctor asks, and for its settings."""

    url: Annotated[
        str | None,
        typer.Option(
            envvar="JMS_BROKER_URL",
            help="A running broker, amqp://USER:PASSWORD@HOST:PORT or amqps://…. Its settings are"
            " checked, too, if --config names them. [default: the broker that has the store of the"
            " settings open, if there is one]",
            show_default=False,
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            envvar=CONFIG_VARIABLE,
            help="The TOML file with the settings of the broker.",
            show_default=False,
        ),
    ] = None
    shard: Shard = None
    user: User = None
    password: Password = None
    token: Token = None
    timeout: Timeout = ANSWER_TIMEOUT_S
    ca: Ca = None
    cert: Cert = None
    key: Key = None

    def settings(self) -> Settings | None:
        """Return the settings; None if there is only a URL. Wrong ones end the command."""
        from broker.settings import SettingsError, load_settings

        if self.url is not None and self.config is None:
            return None
        try:
            return load_settings(self.config).of_shard(self.shard)
        except SettingsError as error:
            fail("; ".join(str(error).splitlines()), EXIT_USAGE)

    def login(self) -> tuple[str | None, ...]:
        """Return the secrets of the options and of the URL, which no output may contain."""
        in_url = None
        if self.url is not None:
            in_url = split_url(self.url, MANAGEMENT_SCHEMES).password
        return self.password, self.token, None if in_url is None else unquote(in_url)

    @contextmanager
    def reached(self, settings: Settings | None) -> Iterator[RunningBroker | None]:
        """Yield the running broker for the block, None if none runs or it is not reached.

        A broker that --url names must be reached, or the command ends with the error's status.
        """
        from broker.cli.ending import ClientError

        with ExitStack() as stack:
            try:
                reached = self._connected(stack, settings)
            except ClientError as error:
                if self.url is not None:
                    fail(str(error), error.exit_status)
                typer.echo(f"jms-broker: the running broker is not asked: {error}", err=True)
                reached = None
            yield reached

    def _connected(self, stack: ExitStack, settings: Settings | None) -> RunningBroker | None:
        """Connect until `stack` closes; None if there is no broker. ClientError if it is silent."""
        from broker.cli.answering_broker import AnsweringBroker
        from broker.cli.requests import managed, with_user

        url = self.url or _url_of_holder(settings)
        if url is None:
            return None
        tls = chosen_tls(url, ca=self.ca, cert=self.cert, key=self.key)
        password = self.password
        if self.user is not None and password is None:
            password = typer.prompt("Password", hide_input=True, err=True)
        login = with_user(url, self.user, password)
        requests = managed(login, self.timeout, tls=tls, token=self.token)
        return AnsweringBroker(stack.enter_context(requests))


def _url_of_holder(settings: Settings | None) -> str | None:
    """Return the URL of the broker that has the store of `settings` open; None if none has."""
    from broker.cli.healthcheck import url_of_settings_in
    from broker.cli.wire import Unhealthy
    from broker.doctor.checked_broker import CheckedBroker

    if settings is None or CheckedBroker(settings=settings, now_s=0.0).pid is None:
        return None
    try:
        return url_of_settings_in(settings)
    except Unhealthy as error:
        typer.echo(f"jms-broker: the running broker is not asked: {error}", err=True)
        return None


@taking(DoctorPlace)
def doctor(
    place: DoctorPlace,
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="Also write a new zip file with findings, settings, versions, and the end of the"
            " log, without secrets.",
            show_default=False,
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="With --bundle: the file of the broker's log.", show_default=False),
    ] = None,
    watch: Annotated[
        float, typer.Option(min=0.0, help="Look for new dead letters for so many seconds.")
    ] = WATCH_S,
    json: Json = False,
) -> None:
    """Look for known faults of a broker: in its settings, files and machine, and while it runs.

    Each line has a code, OK, WARN, FAIL, or SKIP for a check that was not made, the finding, and
    the remedy. Nothing is changed. Without --url the broker need not run: the settings are those of
    --config and of the environment.
    """
    if log is not None and bundle is None:
        fail("--log is for the bundle: give --bundle FILE, too", EXIT_USAGE)
    from broker.doctor.bundle import BundleContent, masking_of, write_bundle
    from broker.doctor.checked_broker import CheckedBroker
    from broker.doctor.checks import examine
    from broker.doctor.finding import FAIL

    settings = place.settings()
    with errors_told():
        with place.reached(settings) as running:
            checked = CheckedBroker(
                settings=settings, running=running, now_s=time.time(), watch_s=watch
            )
            findings = examine(checked)
            store = None if running is None else running.ask("READ", "store", "store")
        masking = masking_of(settings, *place.login())
        if bundle is not None:
            content = BundleContent(findings=findings, settings=settings, log=log, store=store)
            try:
                write_bundle(bundle, content, masking)
            except OSError as error:
                fail(f"{error.filename}: {error.strerror}")
    print_records([masking.record(each.record()) for each in findings], COLUMNS, as_json=json)
    if any(each.level == FAIL for each in findings):
        raise typer.Exit(EXIT_FAILURE)
