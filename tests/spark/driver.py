"""A Spark driver in a process of its own, which may be killed: `python -m tests.spark.driver PLAN`.

The plan is a JSON file (class Plan). Events are printed as lines of JSON: `started` with the
processes' ids, then `ended` with the error, or null.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from tests.spark import session
from tests.support.caches import alone

ENDS_SECONDS: Final = 300
STARTS_SECONDS: Final = 120
NOTHING_TOLD: Final[dict[str, Any]] = {"event": "nothing"}


@dataclass(frozen=True)
class Plan:
    """One streaming query from the source into the sink, and its fault.

    `provider` is module:class of the data source that serves as both; it is registered here.
    """

    provider: str
    folder: str
    checkpoint: str
    source: dict[str, str]
    sink: dict[str, str]
    master: str = session.MASTER
    available_now: bool = True
    """Whether the query ends when it has processed what is there; else it goes on for ever."""
    settings: dict[str, str] = field(default_factory=dict)
    fault: dict[str, str] = field(default_factory=dict)


def run(plan: Plan) -> str | None:
    """Run the query in a session of its own; return the error that ended it, or None."""
    folder = Path(plan.folder)
    spark = session.start(folder, master=plan.master, settings=plan.settings)
    pids = [os.getpid(), jvm_of(spark)]
    tell("started", pids=pids)
    try:
        return stream(spark, plan, pids)
    finally:
        spark.stop()


def stream(spark: SparkSession, plan: Plan, pids: Sequence[int] = ()) -> str | None:
    """Run the query in this session to its end; return the error that ended it, or None.

    Do not use the plan's folder, master and settings: they are for a driver of its own, whose
    processes `pids` a fault may kill.
    """
    module, _, name = plan.provider.partition(":")
    source: type[DataSource] = vars(importlib.import_module(module))[name]
    spark.dataSource.register(source)
    fault = {f"fault.{name}": value for name, value in plan.fault.items()}
    if fault:
        fault["fault.pids"] = json.dumps(pids)
    rows = spark.readStream.format(source.name()).options(**plan.source, **fault).load()
    writer = (
        rows.writeStream.format(source.name())
        .options(**plan.sink, **fault)
        .option("checkpointLocation", plan.checkpoint)
    )
    query = (writer.trigger(availableNow=True) if plan.available_now else writer).start()
    try:
        query.awaitTermination()
    except PySparkException as error:
        return str(error)
    return None


def jvm_of(spark: SparkSession) -> int:
    """Return the id of the process that runs Spark's Java side."""
    gateway: Any = spark.sparkContext._gateway
    return int(gateway.proc.pid)


def tell(event: str, **facts: object) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


class Driver:
    """A running driver, seen from the test."""

    def __init__(self, plan: Plan) -> None:
        folder = Path(plan.folder)
        folder.mkdir(parents=True, exist_ok=True)
        written = folder / "plan.json"
        written.write_text(json.dumps(asdict(plan)))
        self.log: Final = folder / "driver.log"
        with self.log.open("a") as log:
            self._process: Final = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.driver", str(written)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=folder,
                env={**os.environ, **session.variables(folder)},
            )
        self.pids: list[int] = []
        self.error: str | None = "it was killed"
        self._reader: Final = threading.Thread(target=self._read, daemon=True)
        self._started: Final = threading.Event()
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                # other lines are Java's own output
                told: dict[str, Any] = json.loads(line) if line.startswith("{") else NOTHING_TOLD
                if told["event"] == "started":
                    self.pids = told["pids"]
                    self._started.set()
                elif told["event"] == "ended":
                    self.error = told["error"]

    def wait(self) -> str | None:
        """Wait for the driver's end; return the error that it reported, None if all was done."""
        self._process.wait(timeout=ENDS_SECONDS)
        self._reader.join(timeout=ENDS_SECONDS)
        return self.error

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def started(self) -> list[int]:
        """Return the ids of its two processes, once they are known."""
        assert self._started.wait(STARTS_SECONDS), f"no Spark, see {self.log}"
        return self.pids

    def kill(self) -> None:
        """End both processes without a warning."""
        kill_all([self._process.pid, *self.pids])
        self._process.wait(timeout=ENDS_SECONDS)


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def running(plan: Plan) -> Iterator[Driver]:
    """Yield a driver, and kill it at the end."""
    driver = Driver(plan)
    try:
        yield driver
    finally:
        driver.kill()


def archive_classes(folder: Path) -> None:
    """Make the archive with which drivers start in half the time, unless it exists."""
    archive = session.class_archive()
    # making it takes half a minute of both cores: one process of pytest does, the others wait
    with alone(archive.parent):
        if not archive.exists():
            _archive_classes(archive, folder)


def _archive_classes(archive: Path, folder: Path) -> None:
    being_made = archive.with_suffix(f".{os.getpid()}")
    options = f"{session.JVM} -Xlog:disable -XX:ArchiveClassesAtExit={being_made}"
    toy = {"calls": str(folder / "calls"), "checkpoint": str(folder / "checkpoint")}
    plan = Plan(
        provider="tests.spark.toy:ToySource",
        folder=str(folder),
        checkpoint=str(folder / "checkpoint"),
        source={**toy, "total": "20"},
        sink=toy,
        settings={"spark.driver.extraJavaOptions": options},
    )
    with running(plan) as driver:
        # the driver's output ends with its last process: Java, once the archive is written
        assert driver.wait() is None, driver.log
    being_made.replace(archive)


if __name__ == "__main__":
    tell("ended", error=run(Plan(**json.loads(Path(sys.argv[1]).read_text()))))
