"""The stream of the log, and what each of its lines has."""

import errno
import io
import json
import os
import subprocess
import sys

import pytest
import structlog

from broker.log_events import INTERNAL_ERROR, STARTING
from broker.log_lines import LastingStream, configure_logging, write_line


class Terminal(io.StringIO):
    """A stream whose flush fails with EIO while it is closed."""

    is_closed = False

    def flush(self) -> None:
        if self.is_closed:
            raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize(
    ("form", "notice"),
    [
        pytest.param("console", "2 lines of the log were lost", id="for people"),
        pytest.param("json", '{"event": "2 lines of the log were lost', id="for programs"),
    ],
)
def test_a_log_that_cannot_be_written_stops_nothing_and_says_so_later(
    form: str, notice: str
) -> None:
    terminal = Terminal()
    stream = LastingStream(terminal, form)
    stream.write("one\n")
    terminal.is_closed = True
    stream.write("two\n")
    stream.write("three\n")
    terminal.is_closed = False
    stream.write("four\n")
    stream.write("five\n")
    stream.flush()
    first, *_, told, four, five = terminal.getvalue().splitlines()
    assert (first, four, five) == ("one", "four", "five")
    assert told.startswith(notice)


@pytest.mark.parametrize(
    ("shard", "told"),
    [
        pytest.param("", {"event", "code", "level", "timestamp"}, id="of no shard"),
        pytest.param("a", {"event", "code", "level", "timestamp", "shard"}, id="of a shard"),
    ],
)
def test_a_line_names_the_shard_that_writes_it(shard: str, told: set[str]) -> None:
    stream = io.StringIO()
    configure_logging("json", "info", stream, shard=shard)
    write_line(structlog.get_logger("broker"), STARTING)
    line = json.loads(stream.getvalue())
    assert set(line) == told
    assert line.get("shard", "") == shard


def fail(password: str) -> None:
    """Fail while variables hold a secret."""
    raise ValueError(f"{len(password)} characters")


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_traceback_has_no_values_of_variables(form: str) -> None:
    stream = io.StringIO()
    configure_logging(form, "info", stream)
    try:
        fail("".join(("ses", "ame")))
    except ValueError as error:
        write_line(structlog.get_logger("broker"), INTERNAL_ERROR, exc_info=error)
    told = stream.getvalue()
    assert "sesame" not in told
    assert all(each in told for each in ("fail", "ValueError", "6 characters", "test_log_lines.py"))


def test_a_line_that_nothing_reads_stops_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as unread:
        done = subprocess.run(
            [sys.executable, "-c", "from broker.log_lines import say; say('one'); say('two')"],
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=unread,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")
