"""`jms-broker audit`: show the audit records of a broker, and check that none was changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_FAILURE, EXIT_STATUSES, EXIT_USAGE, fail
from broker.cli.managing import Json
from broker.cli.printing import json_of, print_records
from broker.cli.serve import CONFIG_VARIABLE
from broker.cli.shard_option import Shard, settings_of_shard

if TYPE_CHECKING:
    from broker.audit.record import ChainLink
    from broker.audit.verify import ChainReport

audit = Commands(
    help="Show audit records, and verify them. They read the files; no broker is asked.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

COLUMNS: Final = ("at", "seq", "actor", "via", "from", "action", "resource", "result", "after")

_HEAD: Final = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")

Config = Annotated[
    Path | None,
    typer.Option(envvar=CONFIG_VARIABLE, help="The TOML file with the settings of the broker."),
]
Directory = Annotated[
    Path | None,
    typer.Option(
        help="The folder of the records. [default: the one of the settings]", show_default=False
    ),
]


def _folder(config: Path | None, directory: Path | None, shard: str | None) -> Path:
    """Return the folder of the records; without one the command ends."""
    if directory is not None:
        return directory
    folder = settings_of_shard(config, shard).audit_folder()
    if folder is None:
        fail("the settings name no folder for audit records: give one with --directory", EXIT_USAGE)
    return folder


@contextmanager
def _readable() -> Iterator[None]:
    """End the command with one line if the files cannot be read."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise  # of standard output
        fail(f"{error.filename}: {error.strerror}")


@audit.command(epilog=EXIT_STATUSES)
def show(
    since: Annotated[
        str,
        typer.Option(
            help="Only records from this time on (UTC), as 2026-11-24 or 2026-11-24T04:05:06.",
            show_default=False,
        ),
    ] = "",
    action: Annotated[
        str,
        typer.Option(
            help="Only this action; * is any text: auth.*, user.added.", show_default=False
        ),
    ] = "",
    user: Annotated[
        str, typer.Option(help="Only records by this user, or about it.", show_default=False)
    ] = "",
    config: Config = None,
    directory: Directory = None,
    shard: Shard = None,
    json: Json = False,
) -> None:
    """Print the records, the oldest first. --json prints them with all fields."""
    from broker.audit.reading import RecordChoice, SinceError, records, time_in

    try:
        wanted = RecordChoice(since=time_in(since), action=action, user=user)
    except SinceError as error:
        fail(f"--{error}", EXIT_USAGE)
    folder = _folder(config, directory, shard)
    with _readable():
        chosen = records(folder, wanted)
        print_records(
            (
                {name: record.get(name) for name in (record if json else COLUMNS)}
                for record in chosen
            ),
            COLUMNS,
            as_json=json,
        )


@audit.command(epilog=EXIT_STATUSES)
def verify(
    head: Annotated[
        str,
        typer.Option(
            help="NUMBER:HASH as an earlier check has printed it: that record must be there.",
            show_default=False,
        ),
    ] = "",
    config: Config = None,
    directory: Directory = None,
    shard: Shard = None,
    json: Json = False,
) -> None:
    """Compute the chain of all records anew, and print the first place where it breaks.

    The exit status is 1 if a record was changed, removed, added or exchanged. Note the printed head
    in another place: --head also finds a chain that was computed anew.
    """
    from broker.audit.verify import verify as check

    folder = _folder(config, directory, shard)
    noted = _noted(head)
    with _readable():
        report = check(folder, noted)
    if json:
        typer.echo(json_of(_record(report)))
    else:
        _print_report(folder, report)
    if not report.is_sound():
        raise typer.Exit(EXIT_FAILURE)


def _noted(head: str) -> ChainLink | None:
    from broker.audit.record import ChainLink

    if not head:
        return None
    matched = _HEAD.fullmatch(head)
    if matched is None:
        fail("--head is NUMBER:HASH, as `jms-broker audit verify` prints it", EXIT_USAGE)
    return ChainLink(int(matched[1]), matched[2])


def _record(report: ChainReport) -> dict[str, object]:
    return {
        "sound": report.is_sound(),
        "files": report.files,
        "records": report.records,
        "first": report.first,
        "last": report.last.seq,
        "head": f"{report.last.seq}:{report.last.hash}",
        "problem": report.problem,
        "file": None if report.file is None else str(report.file),
        "line": report.line,
        "torn_bytes": report.torn_bytes,
    }


def _print_report(folder: Path, report: ChainReport) -> None:
    if report.torn_bytes:
        typer.echo(
            f"the last line was not written to its end ({report.torn_bytes} bytes): it is being"
            " written, or the broker was killed; a broker that starts removes and records it"
        )
    if not report.is_sound():
        place = folder if report.file is None else report.file
        line = f", line {report.line}" if report.line else ""
        typer.echo(f"broken: {place}{line}: {report.problem}")
        typer.echo(f"records before it: {report.records}, to number {report.last.seq}")
        return
    typer.echo(
        f"{folder}: sound: records {report.records}, from number {report.first}"
        f" to {report.last.seq}, in {report.files} files"
    )
    typer.echo(f"head {report.last.seq}:{report.last.hash}")
