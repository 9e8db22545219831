"""The results of a run, for people and for build servers: text, JUnit XML, a page of HTML."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from .harness import Result
from .verdict import Verdict

STYLE: Final = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }
table { border-collapse: collapse; width: 100% }
td, th { border-top: 1px solid #ccc; padding: .3em .6em; text-align: left; vertical-align: top }
pre { overflow-x: auto; font-size: 12px; background: #f4f4f4; padding: .6em }
.passed { color: #17692e } .failed { color: #b00020; font-weight: bold }
.not-applicable { color: #666 }
"""


def totals(results: list[Result]) -> str:
    """Return the number of cases of each verdict, in one line."""
    counts = Counter(result.verdict for result in results)
    told = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict]
    return f"{len(results)} cases: {', '.join(told)}"


def in_text(result: Result, *, frames: bool) -> str:
    """Return the verdict on one case and its reason, and with `frames` the conversation."""
    case = result.case
    lines = [f"{result.verdict.value}: {case.source} {case.clause} {case.name}"]
    lines.append(f"  {case.sentence}")
    if result.verdict is Verdict.FAILED:
        lines += [f"  expected: {result.expected}", f"  got:      {result.got}"]
    if result.verdict is Verdict.NOT_APPLICABLE:
        lines.append(f"  {result.reason}")
    if frames:
        lines += [f"    {line}" for line in result.conversation]
    return "\n".join(lines)


def write_junit(results: list[Result], file: Path, *, broker: str) -> None:
    """Write a JUnit test suite with a test per case; a case that is not applicable is skipped."""
    counts = Counter(result.verdict for result in results)
    suite = Element(
        "testsuite",
        name=f"AMQP 1.0 conformance of {broker}",
        tests=str(len(results)),
        failures=str(counts[Verdict.FAILED]),
        skipped=str(counts[Verdict.NOT_APPLICABLE]),
        errors="0",
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        case = result.case
        test = SubElement(
            suite,
            "testcase",
            classname=f"{case.source} {case.clause}".replace(".", "_"),
            name=case.name,
            time=f"{result.seconds:.3f}",
        )
        if result.verdict is Verdict.FAILED:
            message = f"expected {result.expected}, got {result.got}"
            failure = SubElement(test, "failure", message=message)
            failure.text = in_text(result, frames=True)
        if result.verdict is Verdict.NOT_APPLICABLE:
            SubElement(test, "skipped", message=result.reason)
    tree = ElementTree(suite)
    indent(tree)
    tree.write(file, encoding="utf-8", xml_declaration=True)


def write_html(results: list[Result], file: Path, *, broker: str) -> None:
    """Write one page that needs no other files."""
    page = Element("html", lang="en")
    head = SubElement(page, "head")
    SubElement(head, "meta", charset="utf-8")
    title = f"AMQP 1.0 conformance of {broker}"
    SubElement(head, "title").text = title
    SubElement(head, "style").text = STYLE
    body = SubElement(page, "body")
    SubElement(body, "h1").text = title
    SubElement(body, "p").text = totals(results)
    table = SubElement(body, "table")
    row = SubElement(table, "tr")
    for name in ("source", "clause", "case", "verdict"):
        SubElement(row, "th").text = name
    for result in results:
        _add_row(table, result)
    with file.open("wb") as out:
        out.write(b"<!doctype html>\n")
        ElementTree(page).write(out, encoding="utf-8", method="html")


def _add_row(table: Element, result: Result) -> None:
    case = result.case
    row = SubElement(table, "tr")
    SubElement(row, "td").text = case.source
    SubElement(row, "td").text = case.clause
    told = SubElement(row, "td")
    details = SubElement(told, "details")
    SubElement(details, "summary").text = case.sentence
    SubElement(details, "pre").text = "\n".join([case.name, *result.conversation])
    if result.verdict is Verdict.FAILED:
        SubElement(told, "div").text = f"expected {result.expected}"
        SubElement(told, "div").text = f"got {result.got}"
    if result.reason:
        SubElement(told, "div").text = result.reason
    kind = result.verdict.value.replace(" ", "-")
    SubElement(row, "td", {"class": kind}).text = result.verdict.value
