"""Spark as the tests run it: small, on this machine, with workers that find the tested code."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from tests.interop.broker_process import ROOT, from_checkout
from tests.interop.preloaded import preloaded_python

CACHE: Final = ROOT / ".cache" / "spark"
NO_CONFIGURATION: Final = CACHE / "conf"
"""An empty folder. The archive of classes fits one class path only, and this is its first part."""

MASTER: Final = "local[2,3]"
"""Two tasks at once; a task that fails is tried three times in all, as on a cluster."""

JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC"
"""Java starts sooner and takes less memory; a test is too short for the better compiler to pay."""

INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""To generate and compile code for a dozen rows takes a fifth of the time."""

SMALL: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "768m",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # off in the commands, too: to plan again after each shuffle of a dozen rows takes time
    "spark.sql.adaptive.enabled": "false",
    **INTERPRETED,
    "spark.sql.streaming.stopTimeout": "30s",
}

INHERITED_PYTHON: Final = "PYTHON_OF_SPARK_TESTS"
"""The variable by which pytest names its `preloaded_python` to the drivers that it starts."""

NOTHING: Final[Mapping[str, str]] = {}


def python_path(folder: Path) -> list[str]:
    """Return where Spark's Python processes find the code under test, and the tests' own.

    Under `--compiled` the checkout would hide the installed wheel: there they get a folder, made in
    `folder`, that has nothing but the tests.
    """
    if from_checkout():
        return [str(ROOT)]
    only_tests = folder / "only-tests"
    only_tests.mkdir(exist_ok=True)
    if not (only_tests / "tests").exists():
        (only_tests / "tests").symlink_to(ROOT / "tests")
    return [str(only_tests)]


def variables(folder: Path) -> dict[str, str]:
    """Return the environment variables of a process that starts Spark."""
    python = _python()
    return {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        INHERITED_PYTHON: python,
        "PYTHONPATH": os.pathsep.join(python_path(folder)),
        # settings of the machine's owner for another Spark do not apply to this one
        "SPARK_HOME": "",
        "SPARK_CONF_DIR": str(NO_CONFIGURATION),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # for every program that starts a driver: a test, its driver, a command, a README's program
        "SPARK_SUBMIT_OPTS": " ".join(
            [flags(), *(f"-D{name}={value}" for name, value in INTERPRETED.items())]
        ),
    }


def _python() -> str:
    """Return the program with which Spark starts its Python processes.

    A driver in a process of its own has that of pytest, which is the one that forks.
    """
    return os.environ.get(INHERITED_PYTHON) or str(preloaded_python())


def given(folder: Path) -> dict[str, str]:
    """Return `variables` without the empty ones, for a process that has none of them set."""
    return {name: value for name, value in variables(folder).items() if value}


@cache
def class_archive() -> Path:
    """Return the path of the archive of Spark's classes as Java has them in memory.

    With it, a driver starts in half the time. `tests.spark.driver.archive_classes` makes it;
    without it, everything starts the slow way.
    """
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    digest = sha256(f"{pyspark.__file__} {pyspark.__version__} {told}".encode()).hexdigest()
    return CACHE / f"classes-{digest[:12]}.jsa"


def flags() -> str:
    """Return the options of Java."""
    archive = class_archive()
    return f"{JVM} -XX:SharedArchiveFile={archive}" if archive.exists() else JVM


@contextmanager
def changed_environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Apply `changes` to the environment within the block; an empty value removes a variable."""
    before = {name: os.environ.get(name) for name in changes}
    for name, value in changes.items():
        _set(name, value or None)
    try:
        yield
    finally:
        for name, old in before.items():
            _set(name, old)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def start(
    folder: Path, *, master: str = MASTER, settings: Mapping[str, str] = NOTHING
) -> SparkSession:
    """Start a session whose files are in `folder`."""
    NO_CONFIGURATION.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.master(master).appName(folder.name)
    chosen = {
        **SMALL,
        "spark.local.dir": str(folder / "scratch"),
        # for executors of a cluster; local workers have it from the environment
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(python_path(folder)),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **settings,
    }
    for name, value in chosen.items():
        builder = builder.config(name, value)
    with changed_environment(variables(folder)):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
