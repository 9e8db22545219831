"""`jms-broker definitions`: export the definitions of a running broker, import them into another.

The file is one JSON document. Lists in it are sorted, so that two exports can be compared.
"""

from __future__ import annotations

import json as json_format
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_FAILURE, EXIT_STATUSES, EXIT_USAGE, fail
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import escaped, print_records

if TYPE_CHECKING:
    from broker.cli.requests import Record, Requests

definitions = Commands(
    help="Export queues, topics, durable subscriptions, users and rules of a running broker, and"
    " import them into another. Messages are not exported: see `jms-broker backup`.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

TYPE: Final = "definitions"

VERSION_KEY: Final = "jms_broker_definitions"
"""The key of the document that has the version of its form."""

VERSION: Final = 1

KINDS: Final = ("roles", "rules", "limits", "users", "queues", "topics", "subscriptions")
"""The kinds of definitions in the order in which they are imported."""

UNSORTED: Final = "limits"
"""Limits have no names: their order is that of the rules file, and refusals count by it."""

PART_BYTES: Final = 32 * 1024
PART_MAX: Final = 200
"""Maximum bytes, as JSON, and maximum definitions of one request to import."""

FILE_MODE: Final = 0o600

STANDARD: Final = "-"
"""Instead of a file: standard input or output."""

COLUMNS: Final = ("kind", "name", "result", "note")
UNCHANGED: Final = "unchanged"
REFUSED: Final = "refused"

Document = Mapping[str, object]


@definitions.command("export", epilog=EXIT_STATUSES)
@at_broker
def export_definitions(
    at: BrokerAt,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="A new file, which only you may read; - is standard output. [default: -]",
            show_default=False,
        ),
    ] = None,
    secrets: Annotated[
        bool,
        typer.Option("--secrets", help="Also export the verifiers of passwords: hashes and SCRAM."),
    ] = False,
) -> None:
    """Print the definitions of a running broker as one JSON document.

    Without --secrets there is nothing in it that a password could be guessed by.
    """
    with at.opened() as broker:
        document = _exported(broker, secrets=secrets)
    text = escaped(json_format.dumps(document, indent=2, ensure_ascii=False)) + "\n"
    if file is None or str(file) == STANDARD:
        sys.stdout.write(text)
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        fail(f"{file}: {error.strerror}")


def _exported(broker: Requests, *, secrets: bool) -> Document:
    """Return the document with all definitions of a broker."""
    kinds = {str(each["name"]) for each in broker.records(TYPE)}
    found: dict[str, object] = {VERSION_KEY: VERSION}
    for kind in KINDS:
        if kind in kinds:
            listed = list(_pages(broker, kind, secrets=secrets))
            found[kind] = listed if kind == UNSORTED else sorted(listed, key=_sort_key)
    return found


def _pages(broker: Requests, kind: str, *, secrets: bool) -> Iterator[Record]:
    """Yield the definitions of one kind, page by page."""
    operation = "EXPORT-SECRETS" if secrets else "EXPORT"
    offset: object = 0
    while offset is not None:
        page = broker.ask(operation, TYPE, kind, offset=offset)
        yield from cast("Sequence[Record]", page[TYPE])
        offset = page["next"]


def _sort_key(definition: Record) -> tuple[str, str]:
    """Return what definitions of one kind are sorted by; a subscription's client comes first."""
    name = definition.get("id") if "id" in definition else definition.get("name")
    return str(definition.get("container_id") or ""), str(name)


