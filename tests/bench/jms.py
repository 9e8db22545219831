"""Rows of Qpid JMS: producers alone, whose every send or commit waits for the broker's disk."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench.effort import Meter
from tests.bench.flow import PER_COMMIT
from tests.bench.places import ROOT, SOURCES, BenchError, cache_folder
from tests.bench.work import Run, Site

PROJECT: Final = ROOT / "tests" / "interop" / "qpid_jms"
"""The project whose dependencies the program here uses."""

SOURCE: Final = SOURCES / "JmsLoad.java"
PREPARE_SECONDS: Final = 300
REQUEST_MS: Final = 60_000
SIZE: Final = 1024
PRODUCERS: Final = 8


def run_tool(command: list[str], folder: Path) -> None:
    """Run a Java tool to its end; raise BenchError with its output if it fails."""
    try:
        ran = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=PREPARE_SECONDS
        )
    except FileNotFoundError:
        raise BenchError(f"{command[0]} is missing: apt-get install maven openjdk-17-jdk") from None
    if ran.returncode != 0:
        raise BenchError(f"{command[0]} failed:\n{(ran.stdout + ran.stderr)[-2000:]}")


def class_path() -> str:
    """Return the class path of the program and of the Qpid JMS that the interop tests use.

    The program is compiled if it has changed.
    """
    folder = cache_folder("bench") / "jms"
    folder.mkdir(exist_ok=True)
    listed, compiled = folder / "dependencies", folder / f"{SOURCE.stem}.class"
    project = PROJECT / "pom.xml"
    if not listed.exists() or listed.stat().st_mtime < project.stat().st_mtime:
        listing = ["mvn", "-q", "-B", "dependency:build-classpath", f"-Dmdep.outputFile={listed}"]
        run_tool([*listing, "-DincludeScope=test"], PROJECT)
    path = os.pathsep.join([str(folder), listed.read_text().strip()])
    if not compiled.exists() or compiled.stat().st_mtime < SOURCE.stat().st_mtime:
        run_tool(["javac", "-cp", path, "-d", str(folder), str(SOURCE)], SOURCES)
    return path


@contextmanager
def started(arguments: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """Yield the program, running; it has ended when the block is left."""
    command = ["java", "-Xmx512m", "-cp", class_path(), SOURCE.stem, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def told(process: "subprocess.Popen[str]") -> str:
    """Return the next line that the program prints; raise BenchError if it has ended."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        process.kill()
        _, complaint = process.communicate()
        raise BenchError(f"the JMS client ended without a report:\n{complaint[-2000:]}")
    return line


def sending(site: Site, *, producers: int, per_commit: int = 0) -> Run:
    """Send persistent messages to a queue without consumers for some time; then empty the queue."""
    url = f"amqp://{site.server.peer}?jms.requestTimeout={REQUEST_MS}"
    address, scale = site.new_address("queue"), site.scale
    arguments = [url, address, str(producers), str(per_commit), str(SIZE)]
    with started([*arguments, str(scale.jms_warm_seconds), str(scale.jms_seconds)]) as client:
        told(client)
        meter = Meter(site.server)
        report = json.loads(told(client))
        effort = meter.effort()
        drained = int(told(client).removeprefix("drained "))
    count, seconds = int(report["count"]), float(report["seconds"])
    cpu_seconds = float(report["cpu_seconds"])
    figures = {
        "per_second": count / seconds,
        "p50_us": float(report["p50_us"]),
        "p99_us": float(report["p99_us"]),
        "cpu_us": effort.cpu_seconds * 1e6 / count,
        "client_cpu_us": cpu_seconds * 1e6 / count,
        "rss_mib": site.server.rss_mib(),
        "others_percent": effort.others_percent(seconds, cpu_seconds),
        **effort.on_disk(count),
    }
    sent = count + int(report["warm_count"])
    return Run(figures, [f"{drained} of {sent} received"] if drained != sent else [])


def jms_sync(site: Site) -> Run:
    return sending(site, producers=1)


def jms_many(site: Site) -> Run:
    return sending(site, producers=PRODUCERS)


def jms_transacted(site: Site) -> Run:
    return sending(site, producers=1, per_commit=PER_COMMIT)
