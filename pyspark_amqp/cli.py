"""`jms-broker pipeline`: archive, compact, audit, report, replay, doctor."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from typer.core import TyperGroup

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_FAILURE, fail
from pyspark_amqp import cli_options as take
from pyspark_amqp.jobs.running import (
    EXIT_NOT_JUDGED,
    EXIT_USAGE,
    SparkSettings,
    chain,
    engine_for,
    engine_of,
    pairs,
    summed,
    told,
)

if TYPE_CHECKING:
    from pyspark_amqp.jobs.verdict import Verdict

EXIT_STATUSES: Final = "Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted."
AUDIT_STATUSES: Final = (
    "Exit status: 0 all checks hold, 1 one does not, 2 wrong usage, 3 nothing could be judged,"
    " 130 interrupted."
)

JOBS: Final = ("archive", "compact", "audit", "report", "replay")
RUN_STATUSES: Final = "Exit status: 0 all jobs are done, else that of the first job that is not."
DOCTOR_STATUSES: Final = "Exit status: 0 nothing failed, though it may warn, 1 a check failed."

pipeline = Commands(
    help="The data pipeline on Apache Spark: archive messages and event log as Parquet, audit,"
    " report, replay.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)


@pipeline.command(epilog=EXIT_STATUSES)
@take.with_login
def archive(
    place: take.Place,
    url: take.Url = "amqp://localhost:5672",
    login: take.Login = take.NO_LOGIN,
    management_url: take.ManagementUrl = None,
    what: take.ArchiveWhat = take.What.BOTH,
    address: take.ArchiveAddress = None,
    subscription: take.ArchiveSubscription = None,
    mode: take.ArchiveMode = None,
    selector: take.ArchiveSelector = None,
    every: take.ArchiveEvery = None,
    form: take.ArchiveFormat = None,
    catalog: take.ArchiveCatalog = None,
    namespace: take.ArchiveNamespace = None,
    option: take.More = None,
    engine: take.EngineOption = None,
    master: take.Master = None,
    conf: take.Conf = None,
    json: take.Json = False,
) -> None:
    """Write messages and the event log as Parquet files by date and address.

    Each row is written once: a killed job continues where it stopped, and a batch that is written
    again replaces its earlier files. The column amqp keeps each message bit by bit.
    """
    from pyspark_amqp.jobs.archiving import Archiving

    begin = time.monotonic()
    settings, chosen = SparkSettings(master, pairs(conf, "--conf")), engine_of(engine)
    with told("archive", engine=chosen) as progress:
        job = Archiving.asked(
            place,
            take.broker_options(url, login, management_url, option),
            whats=what.parts(),
            address=address,
            subscription=subscription,
            selector=selector,
            mode=None if mode is None else mode.value,
            every=None if every is None else take.interval(every),
            form=None if form is None else form.value,
            catalog=catalog,
            namespace=namespace,
        )
        job.check(chosen.value)
        with engine_for(progress, "archive", chosen, settings) as started:
            job.run(started, progress.say)
        progress.clear()
    seconds = round(time.monotonic() - begin, 1)
    summed({**job.summary(), "seconds": seconds}, as_json=json, job="archive")


@pipeline.command(epilog=EXIT_STATUSES)
def compact(
    place: take.Place,
    what: take.CompactWhat = take.What.BOTH,
    target_mb: take.CompactTargetMb = 128,
    json: take.Json = False,
) -> None:
    """Merge small files of an archive. Spark is not needed; archiving may continue meanwhile.

    A reader sees all old or all new files of a folder, even after a kill.
    """
    with told("compact") as progress:
        from pyspark_amqp.jobs import compact as job
        from pyspark_amqp.jobs.layout import Archive

        archived = Archive(place)
        archived.check_is_there()
        done = job.compact(
            archived,
            what.parts(),
            target_bytes=target_mb * 1024 * 1024,
            tell=lambda folder: progress.say(str(folder.relative_to(place))),
        )
        progress.clear()
    summed({"archive": str(place), **asdict(done)}, as_json=json, job="compact")


@pipeline.command(epilog=AUDIT_STATUSES)
@take.with_login
def audit(
    place: take.OptionalPlace = None,
    url: take.OptionalUrl = None,
    login: take.Login = take.NO_LOGIN,
    management_url: take.ManagementUrl = None,
    since: take.Since = None,
    until: take.Until = None,
    address: take.AuditAddress = None,
    drained: take.AuditDrained = False,
    from_row: take.AuditFrom = 0,
    out: take.AuditOut = None,
    show: take.AuditShow = 20,
    option: take.More = None,
    engine: take.EngineOption = None,
    master: take.Master = None,
    conf: take.Conf = None,
    json: take.Json = False,
) -> None:
    """Check the event log for messages lost, accepted twice, early, out of order, or given to two;
    accepted by another consumer, without a delivery; lost on the way to their dead-letter queue;
    without rows; and for missing rows.

    A message without an end is judged for loss only with --url, which names the broker whose queues
    to look into, or with --drained. Messages older than the event log are not judged for loss.
    """
    from pyspark_amqp.jobs.auditing import Auditing, lines_of, table_of

    if place is None and url is None:
        raise typer.BadParameter("it, or --url, must be given", param_hint="ARCHIVE")
    if drained and url is not None:
        raise typer.BadParameter("with --url it is looked into the queues", param_hint="--drained")
    if out is not None and out.suffix not in {".csv", ".parquet"}:
        raise typer.BadParameter("its name ends in .csv or .parquet", param_hint="--out")
    begin, end = take.window(since, until)
    broker = None if url is None else take.broker_options(url, login, management_url, option)
    settings, chosen = SparkSettings(master, pairs(conf, "--conf")), engine_of(engine)
    with told("audit", EXIT_NOT_JUDGED, chosen) as progress:
        job = Auditing(
            *(place, broker, begin, end, tuple(address or ())), drained=drained, from_row=from_row
        )
        job.check(out)
        with engine_for(progress, "audit", chosen, settings, EXIT_NOT_JUDGED) as started:
            verdict, offending = job.run(started, progress.say)
            shown = lines_of(offending, show)
            if out is not None:
                job.write(offending, out)
        progress.clear()
    _print_verdict(verdict, shown, table_of(verdict), as_json=json)
    conclude(verdict)


def conclude(verdict: Verdict) -> None:
    """End the command with the exit status of `verdict`; return if all checks hold."""
    from pyspark_amqp.jobs.auditing import nothing_judged

    if verdict.is_of_nothing:
        fail(nothing_judged(verdict), EXIT_NOT_JUDGED)
    if not verdict.holds:
        raise typer.Exit(1)


def _print_verdict(
    verdict: Verdict,
    shown: list[dict[str, object]],
    table: list[dict[str, object]],
    *,
    as_json: bool,
) -> None:
    from broker.cli.printing import print_records
    from pyspark_amqp.jobs.auditing import COLUMNS, notes_of

    if as_json:
        sums = {
            "events": verdict.known.rows,
            "messages": verdict.messages,
            "open": verdict.open,
            "missing_rows": verdict.known.missing,
            "holds": verdict.holds and not verdict.is_of_nothing,
            "checks": table,
            "offenders": shown,
        }
        summed(sums, as_json=True, job="audit")
        return
    print_records(table, ("check", "judged", "broken", "verdict"), as_json=False)
    if shown:
        typer.echo("")
        print_records(shown, COLUMNS, as_json=False)
    typer.echo("")
    for note in notes_of(verdict):
        typer.echo(note)
    if not verdict.is_of_nothing:
        typer.echo("all checks hold" if verdict.holds else "NOT all checks hold")


@pipeline.command(epilog=EXIT_STATUSES)
@take.with_login
def report(
    place: take.OptionalPlace = None,
    out: take.ReportOut = Path("report"),
    url: take.OptionalUrl = None,
    login: take.Login = take.NO_LOGIN,
    management_url: take.ManagementUrl = None,
    since: take.Since = None,
    until: take.Until = None,
    address: take.ReportAddress = None,
    with_audit: take.ReportAudit = True,
    option: take.More = None,
    engine: take.EngineOption = None,
    master: take.Master = None,
    conf: take.Conf = None,
    json: take.Json = False,
) -> None:
    """Write throughput, latency, backlog and redeliveries by address, and the audit's verdict.

    The page needs no other file: it has charts, and the messages behind its numbers.
    """
    if (place is None) == (url is None):
        raise typer.BadParameter("either it or --url must be given", param_hint="ARCHIVE")
    begin, end = take.window(since, until)
    broker = None if url is None else take.broker_options(url, login, management_url, option)
    settings, chosen = SparkSettings(master, pairs(conf, "--conf")), engine_of(engine)
    with told("report", engine=chosen) as progress:
        from pyspark_amqp.jobs import report as job
        from pyspark_amqp.jobs.auditing import Auditing, judged_by
        from pyspark_amqp.jobs.report_page import write

        source = Auditing(place, broker, begin, end, tuple(address or ()))
        source.check()
        with engine_for(progress, "report", chosen, settings) as started:
            progress.say("reading the event log")
            found = job.gather(source.rows(started))
            judged = None
            if found is not None and with_audit:
                judged = judged_by(*source.run(started, progress.say))
        if found is None:
            progress.clear()
            fail("the event log has no row of what is asked for")
        paths = write(found, out, judged)
        progress.clear()
    verdict = {} if judged is None else {"audit": judged.text}
    summed({"report": str(paths[0]), **job.summary(found), **verdict}, as_json=json, job="report")


@pipeline.command(epilog=EXIT_STATUSES)
@take.with_login
def replay(
    place: take.Place,
    url: take.Url = "amqp://localhost:5672",
    login: take.Login = take.NO_LOGIN,
    to: take.ReplayTo = None,
    address: take.ReplayAddress = None,
    subscription: take.ReplaySubscription = None,
    since: take.Since = None,
    until: take.Until = None,
    selector: take.ReplaySelector = None,
    message_id: take.ReplayMessageId = None,
    rate: take.ReplayRate = None,
    skip: take.ReplaySkip = 0,
    dry_run: take.ReplayDryRun = False,
    delivery: take.ReplayDelivery = take.Delivery.STAGED,
    option: take.More = None,
    engine: take.EngineOption = None,
    master: take.Master = None,
    conf: take.Conf = None,
    json: take.Json = False,
) -> None:
    """Send archived messages again, bit by bit, in the order in which they were enqueued.

    Without --rate, all of them arrive at one moment, or none. Errors in the command are reported
    before any message is sent.
    """
    from pyspark_amqp.jobs.replaying import Replaying

    begin, end = take.window(since, until)
    if skip and rate is None:
        raise typer.BadParameter("it goes with --rate", param_hint="--skip")
    settings, chosen = SparkSettings(master, pairs(conf, "--conf")), engine_of(engine)
    with told("replay", engine=chosen) as progress:
        job = Replaying(
            place,
            {**take.broker_options(url, login, None, option), "delivery": delivery.value},
            to=to,
            since=begin,
            until=end,
            addresses=tuple(address or ()),
            subscription=subscription,
            selector=selector,
            ids=_ids(message_id or []),
        )
        job.check(dry_run=dry_run)
        with engine_for(progress, "replay", chosen, settings) as started:
            sums = job.run(started, progress.say, rate=rate, skip=skip, dry_run=dry_run)
        progress.clear()
    summed(sums, as_json=json, job="replay")


def _ids(given: list[str]) -> tuple[str, ...]:
    """Return the ids of all options --id; `@FILE` stands for the lines of a file."""
    found: list[str] = []
    for each in given:
        if not each.startswith("@"):
            found.append(each)
            continue
        try:
            lines = Path(each[1:]).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            fail(f"--id {each}: {error.strerror}", EXIT_USAGE)
        found += [line.strip() for line in lines if line.strip()]
    if given and not found:
        fail("--id: the file has no id in it", EXIT_USAGE)
    return tuple(found)


@pipeline.command(epilog=RUN_STATUSES)
def run(file: take.ChainFile) -> None:
    """Run the jobs of a TOML file one after another, on one engine that starts once.

    The first job whose exit status is not 0 ends the chain. The names and types of all options
    are checked before the first job begins.
    """
    from pyspark_amqp.jobs.chain_file import command_lines

    group = typer.main.get_command(pipeline)
    assert isinstance(group, TyperGroup)
    commands = {name: command for name, command in group.commands.items() if name in JOBS}
    known = {
        name: frozenset(
            word.removeprefix("--")
            for parameter in command.params
            for word in (*parameter.opts, *parameter.secondary_opts)
        )
        for name, command in commands.items()
    }
    with told("run"):
        lines = command_lines(file, known)
    for words in lines:
        commands[words[0]].make_context(words[0], words[1:])
    with chain():
        for words in lines:
            # options may have passwords
            shown = [word for word in words[:2] if not word.startswith("--")]
            typer.echo(f"--- {' '.join(shown)}", err=True)
            status = commands[words[0]].main(words[1:], prog_name=words[0], standalone_mode=False)
            if status:
                raise typer.Exit(status)


@pipeline.command(epilog=DOCTOR_STATUSES)
@take.with_login
def doctor(
    url: take.OptionalUrl = None,
    login: take.Login = take.NO_LOGIN,
    json: take.Json = False,
) -> None:
    """Look for faults of the installation: libraries, Java, the Python in which Spark looks for the
    data source, and the broker of --url.
    """
    from broker.cli.printing import print_records
    from pyspark_amqp.doctor import COLUMNS, FAILED, TO_CONNECT, broker, findings

    found = findings(os.environ)
    if url is not None and all(each.level != FAILED for each in found if each.check in TO_CONNECT):
        given = take.broker_options(url, login, None, None)
        found.append(broker(lambda: _reach(given), url))
    print_records([each.row() for each in found], COLUMNS, as_json=json)
    if any(each.level == FAILED for each in found):
        raise typer.Exit(EXIT_FAILURE)


def _reach(given: dict[str, str]) -> None:
    from pyspark_amqp.option_table import Use
    from pyspark_amqp.options import read_options
    from pyspark_amqp.wire.connection import connected

    with connected(read_options({**given, "mode": "events"}, Use.BATCH)):
        pass
