"""The Spark session of the jobs: quiet, in UTC, and with workers that find this package."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
"""All cores of this machine, without a cluster."""

CONFIGURATION: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # a folder `address=007` is of the address 007, not 7
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # times as DuckDB and Iceberg write them; Spark's own type, INT96, is deprecated in Parquet
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}

ALONE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # one task for each core, since only this machine runs tasks; a plan made anew at each shuffle
    # takes longer
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.sql.adaptive.enabled": "false",
}
"""Further settings without a cluster: no other machine has to reach this process, and data are not
that large."""


class NoSpark(Exception):  # noqa: N818 - it is not there
    """An error because Spark cannot be started here; the text says what to do."""


def missing() -> str | None:
    """Return what has to be installed before Spark can start, None if nothing is missing."""
    for module in ("pyspark", "pyarrow"):
        if find_spec(module) is None:
            return f"{module} is missing: pip install 'jms-broker[spark]'"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "java is missing: Spark needs Java 17 or newer, in the PATH or in JAVA_HOME"
    return None


def session(
    name: str,
    *,
    master: str | None = None,
    configuration: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> SparkSession:
    """Return the existing session, or a new one, with these settings.

    Java and Spark's workers write their standard error to the file `log`, if it is given. Raise
    NoSpark if Spark cannot be started here.
    """
    lack = missing()
    if lack is not None:
        raise NoSpark(lack)
    from pyspark.sql import SparkSession

    # Otherwise workers would use the first python3 of the PATH, and would not find a checkout.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(search_path(os.environ.get("PYTHONPATH", "")))
    builder = SparkSession.builder.appName(name)
    given = dict(configuration or {})
    place = master or given.get("spark.master") or os.environ.get("MASTER") or LOCAL
    here = ALONE if place.startswith("local") else {}
    settings = {**CONFIGURATION, **here, **given, "spark.master": place}
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _errors_to(log):
        return builder.getOrCreate()


@contextmanager
def _errors_to(log: Path | None) -> Iterator[None]:
    """Let processes that start in the block write their standard error to the file `log`."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    own = os.dup(2)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(handle, 2)
    os.close(handle)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(own, 2)
        os.close(own)


def search_path(before: str) -> list[str]:
    """Return the folder with this package, followed by the folders of the search path `before`."""
    root = str(Path(__file__).resolve().parents[1])
    return [root, *(each for each in before.split(os.pathsep) if each and each != root)]


def utc(moment: datetime) -> datetime:
    """Return `moment` in UTC. Spark returns times in this machine's zone, without naming a zone."""
    return moment.astimezone(UTC)
