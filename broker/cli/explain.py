"""`jms-broker explain`: what an attach would meet, what a selector selects, why a link waits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from broker.cli.commands import Commands, PlainGroup
from broker.cli.ending import EXIT_FAILURE, EXIT_STATUSES, EXIT_USAGE, fail
from broker.cli.managing import BrokerAt, Json, NodeKind, at_broker
from broker.cli.printing import print_record, print_records
from broker.cli.subscriptions import explain as attach

if TYPE_CHECKING:
    from broker.cli.requests import Record
    from broker.message import Message

ATTACH: Final = "attach"

FLOW_COLUMNS: Final = (
    *("container_id", "link", "session", "selector", "selected"),
    *("reason", "group", "served", "explanation"),
)

CREDIT_COLUMNS: Final = (
    *("container_id", "link", "session", "credit", "unsettled"),
    *("reason", "explanation"),
)

WHOLE: Final = re.compile(r"[+-]?\d{1,18}")
DECIMAL: Final = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?")
TRUTH: Final = {"true": True, "false": False}

HEADERS: Final = {
    "JMSPriority": "priority",
    "JMSDeliveryMode": "durable",
    "JMSType": "subject",
    "JMSMessageID": "id",
    "JMSCorrelationID": "correlation_id",
    "JMSXGroupID": "group_id",
}
"""The headers that may be given, by the fields of proton's messages that carry them."""


class ExplainGroup(PlainGroup):
    """A group whose command `attach` needs no name: `explain ADDRESS` is `explain attach ADDRESS`.

    An address that is called like one of its commands needs the name.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_named = bool(args) and (args[0] in self.commands or args[0] in ("--help", "-h"))
        return super().parse_args(ctx, args if is_named else [ATTACH, *args])


explain = Commands(
    cls=ExplainGroup,
    help="Explain what a consumer would meet (`explain ADDRESS`, or `explain attach ADDRESS`), what"
    " a selector selects, where a message goes, and why a consumer or a producer waits.",
    epilog=EXIT_STATUSES,
)

explain.command(ATTACH, epilog=EXIT_STATUSES)(attach)


@explain.command(epilog=EXIT_STATUSES)
def selector(
    text: Annotated[
        str, typer.Argument(metavar="SELECTOR", help="The selector.", show_default=False)
    ],
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            "-p",
            metavar="NAME=VALUE",
            help="A property of the message, or one of its headers such as JMSPriority. Numbers,"
            " true and false are such; text in '' is always text. May be repeated.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print whether a selector selects a message with these properties. No broker is asked.

    Names of properties are case-sensitive, and a property that is missing is NULL. The exit status
    is 0 if the message is selected, 1 if it is not, 2 if the selector is wrong.
    """
    from broker.routing.errors import InvalidSelector
    from broker.routing.selector import parse_selector

    given = dict(_parted(each) for each in properties or [])
    try:
        is_selected = parse_selector(text).matches(_message(given))
    except InvalidSelector as error:
        fail(str(error), EXIT_USAGE)
    print_record({"selected": is_selected, "selector": text, "properties": given}, as_json=json)
    if not is_selected:
        raise typer.Exit(EXIT_FAILURE)


@explain.command(epilog=EXIT_STATUSES)
@at_broker
def route(
    at: BrokerAt,
    address: Annotated[
        str, typer.Argument(help="The address that is sent to.", show_default=False)
    ],
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            "-p",
            metavar="NAME=VALUE",
            help="A property of the message, as for `explain selector`, without headers.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        NodeKind | None, typer.Option(help="What ADDRESS is said to be.", show_default=False)
    ] = None,
    client_id: Annotated[str, typer.Option(help="The client id of the producer.")] = "",
    json: Json = False,
) -> None:
    """Print where a message would go: the queue, or a topic with the subscriptions that get it."""
    given = dict(_parted(each) for each in properties or [])
    facts = {
        "address": address,
        "kind": None if kind is None else kind.value,
        "properties": given,
        "publisher": client_id or None,
    }
    with at.opened() as broker:
        print_record(broker.ask("EXPLAIN", "route", more=facts), as_json=json)


