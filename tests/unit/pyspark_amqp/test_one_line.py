"""Errors whose texts say all are reported without a traceback, others with one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from pyspark_amqp.errors import UnreachableError
from pyspark_amqp.one_line import HIDE, one_line_errors
from pyspark_amqp.options import OptionError


@one_line_errors("ask", "read")
class Reader:
    """A reader whose methods fail."""

    def ask(self, error: Exception) -> None:
        raise error

    def read(self, error: Exception) -> Iterator[int]:
        yield 1
        raise error

    def other(self, error: Exception) -> None:
        raise error


@pytest.mark.requirement("PIP-76")
@pytest.mark.parametrize("method", ["ask", "read"])
@pytest.mark.parametrize(
    ("error", "hidden"),
    [
        pytest.param(OptionError("option url: no"), "1", id="a wrong option"),
        pytest.param(UnreachableError("no broker"), "1", id="no broker"),
        pytest.param(KeyError("position"), None, id="a fault of this package"),
    ],
)
def test_a_traceback_is_hidden_if_the_text_says_all(
    monkeypatch: pytest.MonkeyPatch, method: str, error: Exception, hidden: str | None
) -> None:
    monkeypatch.setenv(HIDE, "")
    monkeypatch.delenv(HIDE)
    with pytest.raises(type(error)):
        list(getattr(Reader(), method)(error) or ())
    assert os.environ.get(HIDE) == hidden


def test_rows_before_the_error_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HIDE, "")
    rows = Reader().read(OptionError("later"))
    assert next(rows) == 1
    with pytest.raises(OptionError, match="later"):
        next(rows)
