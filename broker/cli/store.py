"""`jms-broker store`: inspect, check, salvage and migrate a store, and handle damaged messages.

`info` and `quarantined` ask a running broker; all others need the store to themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_FAILURE, EXIT_NOT_FOUND, EXIT_USAGE, UNREACHABLE_STATUS, fail
from broker.cli.managing import BrokerAt, Count, Json, at_broker
from broker.cli.nodes import number_in
from broker.cli.printing import json_of, print_record, print_records, progress
from broker.cli.serve import CONFIG_VARIABLE
from broker.cli.shard_option import settings_of_shard

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from broker.cli.requests import Requests
    from storage.facts import QuarantinedMessage
    from storage.sql.tools.check import Findings
    from storage.sql.tools.salvage import Part, Salvaged


EXIT_STATUSES: Final = (
    "Exit status: 0 all is well, 1 something is damaged or was lost, or nothing could be done,"
    f" 2 wrong usage, 3 there is no such store, 4 not permitted, {UNREACHABLE_STATUS}."
)

store = Commands(
    help="Check, salvage and migrate a store that no broker uses; ask a running one for its own.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)
quarantine = Commands(
    help="Messages that are damaged: list them, deliver them nevertheless, drop them.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)
store.add_typer(quarantine, name="quarantine")

LISTED_TOGETHER: Final = 500

COLUMNS: Final = ("number", "queue", "found", "reason", "size")

PlaceOrShard = Annotated[
    str | None,
    typer.Argument(
        metavar="[STORE]",
        help="sqlite:///PATH as `serve --store` has it, or the path; or give --shard.",
        show_default=False,
    ),
]
StoreOfShard = Annotated[
    str | None,
    typer.Option(
        "--shard",
        help=f"The shard that has the store, of the settings that {CONFIG_VARIABLE} names.",
        show_default=False,
    ),
]
PlacesToSalvage = Annotated[
    list[str],
    typer.Argument(
        metavar="[STORE] NEW",
        help="The damaged store, as for `check`, unless --shard is given; and the new one: no such"
        " file may be there.",
        show_default=False,
    ),
]
PlaceAndNumbers = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[STORE] [NUMBER]...",
        help="The store, as for `check`, unless --shard is given; and which messages, as listed.",
        show_default=False,
    ),
]
All = Annotated[bool, typer.Option("--all", help="All that are quarantined.")]


@contextmanager
def told() -> Iterator[None]:
    """End the command with one line on standard error if the store cannot do as requested."""
    from storage.api import StoreError
    from storage.sql.tools.offline import MissingStoreError

    try:
        yield
    except MissingStoreError as error:
        fail(str(error), EXIT_NOT_FOUND)
    except StoreError as error:
        fail(str(error))


def _place(place: str | None, shard: str | None) -> str:
    """Return the store that is meant: one that was typed, or that of a shard."""
    if (place is None) == (shard is None):
        fail("name either a store, or a shard by --shard", EXIT_USAGE)
    if place is not None:
        return place
    config = os.environ.get(CONFIG_VARIABLE)
    return settings_of_shard(Path(config) if config else None, shard).store


def _place_and_more(words: list[str], shard: str | None) -> tuple[str, list[str]]:
    """Return the store that is meant, and the words behind it: without a shard it is the first."""
    if shard is not None:
        return _place(None, shard), words
    return _place(words[0] if words else None, None), words[1:]


@store.command()
def check(place: PlaceOrShard = None, shard: StoreOfShard = None, json: Json = False) -> None:
    """Read everything, compare checksums, and print what is in the store and what is damaged."""
    from storage.sql.tools.check import check as look
    from storage.sql.tools.check import messages_in
    from storage.sql.tools.offline import database_of, reading

    with told():
        database = database_of(_place(place, shard))
        with (
            reading(database) as connection,
            progress("checked", messages_in(connection)) as bar,
        ):
            found = look(connection, bar.advance)
    size = database.stat().st_size
    if json:
        sound = {"store": str(database), "bytes": size, "sound": found.is_sound()}
        typer.echo(json_of({**sound, **asdict(found)}))
    else:
        _print_findings(database, size, found)
    if not found.is_sound():
        raise typer.Exit(EXIT_FAILURE)


def _print_findings(database: Path, size: int, found: Findings) -> None:
    typer.echo(f"{database}: {size} bytes, schema {found.schema or 'none'}")
    for name, count in found.rows.items():
        typer.echo(f"{name}  {count}")
    for name, count in found.left_over.items():
        if count:
            typer.echo(f"left over, deleted at the next start: {count} {name}")
    if found.quarantined:
        typer.echo(f"quarantined before: {found.quarantined} messages")
    for complaint in [*found.complaints, *found.examples]:
        typer.echo(complaint)
    if found.is_sound():
        typer.echo("sound")
        return
    typer.echo(
        f"damaged: {found.damaged} messages, {found.damaged_chunks} chunks of large ones,"
        f" {len(found.complaints)} complaints of SQLite"
    )
    if found.complaints:
        typer.echo("`jms-broker store salvage` copies what can be read into a new store")
    else:
        typer.echo("a broker that starts quarantines them, and serves the others")


@store.command()
def salvage(
    places: PlacesToSalvage,
    shard: StoreOfShard = None,
    json: Json = False,
) -> None:
    """Copy what can be read of a damaged store into a new one. The old one is not changed."""
    from storage.sql.tools.offline import database_of
    from storage.sql.tools.salvage import salvage as save

    place, behind = _place_and_more(places, shard)
    if len(behind) != 1:
        fail("name one new store, behind the damaged one", EXIT_USAGE)
    with told():
        source, new = database_of(place), database_of(behind[0])
        with progress("copied", None) as bar:
            saved = save(source, new, bar.advance)
    if json:
        typer.echo(json_of({"whole": saved.is_whole(), **asdict(saved)}))
    else:
        _print_salvaged(new, saved)
    if not saved.is_whole():
        raise typer.Exit(EXIT_FAILURE)


def _print_salvaged(target: Path, saved: Salvaged) -> None:
    for name, part in saved.parts.items():
        typer.echo(f"{name}  saved {part.saved}{_lost(part)}")
    if saved.adopted:
        typer.echo(f"messages whose queues were lost are in {saved.adopted} queues `salvaged.…`")
    if saved.dropped_ids:
        typer.echo(
            f"dropped {saved.dropped_ids} ids for duplicate detection, whose nodes were lost:"
            " duplicates of those messages are not detected"
        )
    if saved.damaged:
        typer.echo(f"{saved.damaged} of the messages are damaged: a broker will quarantine them")
    typer.echo(f"{'everything' if saved.is_whole() else 'what can be read'} is in {target}")


def _lost(part: Part) -> str:
    """Return what the new store lacks, in words; empty if nothing."""
    text = f", {part.refused} rows make no sense" if part.refused else ""
    if part.gaps:
        ranges = ", ".join(_range(first, last) for first, last in part.gaps)
        text += f", cannot be read: whatever has a number of {ranges}"
    return text


def _range(first: int, last: int) -> str:
    from storage.sql.tools.salvage import ROWID_MAX

    if last == ROWID_MAX:
        return f"{first} or more"
    return f"{first}" if first == last else f"{first} to {last}"


@store.command()
def migrate(place: PlaceOrShard = None, shard: StoreOfShard = None) -> None:
    """Bring an older store up to date. A broker does the same when it starts."""
    from storage.sql.schema import HEAD, bring_up_to_date, version_of
    from storage.sql.tools.offline import database_of, present, writing

    with told():
        database = present(database_of(_place(place, shard)))
        with writing(database) as connection:
            before = version_of(connection)
            bring_up_to_date(connection)
    if before == HEAD:
        typer.echo(f"{database} has schema {HEAD}, the newest")
    else:
        typer.echo(f"{database} had schema {before or 'none'}, and has {HEAD} now")


# -- the store of a broker that runs


@store.command()
@at_broker
def info(at: BrokerAt, json: Json = False) -> None:
    """Print how large the store of a running broker is, and how much room it has."""
    with at.opened() as broker:
        print_record(broker.ask("READ", "store", "store"), as_json=json)


@store.command()
@at_broker
def quarantined(at: BrokerAt, count: Count = None, json: Json = False) -> None:
    """Print the damaged messages that a running broker has quarantined."""
    with at.opened() as broker:
        print_records(_quarantined(broker, count), COLUMNS, as_json=json)


def _quarantined(broker: Requests, count: int | None) -> Iterator[Mapping[str, object]]:
    behind, left = -1, count
    while left is None or left > 0:
        wanted = LISTED_TOGETHER if left is None else min(left, LISTED_TOGETHER)
        some, _ = broker.part("quarantined-message", count=wanted, after=behind)
        for each in some:
            behind = int(str(each["name"]))
            yield {**each, "number": behind, "found": _moment(number_in(each, "found_ms"))}
        if len(some) < wanted:
            return
        left = None if left is None else left - len(some)


# -- messages that are quarantined


@quarantine.command("list")
def list_quarantined(
    place: PlaceOrShard = None, shard: StoreOfShard = None, json: Json = False
) -> None:
    """Print the quarantined messages, and what is wrong with each."""
    from storage.sql.tools.offline import database_of, reading

    with told(), reading(database_of(_place(place, shard))) as connection:
        print_records(map(_record, _all_quarantined(connection)), COLUMNS, as_json=json)


@quarantine.command()
def restore(
    chosen: PlaceAndNumbers = None, shard: StoreOfShard = None, everything: All = False
) -> None:
    """Accept quarantined messages as they are now: they are delivered after all."""
    from storage.sql.quarantine import restore as take_back

    place, numbers = _place_and_numbers(chosen or [], shard)
    _each(place, numbers, take_back, everything=everything, done="restored")


@quarantine.command()
def drop(
    chosen: PlaceAndNumbers = None, shard: StoreOfShard = None, everything: All = False
) -> None:
    """Delete quarantined messages."""
    from storage.sql.quarantine import drop as delete

    place, numbers = _place_and_numbers(chosen or [], shard)
    _each(place, numbers, delete, everything=everything, done="dropped")


def _place_and_numbers(words: list[str], shard: str | None) -> tuple[str, list[int]]:
    """Return the store that is meant, and the numbers of messages behind it."""
    place, behind = _place_and_more(words, shard)
    wrong = next((each for each in behind if not each.isdecimal()), None)
    if wrong is not None:
        hint = "" if shard is None else ": --shard stands for the store"
        fail(f"{wrong!r:.100} is no number of a message{hint}", EXIT_USAGE)
    return place, [int(each) for each in behind]


Change = Callable[["Connection", int], str]
"""A function that changes one message; it returns why it could not, or an empty text."""


def _each(place: str, numbers: list[int], change: Change, *, everything: bool, done: str) -> None:
    from storage.sql.tools.offline import database_of, present, writing

    if everything == bool(numbers):
        fail("say which messages by their numbers, or --all", EXIT_USAGE)
    changed = 0
    with told(), writing(present(database_of(place))) as connection:
        if everything:
            numbers = [each.number for each in _all_quarantined(connection)]
        for number in numbers:
            why_not = change(connection, number)
            changed += not why_not
            if why_not:
                typer.echo(f"jms-broker: message {number} {why_not}", err=True)
    typer.echo(f"{done} {changed}")
    if changed < len(numbers):
        raise typer.Exit(EXIT_FAILURE)


def _all_quarantined(connection: Connection) -> list[QuarantinedMessage]:
    from storage.sql.quarantine import listed

    found: list[QuarantinedMessage] = []
    while some := listed(connection, found[-1].number if found else -1, LISTED_TOGETHER):
        found += some
    return found


def _record(message: QuarantinedMessage) -> dict[str, object]:
    return {**asdict(message), "found": _moment(message.found_ms)}


def _moment(wall_ms: int) -> str:
    return datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="seconds")