@definitions.command("import", epilog=EXIT_STATUSES)
@at_broker
def import_definitions(
    at: BrokerAt,
    file: Annotated[
        Path,
        typer.Argument(help="The document that `export` wrote; - is standard input."),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Import nothing: print what an import would do.")
    ] = False,
    secrets: Annotated[
        bool,
        typer.Option("--secrets", help="Also import the verifiers of passwords in the document."),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Also print definitions that are unchanged.")
    ] = False,
    json: Json = False,
) -> None:
    """Add definitions to a running broker, and change those that differ; none is removed.

    The first pass only finds out and prints what would be added, changed or refused. If anything is
    refused, nothing is imported, and the exit status is 1.
    """
    parts = _parts(_read(file))
    with at.opened() as broker:
        planned = _pass(broker, parts, dry_run=True, secrets=secrets)
        shown = [each for each in planned if every or each["note"] or each["result"] != UNCHANGED]
        _print(shown, planned, as_json=json, dry_run=dry_run)
        if any(each["result"] == REFUSED for each in planned):
            fail("some definitions are refused: nothing was imported")
        if dry_run or all(each["result"] == UNCHANGED for each in planned):
            return
        done = _pass(broker, parts, dry_run=False, secrets=secrets)
    refused = [each for each in done if each["result"] == REFUSED]
    if refused:
        print_records(refused, COLUMNS, as_json=json)
        raise typer.Exit(EXIT_FAILURE)


def _read(file: Path) -> Document:
    """Return the document in a file; a wrong one ends the command."""
    try:
        text = sys.stdin.read() if str(file) == STANDARD else file.read_text(encoding="utf-8")
        document = json_format.loads(text)
    except OSError as error:
        fail(f"{file}: {error.strerror}", EXIT_USAGE)
    except (ValueError, RecursionError) as error:
        fail(f"{file}: no JSON: {error}", EXIT_USAGE)
    if not isinstance(document, dict) or VERSION_KEY not in document:
        fail(f"{file}: no definitions of jms-broker: there is no {VERSION_KEY}", EXIT_USAGE)
    if document[VERSION_KEY] != VERSION:
        version = document[VERSION_KEY]
        fail(f"{file}: version {version} of definitions; this one knows {VERSION}", EXIT_USAGE)
    for kind, listed in document.items():
        if kind != VERSION_KEY and kind not in KINDS:
            fail(f"{file}: there is no kind {kind}; known are {', '.join(KINDS)}", EXIT_USAGE)
        if kind != VERSION_KEY and not _is_list_of_objects(listed):
            fail(f"{file}: {kind} is no list of objects", EXIT_USAGE)
    return document


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


Part = tuple[str, list[Mapping[str, object]]]
"""A kind, and definitions of it."""


def _parts(document: Document) -> list[Part]:
    """Return the definitions in parts, each for one request, in the order of KINDS."""
    parts: list[Part] = []
    for kind in KINDS:
        size = PART_BYTES
        for each in cast("Sequence[Record]", document.get(kind, ())):
            more = len(json_format.dumps(each, ensure_ascii=False).encode(errors="replace"))
            is_full = size + more > PART_BYTES or len(parts[-1][1]) >= PART_MAX
            if is_full or parts[-1][0] != kind:
                parts.append((kind, []))
                size = 0
            parts[-1][1].append(each)
            size += more
    return parts


def _pass(
    broker: Requests, parts: Sequence[Part], *, dry_run: bool, secrets: bool
) -> list[dict[str, object]]:
    """Import all parts, or find out what that would do; return the outcome of each definition."""
    found: list[dict[str, object]] = []
    for kind, listed in parts:
        told = broker.ask(
            "IMPORT",
            TYPE,
            kind,
            version=VERSION,
            definitions=listed,
            dry_run=dry_run,
            secrets=secrets,
        )
        found += [{"kind": kind, **each} for each in cast("Sequence[Record]", told["outcomes"])]
    return found


def _print(
    shown: Sequence[Mapping[str, object]],
    planned: Sequence[Mapping[str, object]],
    *,
    as_json: bool,
    dry_run: bool,
) -> None:
    if shown or as_json:
        print_records(shown, COLUMNS, as_json=as_json)
    if not as_json:
        results = [str(each["result"]) for each in planned]
        counts = ", ".join(
            f"{name} {results.count(name)}" for name in ("added", "changed", UNCHANGED, REFUSED)
        )
        typer.echo(f"nothing imported, would be: {counts}" if dry_run else counts, err=True)