@explain.command(epilog=EXIT_STATUSES)
@at_broker
def flow(
    at: BrokerAt,
    queue: Annotated[
        str | None, typer.Argument(help="The queue of the messages.", show_default=False)
    ] = None,
    subscription: Annotated[
        str | None,
        typer.Option(
            help="In place of a queue: the identity of a subscription, as in its list.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print why the consumers of a queue or subscription get no messages, and what to do.

    The first 500 messages are compared with the selector of each consumer.
    """
    if (queue is None) == (subscription is None):
        fail("name a queue, or a subscription by --subscription", EXIT_USAGE)
    with at.opened() as broker:
        told = broker.ask("EXPLAIN", "flow", queue=queue, subscription=subscription)
    _print_links(told, "consumers", FLOW_COLUMNS, as_json=json)


@explain.command(epilog=EXIT_STATUSES)
@at_broker
def credit(
    at: BrokerAt,
    address: Annotated[
        str, typer.Argument(help="The address that is sent to.", show_default=False)
    ],
    kind: Annotated[
        NodeKind | None, typer.Option(help="What ADDRESS is said to be.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Print why the producers of an address get no credit, and what to do."""
    facts = {"address": address, "kind": None if kind is None else kind.value}
    with at.opened() as broker:
        told = broker.ask("EXPLAIN", "credit", more=facts)
    _print_links(told, "producers", CREDIT_COLUMNS, as_json=json)


def _print_links(told: Record, name: str, columns: Sequence[str], *, as_json: bool) -> None:
    """Print an explanation: what is said of all, then a table of the links that it has as `name`.

    JSON is one object.
    """
    if as_json:
        print_record(told, as_json=True)
        return
    links = cast("Sequence[Record]", told[name])
    print_record({each: value for each, value in told.items() if each != name}, as_json=False)
    if links:
        print_records(links, columns, as_json=False)


def _parted(typed: str) -> tuple[str, object]:
    """Return name and value of a property as typed; a wrong one ends the command."""
    name, separator, value = typed.partition("=")
    if not separator or not name:
        fail(f"{typed!r:.100} is no NAME=VALUE", EXIT_USAGE)
    return name, _value(value)


def _value(text: str) -> object:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    if WHOLE.fullmatch(text):
        return int(text)
    return float(text) if DECIMAL.fullmatch(text) else TRUTH.get(text.lower(), text)


def _message(given: dict[str, object]) -> Message:
    """Return a message with these properties and headers, as the broker reads it."""
    try:
        import proton
    except ImportError as error:
        fail(f"the client library {error.name} is missing: pip install 'jms-broker[client]'")
    from broker.amqp.sections import Sections
    from broker.clock import SystemClock
    from broker.message import read_message

    properties = {name: value for name, value in given.items() if name not in HEADERS}
    made = proton.Message(body="", properties=properties)
    for name, field in HEADERS.items():
        if name in given:
            try:
                setattr(made, field, _header(name, given[name]))
            except (TypeError, ValueError, OverflowError):
                fail(f"{name} cannot be {given[name]!r:.50}", EXIT_USAGE)
    data = bytes(made.encode())
    sections = Sections()
    sections.read(data, 0, len(data))
    return read_message(sections, data, SystemClock())


def _header(name: str, value: object) -> object:
    """Return the value of a header as proton takes it."""
    if name == "JMSDeliveryMode":
        if value not in ("PERSISTENT", "NON_PERSISTENT"):
            fail("JMSDeliveryMode is PERSISTENT or NON_PERSISTENT", EXIT_USAGE)
        return value == "PERSISTENT"
    return value if name == "JMSPriority" else str(value)
