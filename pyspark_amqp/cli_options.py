"""Options that the commands of `jms-broker pipeline` share, and the parsing of their values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, get_type_hints

import typer

from broker.cli.events import UNITS, moment
from pyspark_amqp.jobs.running import EngineName, pairs

Place = Annotated[
    Path, typer.Argument(metavar="ARCHIVE", help="The archive's folder.", show_default=False)
]
OptionalPlace = Annotated[
    Path | None,
    typer.Argument(
        metavar="[ARCHIVE]",
        help="The archive's folder; without it --url's own event log is read.",
        show_default=False,
    ),
]
Url = Annotated[
    str,
    typer.Option(
        help="The broker, amqp://HOST:PORT or amqps://…; several with commas are tried in turn."
    ),
]
OptionalUrl = Annotated[
    str | None, typer.Option(help="The broker, amqp://HOST:PORT or amqps://….", show_default=False)
]
User = Annotated[
    str | None,
    typer.Option(help="A user of the broker with the rights for it.", show_default=False),
]
Password = Annotated[
    str | None,
    typer.Option(
        envvar="JMS_BROKER_PASSWORD",
        help="The password of --user; better as the variable, which other users do not see.",
        show_default=False,
    ),
]
TokenFile = Annotated[
    str | None,
    typer.Option(
        help="A file with a token of --user, in place of a password; it is read at each login.",
        show_default=False,
    ),
]
Ca = Annotated[
    str | None,
    typer.Option(
        envvar="JMS_BROKER_CA",
        help="With amqps:// and https://: the PEM file of the trusted authorities. Without it"
        " those of the machine are trusted.",
        show_default=False,
    ),
]
Cert = Annotated[
    str | None,
    typer.Option(
        envvar="JMS_BROKER_CERT",
        help="With amqps:// and https://: the PEM file of the certificate to show. Without --user"
        " it also logs in.",
        show_default=False,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        envvar="JMS_BROKER_KEY",
        help="The PEM file of the private key of --cert; the file of --cert by default.",
        show_default=False,
    ),
]
KeyPasswordFile = Annotated[
    str | None,
    typer.Option(help="A file with nothing but the password of --key.", show_default=False),
]
ManagementUrl = Annotated[
    str | None,
    typer.Option(
        help="The broker's HTTP port, http://HOST:PORT or https://…: faster than AMQP.",
        show_default=False,
    ),
]
More = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", metavar="NAME=VALUE", help="Any other option of the source `amqp`."
    ),
]
EngineOption = Annotated[
    EngineName | None,
    typer.Option(
        "--engine",
        help="spark, or duckdb: in this process, without Java. Without it spark if PySpark is"
        " installed.",
        show_default=False,
    ),
]
Master = Annotated[
    str | None,
    typer.Option(help="Spark's master. [default: local[*], this machine]", show_default=False),
]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark.")
]
Since = Annotated[
    str | None,
    typer.Option(
        help="Not before: 15m or 2h ago, or 2026-01-31T12:00 in the time zone of this machine, or"
        " with an offset, such as 2026-01-31T12:00+00:00.",
        show_default=False,
    ),
]
Until = Annotated[
    str | None, typer.Option(help="Before that time, written alike.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


class What(Enum):
    """The parts of an archive that a command works on."""

    MESSAGES = "messages"
    EVENTS = "events"
    BOTH = "both"

    def parts(self) -> list[str]:
        return ["messages", "events"] if self is What.BOTH else [self.value]


class Mode(Enum):
    """The ways to read messages: browse leaves them in the queue, lease takes them from it."""

    BROWSE = "browse"
    LEASE = "lease"


class Format(Enum):
    """The formats of an archive: files alone, or files that are tables, too."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


class Delivery(Enum):
    """The ways to send a replay: staged, with each message once, or at least once."""

    STAGED = "staged"
    AT_LEAST_ONCE = "at-least-once"


