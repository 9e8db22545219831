"""The Spark session of the jobs: quiet, in UTC, and with workers that find this package."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
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
    "spark.log.level": "ERROR",
    # a folder `address=007` is of the address 007, not of 7
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


class NoSpark(Exception):  # noqa: N818 - it is not there
    """Spark cannot be started here, and what to do."""


def missing() -> str | None:
    """What has to be installed before Spark can start; None where all is there."""
    for module in ("pyspark", "pyarrow"):
        if find_spec(module) is None:
            return f"{module} is missing: pip install 'jms-broker[spark]'"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "java is missing: Spark needs Java 17 or newer, in the PATH or in JAVA_HOME"
    return None


def session(
    name: str, *, master: str | None = None, configuration: Mapping[str, str] | None = None
) -> SparkSession:
    """The session that there is, or a new one, with those settings."""
    lack = missing()
    if lack is not None:
        raise NoSpark(lack)
    from pyspark.sql import SparkSession

    # Workers would take the first python3 of the PATH, and know nothing of a checkout.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(search_path(os.environ.get("PYTHONPATH", "")))
    builder = SparkSession.builder.appName(name)
    settings = {**CONFIGURATION, **(configuration or {})}
    if master is not None:
        builder = builder.master(master)
    elif "spark.master" not in settings and "MASTER" not in os.environ:
        builder = builder.master(LOCAL)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def search_path(before: str) -> list[str]:
    """Where Python finds this package and the shim of the data source, and what it had before."""
    root = Path(__file__).resolve().parents[1]
    shim = root / "pipeline" / "src"
    # in a wheel the shim lies beside the package
    ours = [str(root), *([str(shim)] if shim.is_dir() else [])]
    return [*ours, *(each for each in before.split(os.pathsep) if each and each not in ours)]
