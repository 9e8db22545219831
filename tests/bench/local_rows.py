"""Rows of jobs on DuckDB: commands of their own, from start to end, with their processor time."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from tests.bench.spark_table import Measured
from tests.interop.broker_process import BrokerProcess

if TYPE_CHECKING:
    from tests.bench.spark_rows import Run
    from tests.bench.spark_site import Site

FEW: Final = 3
"""Rows of an archive whose audit takes only the time that a command needs to start."""

EVENTS_OF_A_MESSAGE: Final = 3


def _children_cpu_seconds() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _command(
    run: "Run", words: Sequence[str], statuses: frozenset[int] = frozenset({0})
) -> tuple[dict[str, Any], float, float]:
    """Run a job of `jms-broker pipeline` on DuckDB; return its summary, seconds, CPU seconds.

    Raise RuntimeError with the last line of its standard error for an exit status not in
    `statuses`.
    """
    used, begun = _children_cpu_seconds(), perf_counter()
    ended = subprocess.run(
        [sys.executable, "-m", "jms_broker", "pipeline", *words, "--engine", "duckdb", "--json"],
        capture_output=True,
        text=True,
        timeout=run.limit_s,
    )
    seconds, cpu_seconds = perf_counter() - begun, _children_cpu_seconds() - used
    if ended.returncode not in statuses:
        raise RuntimeError(ended.stderr.strip().splitlines()[-1])
    return json.loads(ended.stdout), seconds, cpu_seconds


def _place(site: "Site", count: int) -> Path:
    return site.folder / f"local-archive-{count}"


def _archive_of(run: "Run", count: int) -> Path:
    """Return the archive of an event log with `count` rows, which is made now if it is missing."""
    place = _place(run.site, count)
    if not place.exists():
        run.say("archiving the event log, which does not count")
        with run.site.broker(run.site.events(count)) as broker:
            _archive(run, broker, place)
    return place


def _archive(run: "Run", broker: BrokerProcess, place: Path) -> Measured:
    words = [str(place), "--what", "events", "--url", broker.url]
    told, seconds, cpu_seconds = _command(
        run, ["archive", *words, "--management-url", broker.http_url]
    )
    return Measured(told["events"], seconds, cpu_seconds=cpu_seconds)


def archive_events(run: "Run") -> Measured:
    """Archive the event log by HTTP."""
    with run.site.broker(run.site.events()) as broker:
        return _archive(run, broker, _place(run.site, run.site.rows))


def audit(run: "Run") -> Measured:
    """Judge the archive of the event log."""
    return _audit(run, run.site.rows)


def audit_few(run: "Run") -> Measured:
    """Judge an archive of three rows."""
    return _audit(run, FEW)


def _audit(run: "Run", count: int) -> Measured:
    words = ["audit", str(_archive_of(run, count)), "--drained"]
    told, seconds, cpu_seconds = _command(run, words, frozenset({0, 1}))
    unfinished = count % EVENTS_OF_A_MESSAGE != 0  # the last message of the event log has no end
    if told["holds"] is unfinished:
        raise RuntimeError(f"the verdict is wrong: {told['checks']}")
    return Measured(told["events"], seconds, cpu_seconds=cpu_seconds)


def report(run: "Run") -> Measured:
    """Write the report of that archive, with the verdict of the audit."""
    count = run.site.rows
    place, out = _archive_of(run, count), run.site.folder / "local-report"
    told, seconds, cpu_seconds = _command(run, ["report", str(place), "--out", str(out)])
    messages = -(-count // EVENTS_OF_A_MESSAGE)
    if told["enqueued"] != messages:
        raise RuntimeError(f"it has {told['enqueued']:,} of {messages:,} messages")
    return Measured(count, seconds, cpu_seconds=cpu_seconds)
