"""The harness on the command line: what it runs, prints and writes, and its exit status."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from .asked import Asked, CannotRun, options_of, tls_files
from .harness import Case, Result, Rule, all_cases, chosen, is_of
from .html_report import write_html
from .identity import BrokerIdentity, identity_of, place_of, refused_login
from .jms_api.catalogue import JmsRule, jms_rules
from .jms_api.java_suite import java_command
from .jms_api.runner import JmsRun, judge_jms
from .known import is_unexpected_failure, is_unexpected_pass, known_failures, with_known
from .outputs import check_outputs, write_outputs
from .progress import watching
from .report import in_text, totals, write_junit
from .report_file import Report, write_json
from .running import judge_all, not_run
from .verdict import Options, Verdict
from .version import HARNESS

EXIT_FAILED: Final = 1
EXIT_CANNOT: Final = 2
EXIT_UNEXPECTED_PASS: Final = 3
EXIT_NOT_FINISHED: Final = 4

EXIT_STATUSES: Final = (
    "Exit status: 0 no case failed that was not expected to, 1 a case failed, 2 nothing was run"
    " (wrong options, no broker, or a login that it refuses), or a report could not be written, 3"
    " no case failed, and one passed that --known expects to fail, 4 the broker died and did not"
    " come back, so cases were not run."
)

NOT_TOLD: Final = ("url", "user", "password", "key", "junit", "html", "json", "version")
"""Options that no report shows: secrets, and those that have no effect on the results."""

ON_LOGINS: Final = ("2.2", "5")
"""The clauses whose cases tell something of a broker that does not let the harness in."""

GIVEN_ONLY: Final = ("restart",)
"""Options of which a report shows only that they were given: a command may hold a password."""


def run(asked: Asked) -> int:
    """Run the chosen cases, print their results and write reports; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # a broker may send characters that the terminal's encoding does not have
            stream.reconfigure(errors="backslashreplace")
    try:
        cases, rules = _chosen(asked)
        if asked.list_only:
            _print_list([*cases, *rules])
            return 0
        options = options_of(asked)
        names = {rule.name for rule in (*all_cases(), *jms_rules())}
        reasons = {} if asked.known is None else known_failures(asked.known, names)
        check_outputs((asked.junit, asked.html, asked.json))
        suite = _jms_run(asked) if rules else JmsRun()
        report = asyncio.run(judge_chosen(asked, (cases, rules), options, suite))
    except CannotRun as reason:
        print(f"conformance: {reason}", file=sys.stderr)
        return EXIT_CANNOT
    report = replace(report, results=with_known(report.results, reasons))
    # before anything is printed: who reads that may be gone
    errors = _write(report, asked)
    _print_results(report.results, asked.case)
    for error in errors:
        print(f"conformance: {error}", file=sys.stderr)
    return EXIT_CANNOT if errors else exit_status(report.results)


def exit_status(results: list[Result]) -> int:
    """Return the status of a run; that of a run which was not finished comes first."""
    if any(each.verdict is Verdict.NOT_RUN for each in results):
        return EXIT_NOT_FINISHED
    if any(is_unexpected_failure(each) for each in results):
        return EXIT_FAILED
    return EXIT_UNEXPECTED_PASS if any(is_unexpected_pass(each) for each in results) else 0


def _chosen(asked: Asked) -> tuple[list[Case], list[JmsRule]]:
    """Return the chosen cases, and with --jms the chosen rules of the suite in Java.

    Raise CannotRun for a name or a clause without any.
    """
    cases, rules = all_cases(), jms_rules() if asked.jms else []
    both: list[Rule] = [*cases, *rules]
    names = {rule.name for rule in both}
    for name in asked.case:
        if name not in names:
            raise CannotRun(f"no case is called so: {name}")
    for clause in asked.clause:
        if not any(is_of(rule, clause) for rule in both):
            raise CannotRun(f"no case belongs to such a clause: {clause}")
    found = chosen(cases, asked.clause, asked.case)
    return found, chosen(rules, asked.clause, asked.case)


def _print_list(rules: list[Rule]) -> None:
    """Print a line for each case: source, clause, name and sentence, separated by tabs."""
    for case in rules:
        print(f"{case.source}\t{case.clause}\t{case.name}\t{case.sentence}")


def _print_results(results: list[Result], named: list[str]) -> None:
    """Print the cases that did not pass or were asked for by name, then the totals."""
    for result in results:
        is_named = result.case.name in named
        is_noted = result.verdict not in (Verdict.PASSED, Verdict.NOT_RUN) or result.known
        if is_named or is_noted:
            print(in_text(result, frames=is_named or is_unexpected_failure(result)))
    print(totals(results))


def _write(report: Report, asked: Asked) -> list[str]:
    """Write the reports; return the errors of those that cannot be written."""
    return write_outputs(
        (
            (asked.junit, partial(write_junit, report)),
            (asked.html, partial(write_html, report)),
            (asked.json, partial(write_json, report)),
        )
    )


async def judge_chosen(
    asked: Asked,
    selected: tuple[list[Case], list[JmsRule]],
    options: Options,
    suite: JmsRun,
) -> Report:
    """Judge the cases, then the rules of the suite in Java unless the broker is dead."""
    cases, rules = selected
    needs_login = any(not any(is_of(each, clause) for clause in ON_LOGINS) for each in cases)
    broker = await _identity(options, needs_login=needs_login)
    began, start = datetime.now(UTC), time.monotonic()
    with watching(len(cases) + len(rules)) as watcher:
        judged = await judge_all(cases, options, watcher)
        results = judged.results
        if judged.killer:
            results += not_run(rules, judged.killer)
        elif rules:
            results += await judge_jms(rules, options, suite, watcher)
    return Report(
        broker=broker,
        harness=HARNESS,
        began=began.isoformat(timespec="seconds"),
        seconds=time.monotonic() - start,
        options=_told(asked),
        results=results,
    )


def _jms_run(asked: Asked) -> JmsRun:
    """Return what the suite in Java needs, which is built. Raise CannotRun if it cannot be run."""
    command = java_command(asked.jms_class_path)
    ca, cert, key = tls_files(asked)
    return JmsRun(command, ca=ca, cert=cert, key=key, named=asked.case)


async def _identity(options: Options, *, needs_login: bool) -> BrokerIdentity:
    """Return what the broker says of itself.

    Raise CannotRun without a broker, and if it refuses the login that a case needs: such cases
    would all fail, after the pauses of a broker that delays logins, or not apply, with status 0.
    """
    try:
        refusal = await refused_login(options) if needs_login else ""
        if not refusal:
            return await identity_of(options)
    except OSError as error:
        raise CannotRun(f"{place_of(options)}: {str(error) or 'no answer'}") from None
    raise CannotRun(f"{place_of(options)}: {refusal}")


def _told(asked: Asked) -> dict[str, object]:
    """Return the options that were given, for the report, without what should not be in it."""
    usual = vars(Asked())
    return {
        name: True if name in GIVEN_ONLY else str(value) if isinstance(value, Path) else value
        for name, value in vars(asked).items()
        if name not in NOT_TOLD and value != usual[name]
    }
