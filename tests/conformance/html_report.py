"""The report of one run for people: a page of HTML with filters, and frames on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from .harness import Result
from .html_page import COUNTED, HtmlPage, add_choice, add_counts, add_verdict, slug, slugs_of
from .report import by_clause, group_of
from .report_file import Report
from .verdict import Kind, Verdict

NUMBER: Final = "number"


def write_html(report: Report, file: Path) -> None:
    """Write one page that needs no other files."""
    page = HtmlPage(report.title)
    broker = report.broker
    told = ", ".join(f"{name} {value}" for name, value in broker.properties.items())
    page.facts(
        f"Broker at {broker.place}, container {broker.container_id or 'unknown'}"
        f"{f'; its open says: {told}' if told else ''}",
        f"{report.harness}, {report.began}, {report.seconds:.0f} s"
        f"{''.join(f', {name}={value}' for name, value in report.options.items())}",
    )
    counts = _counts(report.results)
    page.totals(counts, {name: slug(name.partition(" (")[0]) for name in counts})
    page.heading("Totals by clause")
    _add_totals(page, report.results)
    page.heading("Cases")
    clauses = by_clause(report.results)
    page.filters(clauses, _choices(report.results))
    body = page.table("cases", (("clause", ""), ("rule", ""), ("verdict", "")))
    for result in report.results:
        _add_row(page, body, result)
    page.write(file)


def _counts(results: list[Result]) -> dict[str, int]:
    """Return the numbers in the head of the page, by their words."""
    verdicts = Counter(result.verdict for result in results)
    counts = {"cases": len(results), **{each.value: verdicts[each] for each in COUNTED}}
    for kind in Kind:
        number = sum(result.kind is kind for result in results)
        if number:
            counts[f"not applicable ({kind.value})"] = number
    if verdicts[Verdict.NOT_RUN]:
        counts[Verdict.NOT_RUN.value] = verdicts[Verdict.NOT_RUN]
    known = sum(bool(result.known) for result in results)
    return {**counts, "expected to fail": known} if known else counts


def _choices(results: list[Result]) -> Mapping[str, str]:
    """Return the values of the verdict's filter, with their words and numbers."""
    numbers = Counter(value for result in results for value in slugs_of(result))
    return {value: f"{value.replace('-', ' ')} ({count})" for value, count in numbers.items()}


def _add_totals(page: HtmlPage, results: list[Result]) -> None:
    verdicts = [*COUNTED, Verdict.NOT_RUN]
    columns = [("clause", ""), ("cases", NUMBER), *((each.value, NUMBER) for each in verdicts)]
    body = page.table("clauses", columns)
    for group, counts in by_clause(results).items():
        row = SubElement(body, "tr")
        add_choice(row, group)
        SubElement(row, "td", {"class": NUMBER}).text = str(counts.total())
        add_counts(row, counts, verdicts)


def _add_row(page: HtmlPage, body: Element, result: Result) -> None:
    case = result.case
    group, verdict = group_of(case), " ".join(slugs_of(result))
    row = SubElement(body, "tr", {"data-group": group, "data-verdict": verdict})
    SubElement(row, "td", {"class": "clause"}).text = f"{case.source} {case.clause}"
    rule = SubElement(row, "td")
    SubElement(rule, "div").text = case.sentence
    SubElement(rule, "div", {"class": "name"}).text = case.name
    page.add_reasons(rule, result)
    page.add_frames(rule, result.conversation)
    add_verdict(row, result)
