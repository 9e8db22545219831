"""Records on standard output: a table for people, lines for programs, JSON if requested.

rich is imported only for a terminal: it takes a sixth of the time in which a command starts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

Record = Mapping[str, object]


def print_records(records: Iterable[Record], columns: Sequence[str], *, as_json: bool) -> None:
    """Print a table on a terminal, else a header and a line for each record, separated by tabs.

    `as_json` prints one JSON object a line instead.
    """
    if as_json:
        for record in records:
            print(json_of(record))
    elif sys.stdout.isatty():
        from rich.console import Console

        Console().print(table(records, columns))
    else:
        print("\t".join(columns))
        for record in records:
            print("\t".join(shown(record[column]) for column in columns))


def print_as_they_come(records: Iterable[Record], columns: Sequence[str], *, as_json: bool) -> None:
    """Print each record at once as a line for programs: the last may come late or never."""
    if not as_json:
        print("\t".join(columns), flush=True)
    for record in records:
        line = json_of(record) if as_json else "\t".join(shown(record[each]) for each in columns)
        print(line, flush=True)


def table(records: Iterable[Record], columns: Sequence[str], *, title: str | None = None) -> Table:
    """Return a table for a terminal: a row for each record."""
    from rich.table import Table
    from rich.text import Text

    rows = Table(*[column.replace("_", " ") for column in columns], title=title)
    for record in records:
        rows.add_row(*[Text(shown(record[column])) for column in columns])
    return rows


def print_record(record: Record, *, as_json: bool) -> None:
    """Print all attributes of a record, one a line, or the record as JSON."""
    if as_json:
        print(json_of(record))
        return
    width = max(len(name) for name in record)
    for name, value in record.items():
        print(f"{name.replace('_', ' '):{width}}  {shown(value)}".rstrip())


def shown(value: object) -> str:
    """Return a value as a table shows it: None as nothing, control characters replaced."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | dict):
        return json_of(value)
    return replaced(str(value))


def replaced(text: str, kept: str = "") -> str:
    """Return `text` with a replacement for each character that a terminal may obey.

    These are the control characters and those that change the direction of text. `kept` stay.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in kept else "\N{REPLACEMENT CHARACTER}" for each in text
    )


def json_of(value: object) -> str:
    """Return `value` as one line of JSON that does nothing to a terminal."""
    from broker.cli.plain_values import plain

    return escaped(json.dumps(plain(value), ensure_ascii=False))


def escaped(document: str) -> str:
    """Return a JSON document with \\uXXXX in place of each character that is not printable.

    Its value stays the same. The line feeds of an indented document stay: none is in a string.
    """
    if document.isprintable():
        return document
    return "".join(
        each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in document
    )


@contextmanager
def progress(text: str, total: int | None) -> Iterator[Bar]:
    """Show a progress bar on standard error during the block, if that is a terminal.

    `total` None means that the end is unknown.
    """
    if not sys.stderr.isatty():
        yield Bar(None, total, text)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
    ) as shown_progress:
        yield Bar(shown_progress, total, text)


class Bar:
    """A progress bar; it shows nothing without a terminal."""

    def __init__(self, shown_in: Progress | None, total: int | None, text: str) -> None:
        self._shown_in = shown_in
        self._task = shown_in.add_task(text, total=total) if shown_in is not None else None

    def advance(self, count: int) -> None:
        if self._shown_in is not None and self._task is not None:
            self._shown_in.advance(self._task, count)
