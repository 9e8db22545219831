"""Errors of this package without a traceback of Python in Spark's own error.

Spark puts the whole traceback of a Python worker into the error that a program gets. For a wrong
option, address or password, or a broker that is away, the last line says it all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, TypeVar

HIDE: Final = "SPARK_HIDE_TRACEBACK"
"""Spark's variable for its workers. One in which an error was raised ends with it."""

STREAM_METHODS: Final = (
    *("initialOffset", "prepareForTriggerAvailableNow", "latestOffset", "reportLatestOffset"),
    *("partitions", "read", "commit"),
)
"""Methods of a stream's reader that ask the broker."""

Made = TypeVar("Made")


class UserError(Exception):
    """An error whose text tells the user what is wrong.

    Other errors are faults of this package, and keep their traceback.
    """


@contextmanager
def in_one_line() -> Iterator[None]:
    """Let Spark report a UserError of the block without its traceback."""
    try:
        yield
    except UserError:
        os.environ[HIDE] = "1"
        raise


def one_line_errors(*names: str) -> Callable[[type[Made]], type[Made]]:
    """Return a decorator of a class whose methods `names` report their errors `in_one_line`."""

    def decorated(made: type[Made]) -> type[Made]:
        for name in names:
            setattr(made, name, _reporting(getattr(made, name)))
        return made

    return decorated


def _reporting(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def reported(*given: Any, **named: Any) -> Any:
        with in_one_line():
            found = method(*given, **named)
        return _iterated(found) if isinstance(found, Iterator) else found

    return reported


def _iterated(found: Iterator[Any]) -> Iterator[Any]:
    with in_one_line():
        yield from found
