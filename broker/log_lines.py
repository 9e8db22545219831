"""The lines that a process writes: its log, on a stream that may fail, and standard output."""

import json
import logging
import os
import sys
from typing import Final, TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from broker.log_events import ERROR, INFO, WARNING, LogEvent

LEVELS: Final = {INFO: logging.INFO, WARNING: logging.WARNING, ERROR: logging.ERROR}

TRACEBACKS: Final = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)
"""Writes tracebacks for programs without the values of variables, as `plain_traceback` does for
people: among them are passwords, tokens and messages of clients."""


def write_line(log: FilteringBoundLogger, event: LogEvent, **facts: object) -> None:
    """Write a line of the kind `event`, with its code, to a log of structlog."""
    log.log(LEVELS[event.level], event.title, code=event.code, **facts)


def say(line: str) -> None:
    """Write a line for the program that has started the broker; nothing if that has ended."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # else the line would be written again at the end of the process
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class LastingStream:
    """Writes lines to a stream that may fail: a log on a closed terminal must not end a broker.

    The number of lost lines is written before the next line that can be.
    """

    def __init__(self, stream: TextIO, form: str) -> None:
        self._stream: Final = stream
        self._form: Final = form
        self._lost = 0

    def write(self, text: str) -> None:
        """Write `text` at once, or count it as lost."""
        try:
            if self._lost:
                self._stream.write(self._notice())
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # ValueError: the stream has been closed
            self._lost += 1
        else:
            self._lost = 0

    def flush(self) -> None:
        """Do nothing: every line is flushed when it is written."""

    def _notice(self) -> str:
        told = f"{self._lost} lines of the log were lost: it could not be written"
        return (
            f"{json.dumps({'event': told, 'level': 'error'}) if self._form == 'json' else told}\n"
        )


def _naming(shard: str) -> Processor:
    """Return the step of structlog that adds the name of a shard to a line."""

    def named(_logger: object, _method: str, line: EventDict) -> EventDict:
        line["shard"] = shard
        return line

    return named


def configure_logging(
    form: str, level: str, stream: TextIO | None = None, *, shard: str = ""
) -> None:
    """Log lines of `level` and above from now on, for people (`console`) or programs (`json`).

    They are written to `stream`, or else to standard error. May be called again. Each line has
    the name of the `shard` whose process this is, if it is one.
    """
    stream = sys.stderr if stream is None else stream
    for_programs = form == "json"
    structlog.configure(
        processors=[
            *([_naming(shard)] if shard else []),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([TRACEBACKS] if for_programs else []),
            structlog.processors.JSONRenderer()
            if for_programs
            else structlog.dev.ConsoleRenderer(
                colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, LastingStream(stream, form))),
        cache_logger_on_first_use=False,
    )