ArchiveWhat = Annotated[What, typer.Option(help="What is archived.")]
ArchiveAddress = Annotated[
    str | None, typer.Option(help="The queue whose messages are meant.", show_default=False)
]
ArchiveSubscription = Annotated[
    str | None,
    typer.Option(help="Or the durable subscription, durable/CLIENT/NAME.", show_default=False),
]
ArchiveMode = Annotated[
    Mode | None,
    typer.Option(
        help="browse: messages stay in the broker; lease: they are taken from it, once they"
        " are archived. Without it an address is browsed and a subscription leased.",
        show_default=False,
    ),
]
ArchiveSelector = Annotated[
    str | None, typer.Option(help="Only messages it selects.", show_default=False)
]
ArchiveFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="parquet: files in folders; delta, iceberg: their rows are in tables of Delta Lake or"
        " Apache Iceberg, too. Without it that of the archive, parquet for a new one.",
        show_default=False,
    ),
]
ArchiveCatalog = Annotated[
    str | None,
    typer.Option(
        help="With --format iceberg: a catalog of pyiceberg's configuration, into whose tables the"
        " rows are copied. Without it one in the archive's folder, without copies.",
        show_default=False,
    ),
]
ArchiveNamespace = Annotated[
    str | None,
    typer.Option(
        help="With --format iceberg: where the tables messages and events are. [default: archive]",
        show_default=False,
    ),
]
ArchiveEvery = Annotated[
    str | None,
    typer.Option(
        help="Go on, a batch every 30s, 5m or 1h, until ^C. Without it: what is there now.",
        show_default=False,
    ),
]
ChainFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A TOML file with a table [[job]] for each job.", show_default=False
    ),
]
CompactWhat = Annotated[What, typer.Option(help="What is compacted.")]
CompactTargetMb = Annotated[
    int, typer.Option(min=1, help="Files are merged up to that size, in MiB.")
]
AuditAddress = Annotated[
    list[str] | None, typer.Option(help="Only messages there; may be repeated.")
]
AuditDrained = Annotated[
    bool,
    typer.Option("--drained", help="All queues were empty in the end: what has no end is lost."),
]
AuditFrom = Annotated[
    int,
    typer.Option(
        "--from",
        min=0,
        help="Only rows of the event log from this id on; those before may be missing.",
    ),
]
AuditOut = Annotated[
    Path | None,
    typer.Option(help="Write the offending messages to FILE.csv or FILE.parquet."),
]
AuditShow = Annotated[int, typer.Option(min=0, help="Print so many offending messages.")]
ReportOut = Annotated[Path, typer.Option(help="The folder for report.html and two CSV files.")]
ReportAudit = Annotated[
    bool,
    typer.Option(
        "--audit/--no-audit", help="The page has the verdict of the audit of the same event log."
    ),
]
ReportAddress = Annotated[
    list[str] | None, typer.Option(help="Only what happened there; may be repeated.")
]
ReplayTo = Annotated[
    str | None,
    typer.Option(
        help="Where to. Without it: each message to the address it was archived from.",
        show_default=False,
    ),
]
ReplayAddress = Annotated[
    list[str] | None,
    typer.Option("--from", help="Only messages archived from there; may be repeated."),
]
ReplaySubscription = Annotated[
    str | None, typer.Option(help="Only those of that subscription.", show_default=False)
]
ReplaySelector = Annotated[
    str | None, typer.Option(help="Only those that a JMS selector selects.", show_default=False)
]
ReplayMessageId = Annotated[
    list[str] | None,
    typer.Option("--id", help="Only that JMSMessageID, or @FILE: one a line; may be repeated."),
]
ReplayRate = Annotated[
    float | None, typer.Option(min=0.001, help="So many a second.", show_default=False)
]
ReplaySkip = Annotated[int, typer.Option(min=0, help="With --rate: leave the first so many out.")]
ReplayDryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be sent.")]
ReplayDelivery = Annotated[
    Delivery,
    typer.Option(help="staged: each message once; at-least-once: any broker of AMQP 1.0."),
]


def _time(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        micros = moment(text, datetime.now(UTC))
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is neither like 15m nor like 2026-01-31T12:00", param_hint=option
        ) from None


def window(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """Return the times of --since and --until, None for one that is not given.

    Raise BadParameter if one cannot be parsed or they are reversed.
    """
    begin, end = _time(since, "--since"), _time(until, "--until")
    if begin is not None and end is not None and begin >= end:
        raise typer.BadParameter("it is not after --since", param_hint="--until")
    return begin, end


def interval(text: str) -> str:
    """Return an interval such as `5m` in Spark's words; raise BadParameter if `text` is none."""
    count, unit = text[:-1], UNITS.get(text[-1:])
    if not count.isdecimal() or unit is None or int(count) == 0:
        raise typer.BadParameter(f"{text!r} is not like 30s, 5m or 1h", param_hint="--every")
    return f"{count} {unit}"


Login = Mapping[str, str]
"""The data source's options for a login."""

NO_LOGIN: Final[Login] = MappingProxyType({})

LOGIN: Final[Mapping[str, tuple[object, str]]] = {
    "user": (User, "username"),
    "password": (Password, "password"),
    "token_file": (TokenFile, "tokenFile"),
    "ca": (Ca, "tls.caFile"),
    "cert": (Cert, "tls.certFile"),
    "key": (Key, "tls.keyFile"),
    "key_password_file": (KeyPasswordFile, "tls.keyPasswordFile"),
}
"""The options of a login: parameter of the command, its type, and option of the data source."""


def with_login(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with the options LOGIN in place of its parameter `login`.

    Typer reads the options of a command from its signature.
    """

    @wraps(command)
    def taken(**given: object) -> None:
        texts = {name: given.pop(name) for name in LOGIN}
        command(**given, login=_login(texts))

    types = get_type_hints(command, include_extras=True)
    parameters = []
    for each in inspect.signature(command).parameters.values():
        if each.name == "login":
            parameters += [
                inspect.Parameter(name, each.kind, default=None, annotation=kind)
                for name, (kind, _) in LOGIN.items()
            ]
        else:
            parameters.append(each.replace(annotation=types[each.name]))
    taken.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # read by `inspect`
    taken.__annotations__ = {each.name: each.annotation for each in parameters}
    return taken


def _login(texts: Mapping[str, object]) -> Login:
    """Return the data source's options for a login.

    A password without a user is left out, since it may be a variable for other commands. The key
    is in the file of the certificate, unless it has a file of its own.
    """
    given = {LOGIN[name][1]: str(value) for name, value in texts.items() if value is not None}
    if "username" not in given or "tokenFile" in given:
        given.pop("password", None)
    if "tls.certFile" in given:
        given.setdefault("tls.keyFile", given["tls.certFile"])
    return given


def broker_options(
    url: str | None, login: Login, management_url: str | None, more: list[str] | None
) -> dict[str, str]:
    """Return the data source's options for the broker; those in `more`, NAME=VALUE, win."""
    given = {"url": url, "managementUrl": management_url}
    kept = {name: value for name, value in given.items() if value is not None}
    return {**kept, **login, **pairs(more, "--option")}
