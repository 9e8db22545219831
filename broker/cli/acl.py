"""`jms-broker acl`: check, show, explain and test access rules, of a file or a running broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_FAILURE, EXIT_STATUSES, EXIT_USAGE, fail
from broker.cli.managing import Json, taking
from broker.cli.printing import print_record, print_records
from broker.cli.rules_source import RulesPlace, as_table, canonical, rules_of

if TYPE_CHECKING:
    from broker.security.access import AccessRules
    from broker.security.cases_file import AccessCase

acl = Commands(
    help="Check, show, explain and test access rules: those of a file, or, without a file, those"
    " of a running broker.",
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
FileOrBroker = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        help="The TOML file with the rules. [default: a running broker, by --url]",
        show_default=False,
    ),
]

Asked = Annotated[
    list[str],
    typer.Argument(
        metavar="[FILE] RESOURCE",
        help="The TOML file with the rules, unless a running broker is asked, by --url; and"
        " KIND:NAME, such as queue:orders, topic:news.*/key or subscription:CLIENT/NAME."
        " The name of a queue or topic may be spelled as in an address.",
        show_default=False,
    ),
]
Verb = Annotated[str, typer.Option(help="The verb, such as send or subscribe.", show_default=False)]
AskedUser = Annotated[str, typer.Option(help="The user; without it, a client that did not log in.")]
AskedRoles = Annotated[
    list[str] | None,
    typer.Option(
        help="A role of the user, beside those of the file, or that the broker knows.",
        show_default=False,
    ),
]
Mechanism = Annotated[str, typer.Option(help="The SASL mechanism of the login, such as EXTERNAL.")]
ClientId = Annotated[str, typer.Option(help="The client id of the connection.")]
ListenerName = Annotated[str, typer.Option(help="The name of the listener.")]
Address = Annotated[str, typer.Option("--from", help="The address of the client.")]


@acl.command(epilog=EXIT_STATUSES)
@taking(RulesPlace)
def check(place: RulesPlace, file: FileOrBroker = None, json: Json = False) -> None:
    """Check rules, and list those that never decide and roles that are unknown.

    A running broker also knows the roles of its users, and its listeners. The exit status is 1 if
    there is any problem.
    """
    with place.opened(file) as source:
        verdict = source.check()
    if not verdict.problems and not json:
        typer.echo(f"{source.name}: sound: {verdict.counts}")
    elif verdict.problems:
        print_records(verdict.problems, PROBLEM_COLUMNS, as_json=json)
        raise typer.Exit(EXIT_FAILURE)


@acl.command(epilog=EXIT_STATUSES)
@taking(RulesPlace)
def show(
    place: RulesPlace,
    file: FileOrBroker = None,
    built_in: Annotated[
        bool, typer.Option("--built-in", help="Also show the rules of the built-in roles.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the rules of a file or a running broker, ordered by id, and the limits.

    The order of rules in the file means nothing. Limits are numbered in the order of the file.
    """
    with place.opened(file) as source:
        records = source.records(built_in=built_in)
    shown = [{column: record[column] for column in COLUMNS} for record in records]
    print_records(shown, COLUMNS, as_json=json)


@acl.command(epilog=EXIT_STATUSES)
@taking(RulesPlace)
def explain(
    place: RulesPlace,
    asked: Asked,
    verb: Verb,
    user: AskedUser = "",
    role: AskedRoles = None,
    mechanism: Mechanism = "",
    client_id: ClientId = "",
    listener: ListenerName = "",
    address: Address = "",
    tls: Annotated[bool, typer.Option("--tls", help="The connection has TLS.")] = False,
    json: Json = False,
) -> None:
    """Print whether a user may do something, by which rule, and which rules nearly match.

    The limits of the user are printed, too. The exit status is 0 whatever the decision is.
    """
    from broker.security.question import AccessQuestion

    *files, resource = asked
    if len(files) > 1:
        fail("give a file of rules and a resource, or a resource and --url", EXIT_USAGE)
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
    with place.opened(Path(files[0]) if files else None) as source:
        record = dict(source.explain(question, resource))
    if not record["limits"]:
        del record["limits"]
    print_record(record if json else as_table(record), as_json=json)


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

    rules = rules_of(file)
    try:
        cases = read_cases(cases_file)
    except CasesFileError as error:
        fail(str(error), EXIT_USAGE)
    compared = [_difference(rules, case, cases_file) for case in cases]
    different = [record for record in compared if record is not None]
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
