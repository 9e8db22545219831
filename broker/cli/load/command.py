"""`jms-broker load`: its options and its output."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from broker.cli.client_tls import Ca, Cert, Key, chosen_tls
from broker.cli.ending import EXIT_INTERRUPTED, EXIT_USAGE, ClientError, errors_told, fail
from broker.cli.load.plan import RUN_ID_BYTES, SIZE_MIN, LoadPattern, LoadPlan
from broker.cli.managing import taking
from broker.cli.messages import ANSWER_TIMEOUT_S, LOCAL, Url
from broker.cli.printing import json_of

if TYPE_CHECKING:
    from broker.cli.load.report import LoadReport, LoadTimeline

CLIENTS_MAX: Final = 400
"""Maximum senders, and receivers: a process waits for its sockets by select, which takes 1024."""

IN_FLIGHT: Final = 1000


@dataclass(frozen=True)
class LoadOptions:
    """The options of `jms-broker load`."""

    address: Annotated[
        str,
        typer.Argument(help="The queue or topic."),
    ] = "jms-broker-load"
    url: Url = LOCAL
    pattern: Annotated[
        LoadPattern,
        typer.Option(
            help="A queue shared by all receivers, a topic that each receives all messages of,"
            " or requests and replies."
        ),
    ] = LoadPattern.QUEUE
    senders: Annotated[
        int, typer.Option(min=1, max=CLIENTS_MAX, help="Senders, or requesters.")
    ] = 1
    receivers: Annotated[
        int, typer.Option(min=1, max=CLIENTS_MAX, help="Receivers, or responders.")
    ] = 1
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Messages per second of all senders together, at fixed times that do not depend"
            " on the broker. Without it: as many as the broker takes.",
            show_default=False,
        ),
    ] = None
    size: Annotated[
        int, typer.Option(min=SIZE_MIN, max=100_000_000, help="Bytes of the body of a message.")
    ] = 100
    durable: Annotated[bool, typer.Option("--durable", help="Send durable messages.")] = False
    tx: Annotated[
        int, typer.Option(min=0, help="Send in transactions of so many messages; 0: in none.")
    ] = 0
    in_flight: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum messages of a sender that are not confirmed, or requests that are not"
            f" answered. Without it: {IN_FLIGHT}, and 1 request.",
            show_default=False,
        ),
    ] = None
    credit: Annotated[
        int, typer.Option(min=1, help="Messages that a receiver lets the broker send ahead.")
    ] = 1000
    duration: Annotated[float, typer.Option(min=0.1, help="Seconds to measure.")] = 10.0
    warm_up: Annotated[
        float, typer.Option(min=0, help="Seconds of load before, which are not measured.")
    ] = 2.0
    processes: Annotated[
        int,
        typer.Option(min=1, max=64, help="Processes for the senders, and as many for receivers."),
    ] = 1
    csv_file: Annotated[
        Path | None,
        typer.Option(
            "--csv", help="Write the figures of each second to a file.", show_default=False
        ),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(min=0.001, help="Give up when the broker does nothing for so many seconds."),
    ] = ANSWER_TIMEOUT_S
    ca: Ca = None
    cert: Cert = None
    key: Key = None
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False

    def plan(self) -> LoadPlan:
        """Return the plan of the load. Raise ClientTlsError for a file that cannot be used."""
        is_rpc = self.pattern is LoadPattern.REQUEST_REPLY
        return LoadPlan(
            url=self.url,
            tls=chosen_tls(self.url, ca=self.ca, cert=self.cert, key=self.key),
            address=self.address,
            pattern=self.pattern,
            senders=self.senders,
            receivers=self.receivers,
            processes=self.processes,
            rate=self.rate,
            size=self.size,
            durable=self.durable,
            tx=self.tx,
            in_flight=self.in_flight or (1 if is_rpc else IN_FLIGHT),
            credit=self.credit,
            warm_up_s=self.warm_up,
            duration_s=self.duration,
            timeout_s=self.timeout,
            run_id=os.urandom(RUN_ID_BYTES),
        )


@taking(LoadOptions)
def load(options: LoadOptions) -> None:
    """Send and receive messages, and print the rates and the latencies.

    Nothing else may use ADDRESS: the load ends at a message that it has not sent.
    """
    if options.tx and options.pattern is LoadPattern.REQUEST_REPLY:
        fail("--tx is for the patterns queue and topic: requests are not transacted", EXIT_USAGE)
    with errors_told():
        _run(options.plan(), options.csv_file, as_json=options.json)


def _run(plan: LoadPlan, csv_file: Path | None, *, as_json: bool) -> None:
    """Run the load and print its result. Raise ClientError if a message was refused or lost."""
    from broker.cli.load.run import LoadRun

    with _table_of_seconds(csv_file) as write_seconds:
        with _progress(plan.warm_up_s + plan.duration_s) as on_step:
            run = LoadRun(plan, on_step)
            timeline = run.run()
        write_seconds(timeline)
    report = timeline.report()
    if as_json:
        print(json_of({**asdict(report), "limits": report.limits}))
    else:
        print("\n".join(_lines(report)))
    if report.refused or report.lost:
        raise ClientError(f"{report.refused} messages were refused, {report.lost} were lost")
    if run.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


@contextmanager
def _table_of_seconds(path: Path | None) -> Iterator[Callable[[LoadTimeline], None]]:
    """Yield a function that writes the figures of each second to `path`; None writes nothing.

    The file is opened before the load, so that a wrong path costs no time.
    """
    if path is None:
        yield lambda _timeline: None
        return
    try:
        file = path.open("w", newline="")
    except OSError as error:
        raise ClientError(f"--csv {path}: {error.strerror}") from None
    with file:
        yield lambda timeline: _write_seconds(timeline, file)


def _write_seconds(timeline: LoadTimeline, file: TextIO) -> None:
    from broker.cli.load.report import Second

    rows = csv.DictWriter(file, [each.name for each in fields(Second)])
    rows.writeheader()
    rows.writerows(map(asdict, timeline.seconds()))


@contextmanager
def _progress(total_s: float) -> Iterator[Callable[[LoadTimeline, float], None]]:
    """Yield a function that shows how far the load is; without a terminal it shows nothing."""
    if not sys.stderr.isatty():
        yield lambda _timeline, _elapsed_s: None
        return
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()),
        TextColumn("{task.fields[rate]:,.0f} messages/s"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("load", total=total_s, rate=0)

        def show(timeline: LoadTimeline, elapsed_s: float) -> None:
            rate = timeline.received_in_second(elapsed_s)
            progress.update(task, completed=elapsed_s, rate=rate)

        yield show


def _lines(report: LoadReport) -> Iterator[str]:
    """Yield the result as text for people."""
    clients = f"{report.senders} to {report.receivers} clients, {report.size} bytes a message"
    due = "as many as the broker takes" if report.rate is None else f"{report.rate:g} due a second"
    yield f"load      {report.pattern} {report.address}: {clients}, {due}"
    yield (
        f"sent      {report.sent_rate:,.1f}/s over {report.measured_s:g} s; in all {report.sent:,},"
        f" of which {report.accepted:,} were accepted and {report.refused:,} refused"
    )
    if report.unsent:
        yield f"          {report.unsent:,} were due and not yet sent at the end"
    yield (
        f"received  {report.received_rate:,.1f}/s; in all {report.received:,}, lost {report.lost:,}"
    )
    yield f"latency   {_shown(report.latency_ms) or 'no message was received'}"
    if delays := _shown(report.delay_ms):
        yield f"own delay {delays}"
    busy = ", ".join(f"{role} {share:.0%}" for role, share in report.busy.items())
    yield f"busy      {busy} of a processor"
    if report.limits:
        yield (
            f"The load itself was the limit: a process of each {' and '.join(report.limits)} was"
            " busy all the time. The broker may do more: try --processes, or another machine."
        )


def _shown(percentiles_ms: Mapping[str, float | None]) -> str:
    return ", ".join(
        f"{name.replace('_', '.')} {ms:,.3f} ms"
        for name, ms in percentiles_ms.items()
        if ms is not None
    )
