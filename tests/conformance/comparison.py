"""The results of several brokers side by side: in text, as a page of HTML, and in Markdown."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from .asked import CannotRun
from .harness import Result, Rule
from .html_page import HtmlPage, add_choice, add_verdict, slugs_of
from .outputs import check_outputs, write_outputs
from .report import by_clause, group_of, reasons_of, total, totals, verdict_of
from .report_file import Report, ReportError, read_json
from .verdict import Verdict

EXIT_CANNOT: Final = 2

ABSENT: Final = "not chosen"
"""The verdict of a broker on which a case was not among those chosen."""

DIFFERS: Final = "differs"
"""The value of the verdict's filter for rules on which brokers differ."""

FRAMES_TOLD: Final = 12
"""Maximum frames of a failure in Markdown: the last ones count."""

BACKTICKS: Final = re.compile("`+")

MARKED: Final = re.compile(r"[\\`*_\[\]<>|~#&]")
"""Characters that mark text in Markdown."""

COLUMN_VERDICTS: Final = (Verdict.PASSED, Verdict.FAILED, Verdict.NOT_APPLICABLE)


@dataclass(frozen=True)
class Comparison:
    """Reports by the name of their broker, and all of their rules in the order of the first."""

    reports: Mapping[str, Report]
    rules: Sequence[Rule]

    def results(self, rule: Rule) -> Mapping[str, Result]:
        """Return the results of the case of that name, by broker."""
        return {
            broker: result
            for broker, results in self._by_name.items()
            if (result := results.get(rule.name)) is not None
        }

    @property
    def _by_name(self) -> Mapping[str, Mapping[str, Result]]:
        return {
            broker: {result.case.name: result for result in report.results}
            for broker, report in self.reports.items()
        }

    def failures(self, broker: str) -> Iterator[Result]:
        """Yield the failures of a broker by clause."""
        results = self.reports[broker].results
        order = {group: at for at, group in enumerate(by_clause(results))}
        for result in sorted(results, key=lambda each: order[group_of(each.case)]):
            if result.verdict is Verdict.FAILED:
                yield result


def compare(files: Sequence[Path], *, html: Path | None, markdown: Path | None) -> int:
    """Write the pages that are asked for, or print the comparison; return the exit status."""
    try:
        compared = comparison_of([(file, read_json(file)) for file in files])
        check_outputs((html, markdown), read=files)
    except (ReportError, CannotRun) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return EXIT_CANNOT
    errors = write_outputs(
        (
            (html, partial(write_html_comparison, compared)),
            (markdown, partial(write_markdown, compared)),
        )
    )
    for each in errors:
        print(f"conformance: {each}", file=sys.stderr)
    if html is None and markdown is None:
        print(in_lines(compared))
    return EXIT_CANNOT if errors else 0


def comparison_of(reports: Sequence[tuple[Path, Report]]) -> Comparison:
    """Return the comparison of reports; brokers of one name are told apart by their files."""
    names = Counter(report.broker.name for _, report in reports)
    by_broker: dict[str, Report] = {}
    for file, report in reports:
        name = report.broker.name
        if names[name] > 1:
            name = f"{name} ({file.name})"
        if name in by_broker:
            raise ReportError(f"{file}: another report has the name {name}: rename the file")
        by_broker[name] = report
    rules: dict[str, Rule] = {}
    for report in by_broker.values():
        for result in report.results:
            rules.setdefault(result.case.name, result.case)
    return Comparison(by_broker, list(rules.values()))


def in_lines(compared: Comparison) -> str:
    """Return the totals of each broker, and each rule on which they differ or one fails."""
    width = max(len(broker) for broker in compared.reports)
    lines = [
        f"{broker:{width}}  {totals(report.results).splitlines()[0]}"
        for broker, report in compared.reports.items()
    ]
    for rule in compared.rules:
        results = compared.results(rule)
        if _is_notable(compared, results):
            lines += ["", f"{rule.source} {rule.clause} {rule.name}", f"  {rule.sentence}"]
            for broker in compared.reports:
                verdict = verdict_of(results[broker]) if broker in results else ABSENT
                lines.append(f"  {broker:{width}}  {verdict}")
    return "\n".join(lines)


def _is_notable(compared: Comparison, results: Mapping[str, Result]) -> bool:
    return differs(compared, results) or any(
        each.verdict is Verdict.FAILED for each in results.values()
    )


def differs(compared: Comparison, results: Mapping[str, Result]) -> bool:
    """Return whether brokers have different verdicts on a rule."""
    verdicts = {each.verdict for each in results.values()}
    return len(verdicts) > 1 or len(results) < len(compared.reports)


# -- HTML


def write_html_comparison(compared: Comparison, file: Path) -> None:
    """Write one page: totals by clause, and all rules with the verdict of each broker."""
    page = HtmlPage("AMQP 1.0 conformance compared")
    for broker, report in compared.reports.items():
        told = totals(report.results).splitlines()[0]
        page.facts(f"{broker}: {told}; {report.harness}, {report.began}")
    page.heading("Passed, failed and not applicable by clause")
    _add_clauses(page, compared)
    page.heading("Rules")
    page.filters(_groups(compared), _choices(compared))
    brokers = ((broker, "broker") for broker in compared.reports)
    body = page.table("matrix", (("clause", ""), ("rule", ""), *brokers))
    for rule in compared.rules:
        _add_rule(page, body, rule, compared)
    page.write(file)


