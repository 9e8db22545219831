"""Running a job of the command line, with or without Spark: progress, summary, short errors."""

from __future__ import annotations

import re
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import typer

from broker.cli.ending import EXIT_FAILURE, EXIT_INTERRUPTED, fail

if TYPE_CHECKING:
    from pyspark_amqp.engines.engine import Engine

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
MOVE_IT: Final = "restore it, or move it out of the archive"

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


class EngineName(Enum):
    """The engines of the jobs."""

    SPARK = "spark"
    DUCKDB = "duckdb"


ENGINES: Final[Mapping[EngineName, tuple[str, str]]] = {
    EngineName.SPARK: ("pyspark", "spark"),
    EngineName.DUCKDB: ("duckdb", "pipeline"),
}
"""The Python package of each engine, and the extra that installs it."""


def engine_of(wanted: EngineName | None) -> EngineName:
    """Return the engine that is asked for; without one, Spark if PySpark is installed."""
    if wanted is not None:
        return wanted
    return EngineName.SPARK if find_spec("pyspark") is not None else EngineName.DUCKDB


@contextmanager
def told(
    job: str, status: int = EXIT_FAILURE, engine: EngineName | None = None
) -> Iterator[Progress]:
    """Run a job in the block; an error ends the command with one line and the exit status `status`.

    The exit status is 2 for a wrong option, 130 for ^C. An error that is a fault of this package is
    raised, or, if `status` differs from that of Python, printed with its traceback. Without
    `engine` the job needs none.
    """
    lack = _missing_python(engine)
    if lack is not None:
        fail(lack, status)
    progress = Progress(job)
    try:
        with _errors_in_one_line(progress, status):
            yield progress
    except typer.Exit as end:
        forget_frames(end)
        raise


def forget_frames(end: BaseException) -> None:
    """Forget where the errors behind `end`, which have been told, were raised.

    Their frames have objects of DuckDB, which it reports as leaks, in 43 lines, if they are there
    when Python ends.
    """
    errors: list[BaseException | None] = [end]
    known: set[int] = set()
    while errors:
        error = errors.pop()
        if error is not None and id(error) not in known:
            known.add(id(error))
            traceback.clear_frames(error.__traceback__)
            error.__traceback__ = None
            errors += [error.__cause__, error.__context__]


@contextmanager
def _errors_in_one_line(progress: Progress, status: int) -> Iterator[None]:
    """End the command as `told` says if the block fails."""
    from pyspark_amqp.jobs.layout import ArchiveError
    from pyspark_amqp.one_line import UserError
    from pyspark_amqp.options import OptionError
    from pyspark_amqp.spark import NoSpark

    try:
        yield
    except OptionError as error:
        progress.clear()
        fail(str(error), EXIT_USAGE)
    except (NoSpark, ArchiveError, UserError) as error:
        progress.clear()
        fail(str(error), status)
    except OSError as error:
        progress.clear()
        where = "" if error.filename is None else f"{error.filename}: "
        fail(f"{where}{error.strerror or error}: see that it is there and may be written", status)
    except KeyboardInterrupt:
        progress.clear()
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception:
        if status == EXIT_FAILURE:
            raise
        progress.clear()
        traceback.print_exc()
        raise typer.Exit(status) from None


def _missing_python(engine: EngineName | None) -> str | None:
    """Return a text that names a missing Python package, None if there is none."""
    module, extra = ENGINES[engine or EngineName.DUCKDB]
    for each in ("pyarrow", module, "proton"):
        if find_spec(each) is None and (each != module or engine is not None):
            return f"{each} is missing: pip install 'jms-broker[{extra}]'"
    return None


@dataclass(frozen=True)
class SparkSettings:
    """The master of Spark, and its settings, as the command line names them."""

    master: str | None
    configuration: Mapping[str, str]


@dataclass(frozen=True)
class Started:
    """An engine that runs; `log` has what Java writes, if it is Spark."""

    engine: Engine
    log: Path | None = None


@contextmanager
def engine_for(
    progress: Progress,
    job: str,
    name: EngineName,
    settings: SparkSettings,
    status: int = EXIT_FAILURE,
) -> Iterator[Engine]:
    """Start the engine for the block; its failure ends the command with one line with the cause.

    Within a `chain` the engine is that of the job before, and stays.
    """
    from pyspark_amqp.errors import ReplayError, SelectorError

    starting = _duckdb() if name is EngineName.DUCKDB else _spark(progress, job, settings)
    with ExitStack() as own:
        shared = CHAIN.get()
        started = own.enter_context(starting) if shared is None else shared.entered(name, starting)
        try:
            with _errors_of(started, progress, status):
                yield started.engine
        except SelectorError as error:
            progress.clear()
            fail(f"--selector: {error}", EXIT_USAGE)
        except ReplayError as error:
            progress.clear()
            behind = f" ({cause_of(str(error.__cause__))})" if error.__cause__ is not None else ""
            fail(f"{error}{behind}", status)


