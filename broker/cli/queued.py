"""`jms-broker message`: the messages in the queues of a running broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_FAILURE, EXIT_NOT_FOUND, EXIT_STATUSES, fail
from broker.cli.managing import BrokerAt, Json, NodeKind, at_broker
from broker.cli.nodes import number_in
from broker.cli.printing import json_of, print_record, print_records, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.cli.requests import Record, Requests

queued = Commands(
    help="List, show, move, copy, delete, cancel, deliver and retry messages in a queue.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

COLUMNS: Final = ("identity", "name", "priority", "size", "delivery_count", "subject")
HELD_COLUMNS: Final = ("identity", "name", "state", "reason", *COLUMNS[2:])
DEAD_LETTER_COLUMNS: Final = (
    *(*COLUMNS[:2], "source", "reason", "former_delivery_count"),
    *COLUMNS[2:],
)
TIMED_COLUMNS: Final = ("identity", "name", "deliver_at", *COLUMNS[2:])
PAGE: Final = 1000
DONE: Final = {"move": "moved", "copy": "copied", "retry": "moved", "delete": "deleted"}
"""The part of a response that counts the messages of each change."""

QueueName = Annotated[str, typer.Argument(help="The queue.", show_default=False)]
Identities = Annotated[
    list[str] | None,
    typer.Argument(help="Messages by their numbers, as in the list.", show_default=False),
]
Scheduled = Annotated[
    list[str], typer.Argument(help="Messages by their numbers, as list --scheduled has them.")
]
Selector = Annotated[
    str | None,
    typer.Option(help="Those that this JMS selector is true of.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="All that wait.")]
TargetKind = Annotated[
    NodeKind | None,
    typer.Option(help="The kind of TO, if a queue and a topic have that name.", show_default=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print how many messages these are.")]


@queued.command("list")
@at_broker
def list_messages(
    at: BrokerAt,
    queue: QueueName,
    selector: Selector = None,
    scheduled: Annotated[
        bool, typer.Option("--scheduled", help="Those that wait for their delivery time.")
    ] = False,
    held: Annotated[
        bool,
        typer.Option("--held", help="Those that could not be moved to a dead-letter node."),
    ] = False,
    paused: Annotated[
        bool,
        typer.Option("--paused", help="Those that have failed and wait for redelivery_delay_ms."),
    ] = False,
    count: Annotated[int, typer.Option(min=1, help="Stop after so many.")] = 100,
    json: Json = False,
) -> None:
    """Print the ready messages of a queue, in the order of their delivery.

    The list includes held messages: rejected, failed or expired ones that could not be moved to
    their dead-letter or expiry node. They are not delivered until they can be moved; retry returns
    them to the queue, move and delete remove them.
    """
    lists = {"scheduled": scheduled, "paused": paused, "held": held}
    chosen = [state for state, is_wanted in lists.items() if is_wanted]
    if len(chosen) > 1:
        options = " and ".join(f"--{state}" for state in chosen)
        fail(f"{options} are different lists: ask for one", 2)
    state = chosen[0] if chosen else None
    with at.opened() as broker:
        records, more = _listed(broker, count, queue=queue, selector=selector, state=state)
        columns = TIMED_COLUMNS if scheduled or paused else _columns_for(records)
        print_records(records, columns, as_json=json)
    if more:
        typer.echo(f"jms-broker: there are more than {count}: --count shows them", err=True)


def _columns_for(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the columns of a list of ready messages, with what held ones and dead letters have."""
    if any(record.get("state") == "held" for record in records):
        return HELD_COLUMNS
    if any(record.get("source") for record in records):
        return DEAD_LETTER_COLUMNS
    return COLUMNS


def _listed(broker: Requests, count: int, **arguments: object) -> tuple[list[Record], bool]:
    """Return up to `count` messages, and whether there are more."""
    records: list[Record] = []
    after: object = None
    while True:
        wanted = min(PAGE, count - len(records))
        page, after = broker.part("message", count=wanted, after=after, more=arguments)
        records += page
        if after is None or len(records) == count:
            return records, after is not None


@queued.command()
@at_broker
def show(
    at: BrokerAt,
    queue: QueueName,
    identity: Annotated[
        str, typer.Argument(help="The message's number, as in the list.", show_default=False)
    ],
    json: Json = False,
) -> None:
    """Print a message with its annotations, properties and the beginning of its body."""
    with at.opened() as broker:
        print_record(broker.ask("READ", "message", identity, queue=queue), as_json=json)