def _groups(compared: Comparison) -> list[str]:
    everything = [result for report in compared.reports.values() for result in report.results]
    return list(by_clause(everything))


def _choices(compared: Comparison) -> dict[str, str]:
    """Return the values of the verdict's filter, with their words and numbers."""
    found = Counter(
        value for rule in compared.rules for value in _values(compared, compared.results(rule))
    )
    words = {_failed_at(at): f"failed: {broker}" for at, broker in enumerate(compared.reports)}
    return {
        value: f"{words.get(value, value.replace('-', ' '))} ({count})"
        for value, count in found.items()
    }


def _values(compared: Comparison, results: Mapping[str, Result]) -> list[str]:
    """Return the values of the verdict's filter that fit a rule: those of any broker."""
    values = {value for result in results.values() for value in slugs_of(result)}
    failed = [
        _failed_at(at)
        for at, broker in enumerate(compared.reports)
        if broker in results and results[broker].verdict is Verdict.FAILED
    ]
    return [*sorted(values), *failed, *([DIFFERS] if differs(compared, results) else [])]


def _failed_at(at: int) -> str:
    """Return the value of the verdict's filter for failures of one broker, by its number."""
    return f"failed-{at}"


def _add_clauses(page: HtmlPage, compared: Comparison) -> None:
    columns = [("clause", ""), *((broker, "number") for broker in compared.reports)]
    body = page.table("clauses", columns)
    counts = {broker: by_clause(report.results) for broker, report in compared.reports.items()}
    for group in _groups(compared):
        row = SubElement(body, "tr")
        add_choice(row, group)
        for broker in compared.reports:
            text = _counted(counts[broker].get(group, Counter()))
            SubElement(row, "td", {"class": "number"}).text = text


def _counted(counts: Counter[Verdict]) -> str:
    return " / ".join(str(counts[verdict]) for verdict in COLUMN_VERDICTS)


def _add_rule(page: HtmlPage, body: Element, rule: Rule, compared: Comparison) -> None:
    results = compared.results(rule)
    values = " ".join(_values(compared, results))
    row = SubElement(body, "tr", {"data-group": group_of(rule), "data-verdict": values})
    SubElement(row, "td", {"class": "clause"}).text = f"{rule.source} {rule.clause}"
    place = SubElement(row, "td")
    SubElement(place, "div").text = rule.sentence
    SubElement(place, "div", {"class": "name"}).text = rule.name
    for broker in compared.reports:
        result = results.get(broker)
        if result is None:
            SubElement(row, "td").text = ABSENT
            continue
        add_verdict(row, result)
        if result.verdict is Verdict.FAILED:
            SubElement(place, "div", {"class": "broker"}).text = broker
            page.add_reasons(place, result)
            page.add_frames(place, result.conversation, f"frames with {broker}")


# -- Markdown


def write_markdown(compared: Comparison, file: Path) -> None:
    """Write `in_markdown` to a file; a surrogate alone, which UTF-8 does not have, is escaped."""
    file.write_text(in_markdown(compared), encoding="utf-8", errors="backslashreplace")


def in_markdown(compared: Comparison) -> str:
    """Return the totals, the totals by clause, and each failure with its last frames."""
    names = {broker: _plain(broker) for broker in compared.reports}
    lines = _row("broker", "cases", *(each.value for each in COLUMN_VERDICTS))
    lines += _rule(2 + len(COLUMN_VERDICTS))
    for broker, report in compared.reports.items():
        numbers = [total(report.results, verdict) for verdict in COLUMN_VERDICTS]
        lines += _row(names[broker], str(len(report.results)), *numbers)
    lines += ["", "Passed / failed / not applicable by clause:", ""]
    lines += _row("clause", *names.values()) + _rule(1 + len(compared.reports))
    by_broker = {broker: by_clause(each.results) for broker, each in compared.reports.items()}
    for group in _groups(compared):
        counted = [_counted(by_broker[each].get(group, Counter())) for each in compared.reports]
        lines += _row(group, *counted)
    for broker in compared.reports:
        lines += ["", f"## Failures of {names[broker]}", ""]
        failures = list(compared.failures(broker))
        lines += [] if failures else ["None."]
        for result in failures:
            lines += [*_failure(result), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _row(*cells: str) -> list[str]:
    return [f"| {' | '.join(cells)} |"]


def _plain(name: str) -> str:
    """Return the name of a broker in one line, without marks of Markdown in it."""
    return MARKED.sub(r"\\\g<0>", " ".join(name.split()))


def _rule(columns: int) -> list[str]:
    return ["|" + "---|" * columns]


def _failure(result: Result) -> list[str]:
    """Return a failure as a heading and a block: the rule, why it failed, and the last frames."""
    case, frames = result.case, result.conversation
    told = [case.sentence, *(f"{word}: {text}" for word, text in reasons_of(result)), ""]
    if len(frames) > FRAMES_TOLD:
        told.append(f"… {len(frames) - FRAMES_TOLD} frames before")
    told += frames[-FRAMES_TOLD:]
    text = "\n".join(told).rstrip("\n")
    # longer than any fence that a broker may have sent
    fence = "`" * max(3, 1 + max(map(len, BACKTICKS.findall(text)), default=0))
    return [f"### {case.source} {case.clause}: `{case.name}`", "", f"{fence}text", text, fence]