class Chain:
    """The engines of jobs that run one after another: each is started once."""

    def __init__(self, until_end: ExitStack) -> None:
        self._until_end: Final = until_end
        self._started: Final[dict[EngineName, Started]] = {}

    def entered(self, name: EngineName, starting: AbstractContextManager[Started]) -> Started:
        """Return the engine of that name, started now if no job before has."""
        if name not in self._started:
            self._started[name] = self._until_end.enter_context(starting)
        return self._started[name]


CHAIN: Final[ContextVar[Chain | None]] = ContextVar("CHAIN", default=None)
"""The chain that the running command is a part of."""


@contextmanager
def chain() -> Iterator[None]:
    """Let all jobs of the block use the same engines."""
    with ExitStack() as until_end:
        token = CHAIN.set(Chain(until_end))
        try:
            yield
        finally:
            CHAIN.reset(token)


@contextmanager
def _duckdb() -> Iterator[Started]:
    from pyspark_amqp.engines.duckdb_engine import duckdb_engine

    with duckdb_engine() as engine, _at_interrupt(engine.connection.interrupt):
        yield Started(engine)


@contextmanager
def _at_interrupt(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` in another thread at each ^C in the block, in addition to KeyboardInterrupt.

    Python raises that once the main thread is back from a call of C, and a statement of DuckDB may
    be one call of minutes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may ask for signals
        return
    numbers, written = socket.socketpair()
    with numbers, written:
        written.setblocking(False)
        before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
        watch = threading.Thread(target=_act_at_interrupts, args=(numbers, act), daemon=True)
        watch.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            written.shutdown(socket.SHUT_WR)
            watch.join()


def _act_at_interrupts(numbers: socket.socket, act: Callable[[], None]) -> None:
    """Read the numbers of signals, a byte each, until there are no more."""
    while received := numbers.recv(SIGNALS_AT_ONCE):
        if signal.SIGINT in received:
            act()


SIGNALS_AT_ONCE: Final = 100


@contextmanager
def _spark(progress: Progress, job: str, settings: SparkSettings) -> Iterator[Started]:
    from pyspark_amqp.engines.spark_engine import SparkEngine
    from pyspark_amqp.spark import session

    progress.say("starting Spark")
    with tempfile.NamedTemporaryFile(
        prefix="jms-broker-spark-", suffix=".log", delete=False
    ) as log:
        path = Path(log.name)
    started = session(
        f"jms-broker {job}",
        master=settings.master,
        configuration=settings.configuration,
        log=path,
    )
    try:
        yield Started(SparkEngine(started), path)
    finally:
        started.stop()
        path.unlink(missing_ok=True)


@contextmanager
def _errors_of(started: Started, progress: Progress, status: int) -> Iterator[None]:
    """End the command with one line if the engine fails in the block.

    Spark's own log is kept, and named in the line.
    """
    if started.log is None:
        import duckdb

        try:
            yield
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except duckdb.Error as error:
            progress.clear()
            fail(cause_in_duckdb(str(error)), status)
        except RuntimeError as error:
            if str(error) == INTERRUPTED_DUCKDB:
                raise KeyboardInterrupt from None
            raise
        return
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        progress.clear()
        kept = started.log.with_suffix(".kept.log")
        started.log.rename(kept)
        fail(f"{cause_of(str(error))} (Spark's own words: {kept})", status)


INTERRUPTED_DUCKDB: Final = "Query interrupted"
"""The text of the RuntimeError that DuckDB raises at ^C."""

UNREADABLE_BY_DUCKDB: Final = re.compile(r"""['"](?P<file>[^'"]+\.parquet)['"]""")
"""The file of an archive that an error of DuckDB names."""


def cause_in_duckdb(text: str) -> str:
    """Return the words of an error of DuckDB in one line, without the statement behind them."""
    words = " ".join(text.partition("\n\n")[0].split())
    found = UNREADABLE_BY_DUCKDB.search(words)
    if found is None:
        return words
    return f"the file {found['file']} cannot be read ({words}): {MOVE_IT}"


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
    return f"the file {path} cannot be read ({reason}): {MOVE_IT}"


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
