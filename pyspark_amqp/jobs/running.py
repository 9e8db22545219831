"""How a job of the command line runs: with Spark or without, telling how far it is, ending in one
line where something is wrong."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from broker.cli.ending import EXIT_FAILURE, EXIT_INTERRUPTED, fail

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXIT_USAGE: Final = 2
EXIT_NOT_JUDGED: Final = 3

CAUSE: Final = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): (?P<text>.+)$", re.MULTILINE)
OURS: Final = re.compile(
    r"(?:(?:Option|Row|DataLoss|LeaseLost|Broker|Unreachable|Gone|Fenced)Error): (?P<text>.+)"
)


class Progress:
    """One line on standard error that says what is being done: on a terminal always the same."""

    def __init__(self, job: str) -> None:
        self._job: Final = job
        self._rewrites: Final = sys.stderr.isatty()

    def say(self, text: str) -> None:
        """What is being done now."""
        line = f"{self._job}: {text}"
        typer.echo(f"\r\x1b[K{line}" if self._rewrites else line, err=True, nl=not self._rewrites)

    def clear(self) -> None:
        """Make room for what is said in the end."""
        if self._rewrites:
            typer.echo("\r\x1b[K", err=True, nl=False)


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """What `--option NAME=VALUE` says, any number of times."""
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not like NAME=VALUE", param_hint=option)
        found[name] = value
    return found


@contextmanager
def told(job: str, status: int = EXIT_FAILURE) -> Iterator[Progress]:
    """Run a job. Whatever is wrong ends the command in one line, with that exit status."""
    from pyspark_amqp.spark import NoSpark

    lack = _missing_python()
    if lack is not None:
        fail(lack, status)
    from pyspark_amqp.errors import BrokerError, DataLossError
    from pyspark_amqp.jobs.layout import ArchiveError
    from pyspark_amqp.options import OptionError

    progress = Progress(job)
    try:
        yield progress
    except OptionError as error:
        progress.clear()
        fail(str(error), EXIT_USAGE)
    except (NoSpark, ArchiveError, BrokerError, DataLossError) as error:
        progress.clear()
        fail(str(error), status)
    except OSError as error:
        progress.clear()
        where = "" if error.filename is None else f"{error.filename}: "
        fail(f"{where}{error.strerror or error}: see that it is there and may be written", status)
    except KeyboardInterrupt:
        progress.clear()
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _missing_python() -> str | None:
    """What the jobs import and is not there."""
    from importlib.util import find_spec

    for module in ("pyarrow", "pyspark", "proton"):
        if find_spec(module) is None:
            return f"{module} is missing: pip install 'jms-broker[spark]'"
    return None


@contextmanager
def spark_for(
    progress: Progress,
    name: str,
    master: str | None,
    configuration: Mapping[str, str],
    status: int = EXIT_FAILURE,
) -> Iterator[SparkSession]:
    """Spark, for the block. What it says of a failure becomes one line: the cause."""
    from pyspark_amqp.jobs.replay import ReplayError
    from pyspark_amqp.jobs.selector import SelectorError
    from pyspark_amqp.spark import session

    progress.say("starting Spark")
    with tempfile.NamedTemporaryFile(
        prefix="jms-broker-spark-", suffix=".log", delete=False
    ) as log:
        path = Path(log.name)
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    started = session(f"jms-broker {name}", master=master, configuration=configuration, log=path)
    try:
        yield started
    except SelectorError as error:
        progress.clear()
        fail(f"--selector: {error}", EXIT_USAGE)
    except ReplayError as error:
        progress.clear()
        behind = f" ({cause_of(str(error.__cause__))})" if error.__cause__ is not None else ""
        fail(f"{error}{behind}", status)
    except (PySparkException, Py4JError) as error:
        progress.clear()
        kept = path.with_suffix(".kept.log")
        path.rename(kept)
        fail(f"{cause_of(str(error))} (Spark's own words: {kept})", status)
    finally:
        started.stop()
        path.unlink(missing_ok=True)


def cause_of(text: str) -> str:
    """The line of a failure of Spark's that says what was wrong; ours, where it was one of ours."""
    for pattern in (OURS, CAUSE):
        found = [each["text"].strip() for each in pattern.finditer(text)]
        if found:
            return found[-1]
    return text.strip().partition("\n")[0]


def summed(lines: Mapping[str, object], *, as_json: bool, job: str) -> None:
    """A job's summary: a line for each thing, or JSON."""
    if as_json:
        import json

        typer.echo(json.dumps({"job": job, **lines}, default=str, ensure_ascii=False))
        return
    width = max(len(name) for name in lines)
    for name, value in lines.items():
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        typer.echo(f"{name.replace('_', ' '):{width}}  {shown}")


def size_of(count: int) -> str:
    """Bytes as people read them."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
