"""`jms-broker pipeline doctor`: faults of the installation that Spark reports in other words."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final

JAVA_MIN: Final = 17
SPARK_VERSIONS: Final = ("4.2", "4.3")

TRIED_S: Final = 60.0
"""Seconds for which another Python is waited for."""

OK: Final = "ok"
WARNING: Final = "warning"
FAILED: Final = "failed"

COLUMNS: Final = ("check", "level", "finding", "remedy")

TO_CONNECT: Final = ("arrow", "client")
"""The checks that must not fail if the broker is to be reached."""

LOADED: Final = "import pyarrow, proton, pyspark_amqp, pyspark_amqp.default_source"
"""The program with which a Python proves that Spark finds the data source in it."""


@dataclass(frozen=True)
class Finding:
    """The result of one check: what was found, and what to do about it."""

    check: str
    level: str
    finding: str
    remedy: str = ""

    def row(self) -> dict[str, object]:
        """Return the finding as a row of the printed table."""
        return asdict(self)


def library(check: str, package: str, extra: str) -> Finding:
    """Return whether a library that the jobs need is installed."""
    try:
        return Finding(check, OK, f"{package} {version(package)}")
    except PackageNotFoundError:
        return Finding(check, FAILED, f"{package} is missing", f"pip install 'jms-broker[{extra}]'")


def engines() -> Finding:
    """Return which engines of the jobs are installed; one is enough."""
    found = []
    for package in ("pyspark", "duckdb"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    if found:
        return Finding("engines", OK, ", ".join(found))
    remedy = "pip install 'jms-broker[pipeline]' for DuckDB, 'jms-broker[spark]' for Spark"
    return Finding("engines", FAILED, "neither pyspark nor duckdb is installed", remedy)


def spark_version() -> Finding:
    """Return whether the version of PySpark is one that is tested."""
    found = version("pyspark")
    if found.rpartition(".")[0] in SPARK_VERSIONS:
        return Finding("spark", OK, f"pyspark {found}")
    remedy = f"install {' or '.join(SPARK_VERSIONS)}: others are not tested"
    return Finding("spark", WARNING, f"pyspark {found}", remedy)


def java(environment: Mapping[str, str]) -> Finding:
    """Return whether Spark finds a Java that is new enough."""
    home = environment.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH"))
    remedy = f"install Java {JAVA_MIN} or newer, in the PATH or in JAVA_HOME"
    if program is None:
        return Finding("java", FAILED, "there is no java in the PATH, and no JAVA_HOME", remedy)
    try:
        told = subprocess.run(  # noqa: S603 - Java, as Spark starts it
            [program, "-version"], capture_output=True, text=True, timeout=TRIED_S, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("java", FAILED, f"{program} does not start: {error}", remedy)
    found = re.search(r'version "(\d+)', told)
    if found is None or int(found[1]) < JAVA_MIN:
        return Finding("java", FAILED, f"{program} is {told.partition(chr(10))[0]}", remedy)
    return Finding("java", OK, f"{program} is version {found[1]}")


def planner(environment: Mapping[str, str]) -> Finding:
    """Return whether the Python in which Spark looks for data sources has this package.

    Spark starts that of PYSPARK_PYTHON, or `python3` of the PATH, in which it lists the modules
    that begin with `pyspark_`. Without this one, a query ends with DATA_SOURCE_NOT_FOUND.
    """
    named = environment.get("PYSPARK_PYTHON")
    program = shutil.which(named or "python3", path=environment.get("PATH"))
    remedy = (
        f"set PYSPARK_PYTHON={sys.executable} for programs that start Spark, or install the"
        " package there; on a cluster, on each worker"
    )
    if program is None:
        return Finding("python of spark", FAILED, f"there is no {named or 'python3'}", remedy)
    try:
        done = subprocess.run(  # noqa: S603 - Python, as Spark starts it
            [program, "-c", LOADED],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TRIED_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("python of spark", FAILED, f"{program} does not start: {error}", remedy)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        told = f"{program} does not find the data source ({last}): DATA_SOURCE_NOT_FOUND"
        return Finding("python of spark", FAILED, told, remedy)
    return Finding("python of spark", OK, f"{program} finds the data source")


def findings(environment: Mapping[str, str]) -> list[Finding]:
    """Return the results of all checks; those of Spark only if PySpark is installed."""
    found = [
        library("arrow", "pyarrow", "pipeline"),
        library("client", "python-qpid-proton", "pipeline"),
        engines(),
    ]
    if "pyspark" in found[-1].finding and found[-1].level == OK:
        found += [spark_version(), java(environment), planner(environment)]
    return found


def broker(reach: Callable[[], object], url: str) -> Finding:
    """Return whether `reach` reaches the broker, as a job does before it begins."""
    from pyspark_amqp.one_line import UserError

    try:
        reach()
    except UserError as error:
        remedy = "see --url, and the login: `jms-broker doctor --url` looks at the broker itself"
        return Finding("broker", FAILED, str(error), remedy)
    return Finding("broker", OK, f"{url} lets this login in")
