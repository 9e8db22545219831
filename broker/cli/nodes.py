"""`jms-broker node`: the queues and topics of a running broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.entities import EntityTable, Kind, add_list, add_show, kind_of
from broker.cli.managing import BrokerAt, Json, NodeKind, at_broker
from broker.cli.printing import json_of, progress

if TYPE_CHECKING:
    from broker.cli.requests import Requests

nodes = Commands(
    help="List, show, create, delete and purge queues and topics.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

NODES: Final = EntityTable(
    types=("queue", "topic"),
    columns=("name", "type", "messages", "acquired", "consumers", "producers", "temporary"),
    list_help="Print queues, then topics, sorted by name, with their messages, consumers and"
    " producers.",
    argument="name",
    argument_help="The queue's or topic's name.",
    show_help="Print everything about one queue or topic.",
)

Name = Annotated[str, typer.Argument(help=NODES.argument_help, show_default=False)]

add_list(nodes, NODES)
add_show(nodes, NODES)


@nodes.command()
@at_broker
def create(
    at: BrokerAt,
    name: Name,
    kind: Annotated[NodeKind, typer.Option(help="What to create.")] = NodeKind.QUEUE,
    json: Json = False,
) -> None:
    """Create a queue or topic. Its limits are those of the broker's settings for that name."""
    with at.opened() as broker:
        record = broker.ask("CREATE", kind.value, name)
    typer.echo(json_of(record) if json else f"created {kind.value} {name}")


@nodes.command()
@at_broker
def delete(
    at: BrokerAt,
    name: Name,
    kind: Kind = None,
    if_unused: Annotated[
        bool, typer.Option("--if-unused", help="Only if it has no consumers and no producers.")
    ] = False,
    if_empty: Annotated[
        bool, typer.Option("--if-empty", help="Only if it has no messages.")
    ] = False,
    json: Json = False,
) -> None:
    """Delete a queue or topic with all of its messages; links to it are detached with an error."""
    with at.opened() as broker:
        found = kind_of(broker, name, kind)
        broker.ask("DELETE", found, name, if_unused=if_unused, if_empty=if_empty)
    typer.echo(json_of({"deleted": name, "type": found}) if json else f"deleted {found} {name}")


@nodes.command()
@at_broker
def purge(
    at: BrokerAt,
    name: Name,
    kind: Kind = None,
    json: Json = False,
) -> None:
    """Delete the ready messages of a queue, or of all subscriptions of a topic.

    Scheduled and held messages are deleted, too. Those that consumers have received and not yet
    settled stay with them.
    """
    with at.opened() as broker:
        purged = _purge(broker, kind_of(broker, name, kind), name)
    typer.echo(json_of({"purged": purged}) if json else f"purged {purged}")


def _purge(broker: Requests, kind: str, name: str) -> int:
    """Purge piece by piece, up to the number of messages at the start; return the number purged.

    The limit spares messages that arrive meanwhile.
    """
    record = broker.ask("READ", kind, name)
    total = number_in(record, "messages") + number_in(record, "held")
    purged = 0
    with progress("purged", total) as bar:
        while purged < total:
            answer = broker.ask("PURGE", kind, name)
            piece = number_in(answer, "purged")
            bar.advance(piece)
            purged += piece
            if piece == 0 or number_in(answer, "left") == 0:
                break
    return purged


def number_in(record: object, name: str) -> int:
    """Return the integer `name` of a response."""
    assert isinstance(record, dict)
    value = record[name]
    assert isinstance(value, int)
    return value
