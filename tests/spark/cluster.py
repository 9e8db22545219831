"""A Spark cluster on this machine: a master and workers, as processes of Spark's own classes."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

import pyspark

from tests.spark import session

SPARK_HOME: Final = Path(pyspark.__file__).parent
DEPLOY: Final = "org.apache.spark.deploy"
READY_SECONDS: Final = 90
STOP_SECONDS: Final = 30
MASTER_READY: Final = re.compile(r"Starting Spark master at (spark://\S+)")
WORKER_READY: Final = re.compile(r"Successfully registered with master (\S+)")
TASK: Final = " Executor: Running task "


class Daemon:
    """One process of the cluster. `found` is the part of its log that showed that it was ready."""

    def __init__(self, folder: Path, name: str, words: list[str], ready: re.Pattern[str]) -> None:
        self.log: Final = folder / f"{name}.log"
        self._lines: Final[SimpleQueue[str]] = SimpleQueue()
        self._process: Final = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={
                **os.environ,
                **session.variables(folder),
                "SPARK_HOME": str(SPARK_HOME),
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_DAEMON_JAVA_OPTS": session.flags(),
            },
        )
        self._reader: Final = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.found: Final = self._wait_for(ready)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self.log.open("w") as log, self._process.stdout as output:
            for line in output:
                log.write(line)
                log.flush()
                self._lines.put(line)
        self._lines.put("")

    def _wait_for(self, ready: re.Pattern[str]) -> str:
        try:
            while line := self._lines.get(timeout=READY_SECONDS):
                if match := ready.search(line):
                    return match[1]
        except Empty:
            pass
        self.stop()
        raise RuntimeError(f"it did not get ready, see {self.log}:\n{self.log.read_text()}")

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout=STOP_SECONDS)


@dataclass(frozen=True)
class Cluster:
    """A master, and the folders in which its workers keep their executors' output."""

    master: str
    workers: list[Path]

    def applications(self) -> list[str]:
        """Return the names of all applications, in order of starts."""
        return sorted({each.name for worker in self.workers for each in worker.glob("app-*")})

    def tasks(self, *, but: list[str]) -> list[list[int]]:
        """Return the tasks that each worker has begun, by application in order of starts.

        Leave the applications `but` out.
        """
        names = [name for name in self.applications() if name not in but]
        return [[_tasks_in(worker / name) for worker in self.workers] for name in names]

    def check_both_worked(self, *, but: list[str]) -> None:
        """Check that one application has run since those of `but`, and on both workers."""
        tasks = self.tasks(but=but)
        assert len(tasks) == 1, "the driver of this test"
        assert min(tasks[0]) > 0, tasks


def _tasks_in(application: Path) -> int:
    return sum(log.read_text().count(TASK) for log in application.glob("*/stderr"))


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Yield a master with two workers of one core each; make `folder` for their files."""
    folder.mkdir()
    daemons: list[Daemon] = []
    workers = [folder / f"worker-{number}" for number in range(2)]
    ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    try:
        master = Daemon(folder, "master", [f"{DEPLOY}.master.Master", *ports], MASTER_READY)
        daemons.append(master)
        for own in workers:
            words = [f"{DEPLOY}.worker.Worker", *ports, "--cores", "1", "--memory", "1g"]
            words += ["--work-dir", str(own), master.found]
            daemons.append(Daemon(folder, own.name, words, WORKER_READY))
        yield Cluster(master.found, workers)
    finally:
        for daemon in reversed(daemons):
            daemon.stop()
