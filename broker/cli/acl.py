"""`jms-broker acl`: check, show, explain and test a file of access rules, without a broker."""

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
    from broker.security.cases_file import AccessCase
    from broker.security.resources import Resource

acl = Commands(
    help="Check, show, explain and test a file of access rules. No broker is asked.",
    epilog=EXIT_STATUSES,
    no_args_is_help=True,
)

COLUMNS: Final = ("id", "effect", "who", "can", "on", "when")
PROBLEM_COLUMNS: Final = ("rule", "problem")
CASE_COLUMNS: Final = ("case", "user", "verb", "resource", "expected", "found")

ALLOW: Final = "allow"
DENY: Final = "deny"
"""The expected decisions in a file of cases."""

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
    from broker.security.question import AccessQuestion

    asked = canonical(resource, verb)
    question = AccessQuestion(
        verb=verb,
        user=user,
        roles=tuple(role or ()),
        mechanism=mechanism,
        client_id=client_id,
        listener=listener,
        host=address,
        is_tls=tls,
    )
    with _loaded(file) as rules:
        limits = rules.limits_of(question.identity()).text()
        explanation = question.explained_by(rules, asked)
    record = explanation.record()
    if limits:
        record["limits"] = limits
    if not json:
        near = [f"{each.rule} ({each.failed})" for each in explanation.near_misses]
        record["near_misses"] = ", ".join(near)
    print_record(record, as_json=json)


@acl.command("test", epilog=EXIT_STATUSES)
def run_cases(
    file: File,
    cases_file: Annotated[
        Path,
        typer.Argument(
            metavar="CASES", help="The TOML file with expected decisions.", show_default=False
        ),
    ],
    json: Json = False,
) -> None:
    """Compare the decisions of a file of rules with expected ones, and print those that differ.

    Each table [[case]] has verb, resource, and expect (allow or deny); without a user the
    client did not log in. It may have name, user, roles, mechanism, client_id, listener, from, tls,
    and rule: the id of the rule that must decide. The exit status is 1 if a decision differs.
    """
    from broker.security.cases_file import CasesFileError, read_cases

    with _loaded(file) as rules:
        try:
            cases = read_cases(cases_file)
        except CasesFileError as error:
            fail(str(error), EXIT_USAGE)
        different = [
            record
            for record in (_difference(rules, case, cases_file) for case in cases)
            if record is not None
        ]
    if different:
        print_records(different, CASE_COLUMNS, as_json=json)
        raise typer.Exit(EXIT_FAILURE)
    if not json:
        typer.echo(f"{cases_file}: as expected: cases {len(cases)}")


def _difference(rules: AccessRules, case: AccessCase, file: Path) -> dict[str, object] | None:
    """Return how a decision differs from the expected one, None if it does not."""
    verb = case.question.verb
    asked = canonical(case.resource, verb, place=f"{file}: {case.name}: ")
    decision = case.question.decided_by(rules, asked)
    if case.is_met(decision):
        return None
    return {
        "case": case.name,
        "user": case.question.user,
        "verb": verb,
        "resource": asked.text(),
        "expected": _in_words(case.is_allowed, case.rule),
        "found": _in_words(decision.allowed, decision.rule or decision.because),
    }


def _in_words(allowed: bool, rule: str) -> str:
    """Return a decision as a file of cases has it, with the rule."""
    effect = ALLOW if allowed else DENY
    return f"{effect} ({rule})" if rule else effect


def canonical(text: str, verb: str, *, place: str = "") -> Resource:
    """Return the resource that an operator typed; a wrong one ends the command.

    `place` begins the error.
    """
    from broker.management.asked_resource import asked_resource
    from broker.routing.addresses.prefixes import Prefixes
    from broker.security.resources import ResourceError

    try:
        return asked_resource(text, verb, Prefixes())
    except ResourceError as error:
        fail(f"{place}{error}", EXIT_USAGE)