@queued.command()
@at_broker
def move(
    at: BrokerAt,
    queue: QueueName,
    to: Annotated[
        str, typer.Argument(help="The queue or topic that they are moved to.", show_default=False)
    ],
    identities: Identities = None,
    kind: TargetKind = None,
    selector: Selector = None,
    everything: All = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Move messages to another queue or topic."""
    chosen = _chosen(identities, selector, everything, dry_run=dry_run)
    arguments = {**chosen, **_target(to, kind)}
    _carry_out(at, "move", queue, arguments=arguments, dry_run=dry_run, as_json=json)


@queued.command()
@at_broker
def copy(
    at: BrokerAt,
    queue: QueueName,
    to: Annotated[
        str, typer.Argument(help="The queue or topic that gets the copies.", show_default=False)
    ],
    identities: Identities = None,
    kind: TargetKind = None,
    selector: Selector = None,
    everything: All = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Copy messages to another queue or topic; they stay where they are.

    A copy has the message-id of its message: a program that ignores repeated ids ignores it.
    """
    chosen = _chosen(identities, selector, everything, dry_run=dry_run)
    arguments = {**chosen, **_target(to, kind)}
    _carry_out(at, "copy", queue, arguments=arguments, dry_run=dry_run, as_json=json)


@queued.command()
@at_broker
def retry(
    at: BrokerAt,
    queue: QueueName,
    identities: Identities = None,
    selector: Selector = None,
    everything: All = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Move dead letters back to the queues they came from, as if they had never failed.

    Messages held in QUEUE itself, because they could not be moved, become ready in it again.
    """
    chosen = _chosen(identities, selector, everything, dry_run=dry_run)
    _carry_out(at, "retry", queue, arguments=chosen, dry_run=dry_run, as_json=json)


@queued.command()
@at_broker
def delete(
    at: BrokerAt,
    queue: QueueName,
    identities: Identities = None,
    selector: Selector = None,
    everything: All = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Delete ready, held or scheduled messages."""
    chosen = _chosen(identities, selector, everything, dry_run=dry_run)
    _carry_out(at, "delete", queue, arguments=chosen, dry_run=dry_run, as_json=json)


@queued.command()
@at_broker
def cancel(
    at: BrokerAt,
    queue: QueueName,
    identities: Scheduled,
    json: Json = False,
) -> None:
    """Cancel messages that wait for their delivery time: they are never delivered."""
    with at.opened() as broker:
        done = _change(broker, "CANCEL", queue, {"identities": identities})
    _tell(done, "cancelled", as_json=json)


@queued.command()
@at_broker
def deliver(
    at: BrokerAt,
    queue: QueueName,
    identities: Scheduled,
    json: Json = False,
) -> None:
    """Deliver messages now that wait for their delivery time."""
    with at.opened() as broker:
        done = _change(broker, "DELIVER", queue, {"identities": identities})
    _tell(done, "delivered", as_json=json)


def _target(to: str, kind: NodeKind | None) -> dict[str, object]:
    """Return the arguments that say where messages go."""
    return {"to": to, "to_type": None if kind is None else kind.value}


def _chosen(
    identities: list[str] | None, selector: str | None, everything: bool, *, dry_run: bool
) -> dict[str, object]:
    """Return the arguments that choose messages; end the command unless exactly one is given."""
    given = [each for each in (identities, selector, everything) if each]
    if len(given) != 1:
        fail("say which messages: their numbers, or --selector, or --all", 2)
    if dry_run and identities:
        fail("--dry-run counts the messages of --selector or --all: numbers are known", 2)
    return {"identities": identities, "selector": selector, "all": everything}


def _carry_out(
    at: BrokerAt,
    change: str,
    queue: str,
    *,
    arguments: dict[str, object],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a change to the chosen messages of a queue, or print how many they are."""
    with at.opened() as broker:
        if dry_run:
            _tell_count(broker, change, queue, selector=arguments["selector"], as_json=as_json)
            return
        done = _change(broker, change.upper(), queue, arguments)
    _tell(done, DONE[change], as_json=as_json)


def _tell_count(
    broker: Requests, change: str, queue: str, *, selector: object, as_json: bool
) -> None:
    """Print how many messages a change would be made to: those a list of the queue has.

    Of a retry, dead letters that do not say where they came from are counted apart.
    """
    wanted = {"queue": queue, "selector": selector, "attributeNames": ["state", "source"]}
    total = number_in(broker.ask("READ", "queue", queue), "messages")
    found = staying = 0
    after: object = None
    with progress("counting", total) as bar:
        while True:
            page, after = broker.part("message", count=PAGE, after=after, more=wanted)
            stay = [each for each in page if not each.get("source") and each["state"] != "held"]
            staying += len(stay) if change == "retry" else 0
            found += len(page)
            bar.advance(len(page))
            if after is None:
                break
    if as_json:
        typer.echo(json_of({f"would_{change}": found - staying, "would_stay": staying}))
        return
    typer.echo(f"would {change} {found - staying}")
    if staying:
        typer.echo(f"would leave {staying}: they do not say where they came from")


def _change(
    broker: Requests, operation: str, queue: str, arguments: dict[str, object]
) -> dict[str, object]:
    """Repeat the request until the broker has done all or stops; return the summed results."""
    total = number_in(broker.ask("READ", "queue", queue), "messages")
    done: dict[str, object] = {}
    after: object = None
    with progress(operation.lower(), total) as bar:
        while True:
            asked = broker.ask(operation, "message", queue=queue, after=after, more=arguments)
            answer = dict(asked)
            after = answer.pop("next", None)
            for name, value in answer.items():
                done[name] = _sum(done.get(name), value)
            bar.advance(_count(answer))
            if after is None or answer.get("stopped"):
                return done


def _sum(before: object, more: object) -> object:
    if isinstance(before, int) and isinstance(more, int):
        return before + more
    if isinstance(before, list) and isinstance(more, list):
        return before + more
    return more if before is None else before


def _count(answer: dict[str, object]) -> int:
    return sum(value for value in answer.values() if isinstance(value, int))


def _tell(done: dict[str, object], what: str, *, as_json: bool) -> None:
    """Print the result; end the command with a failure if not all of the request was done."""
    typer.echo(json_of(done) if as_json else f"{what} {done[what]}")
    if done.get("stopped"):
        fail(f"stopped: {done['stopped']}")
    if done.get("skipped"):
        fail(f"{done['skipped']} stay where they are: {done['reason']}", EXIT_FAILURE)
    missing = done.get("missing")
    if isinstance(missing, list) and missing:
        fail(f"not there: {', '.join(map(str, missing))}", EXIT_NOT_FOUND)
