"""`jms-broker acl`: check, show and explain a file of access rules, without a broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_FAILURE, EXIT_STATUSES, EXIT_USAGE, fail
from broker.cli.managing import Json
from broker.cli.printing import print_record, print_records

if TYPE_CHECKING:
    from broker.security.access import AccessRules
    from broker.security.resources import Resource

acl = Commands(
    help="Check, show and explain a file of access rules. No broker is asked.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

COLUMNS: Final = ("id", "effect", "who", "can", "on", "when")
PROBLEM_COLUMNS: Final = ("rule", "problem")

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="The TOML file with the rules.", show_default=False)
]


ResourceText = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE",
        help="KIND:NAME, such as queue:orders, topic:news.*/key or subscription:CLIENT/NAME."
        " The name of a queue or topic may be spelled as in an address.",
        show_default=False,
    ),
]


@contextmanager
def _loaded(file: Path) -> Iterator[AccessRules]:
    """Read the rules for the block; an error in the file ends the command with one line."""
    from broker.security.rules_file import RulesFileError, read_rules

    try:
        yield read_rules(file)
    except RulesFileError as error:
        fail(str(error))


@acl.command(epilog=EXIT_STATUSES)
def check(file: File, json: Json = False) -> None:
    """Check a file, and list rules that never decide and roles that are unknown.

    The exit status is 1 if there is any.
    """
    with _loaded(file) as rules:
        problems = rules.check()
        own = [rule for rule in rules.rules if not rule.is_built_in]
        limits = f", limits {len(rules.limits)}" if rules.limits else ""
    if not problems and not json:
        typer.echo(f"{file}: sound: rules {len(own)}, roles {len(rules.roles)}{limits}")
    elif problems:
        print_records(
            [{"rule": each.rule, "problem": each.text} for each in problems],
            PROBLEM_COLUMNS,
            as_json=json,
        )
        raise typer.Exit(EXIT_FAILURE)


@acl.command(epilog=EXIT_STATUSES)
def show(
    file: File,
    built_in: Annotated[
        bool, typer.Option("--built-in", help="Also show the rules of the built-in roles.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the rules of a file, ordered by id, and its limits.

    The order of rules in the file means nothing. Limits are numbered in the order of the file.
    """
    with _loaded(file) as rules:
        records = [rule.record() for rule in rules.rules if built_in or not rule.is_built_in]
        records += [limit.record() for limit in rules.limits]
    print_records(records, COLUMNS, as_json=json)


@acl.command(epilog=EXIT_STATUSES)
def explain(
    file: File,
    resource: ResourceText,
    verb: Annotated[
        str, typer.Option(help="The verb, such as send or subscribe.", show_default=False)
    ],
    user: Annotated[
        str, typer.Option(help="The user; without it, a client that did not log in.")
    ] = "",
    role: Annotated[
        list[str] | None,
        typer.Option(help="A role of the user, beside those of the file.", show_default=False),
    ] = None,
    mechanism: Annotated[
        str, typer.Option(help="The SASL mechanism of the login, such as EXTERNAL.")
    ] = "",
    client_id: Annotated[str, typer.Option(help="The client id of the connection.")] = "",
    listener: Annotated[str, typer.Option(help="The name of the listener.")] = "",
    address: Annotated[str, typer.Option("--from", help="The address of the client.")] = "",
    tls: Annotated[bool, typer.Option("--tls", help="The connection has TLS.")] = False,
    json: Json = False,
) -> None:
    """Print whether a user may do something, by which rule, and which rules nearly match.

    The limits of the user are printed, too. The exit status is 0 whatever the decision is.
    """
    from broker.security.entrance import Entrance
    from broker.security.identity import Identity

    asked = canonical(resource, verb)
    identity = Identity(user, roles=frozenset(role or ()), mechanism=mechanism)
    with _loaded(file) as rules:
        limits = rules.limits_of(identity).text()
        explanation = rules.explain(
            identity,
            verb,
            asked,
            entrance=Entrance(listener=listener, kind="amqp", host=address, is_tls=tls),
            client_id=client_id,
        )
    record = explanation.record()
    if limits:
        record["limits"] = limits
    if not json:
        near = [f"{each.rule} ({each.failed})" for each in explanation.near_misses]
        record["near_misses"] = ", ".join(near)
    print_record(record, as_json=json)


def canonical(text: str, verb: str) -> Resource:
    """Return the resource that an operator typed; a wrong one ends the command."""
    from broker.routing.addresses.address import MANAGEMENT
    from broker.routing.addresses.prefixes import Prefixes
    from broker.routing.errors import RoutingError
    from broker.security import resources
    from broker.security.resources import ResourceError, resource_of

    kind, _, name = text.partition(":")
    try:
        if kind not in (resources.QUEUE, resources.TOPIC) or not name:
            return resource_of(text, verb)
        address = Prefixes().parse(name, kind)
        if address.text == MANAGEMENT:
            return resource_of(f"{resources.MANAGEMENT}:{resources.EVERY}", verb)
        if address.is_temporary:
            return resource_of(f"{resources.TEMPORARY}:{kind}", verb)
        if kind == resources.TOPIC:
            plain = f"{address.words}/{address.key}" if address.key else address.words
            return resource_of(f"{kind}:{plain}", verb)
        return resource_of(f"{kind}:{address.text.removeprefix(address.begins)}", verb)
    except (ResourceError, RoutingError) as error:
        fail(str(error), EXIT_USAGE)
