"""Running a job of the command line, with or without Spark: progress, summary, short errors."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import typer

from broker.cli.ending import EXIT_FAILURE, EXIT_INTERRUPTED, fail

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXIT_USAGE: Final = 2
EXIT_NOT_JUDGED: Final = 3

CAUSE: Final = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception): (?P<text>.+)$", re.MULTILINE)
OURS: Final = re.compile(
    r"(?:(?:Option|Row|DataLoss|LeaseLost|Broker|Transient|Unreachable|WrongUrl|Login|Denied|Gone"
    r"|NoManagement|Fenced)Error): (?P<text>.+)"
)
JAVA: Final = re.compile(
    r"^(?:: |Caused by: )[\w.$]+(?:Error|Exception): (?P<text>.+)$", re.MULTILINE
)
UNREADABLE: Final = re.compile(r"Encountered error while reading file (?P<file>.+?)\.(?:\s|$)")
"""Spark's words for a file of an archive that it cannot read; the reason is a cause behind them."""


class Progress:
    """A line on standard error with what the job is doing; a terminal shows only the last one."""

    def __init__(self, job: str) -> None:
        self._job: Final = job
        self._rewrites: Final = sys.stderr.isatty()

    def say(self, text: str) -> None:
        """Show what the job is doing now."""
        line = f"{self._job}: {text}"
        typer.echo(f"\r\x1b[K{line}" if self._rewrites else line, err=True, nl=not self._rewrites)

    def clear(self) -> None:
        """Clear the line, to make room for the summary."""
        if self._rewrites:
            typer.echo("\r\x1b[K", err=True, nl=False)


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Return the pairs of repeated options NAME=VALUE; raise BadParameter for other texts."""
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not like NAME=VALUE", param_hint=option)
        found[name] = value
    return found


@contextmanager
def told(job: str, status: int = EXIT_FAILURE) -> Iterator[Progress]:
    """Run a job in the block; an error ends the command with one line and the exit status `status`.

    The exit status is 2 for a wrong option, 130 for ^C.
    """
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
    """Return a text that names a missing Python package, None if there is none."""
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
    """Start Spark for the block; its failure ends the command with one line that has the cause.

    Spark's own log is kept, and named in the line, if Spark fails.
    """
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
    """Return one line with the cause of Spark's failure; if there is one of this package, that."""
    ours = _last(OURS, text)
    if ours is not None:
        return ours
    unreadable = UNREADABLE.search(text)
    if unreadable is not None:
        return _unreadable(unreadable["file"], _last(JAVA, text))
    cause = _last(CAUSE, text) or _last(JAVA, text)
    return text.strip().partition("\n")[0] if cause is None else cause


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    found = [each["text"].strip() for each in pattern.finditer(text)]
    return found[-1] if found else None


def _unreadable(uri: str, cause: str | None) -> str:
    parts = urlsplit(uri)
    path = unquote(parts.path) if parts.scheme == "file" else uri
    # Java names the file once more, in another form
    reason = "" if cause is None else re.sub(r"^file:\S+", "it", cause)
    return f"the file {path} cannot be read ({reason}): restore it, or move it out of the archive"


def summed(lines: Mapping[str, object], *, as_json: bool, job: str) -> None:
    """Print a job's summary, a line for each value, or as JSON."""
    if as_json:
        import json

        typer.echo(json.dumps({"job": job, **lines}, default=str, ensure_ascii=False))
        return
    width = max(len(name) for name in lines)
    for name, value in lines.items():
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        typer.echo(f"{name.replace('_', ' '):{width}}  {shown}")


def size_of(count: int) -> str:
    """Return a number of bytes as people read it, such as 1.5 MiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
