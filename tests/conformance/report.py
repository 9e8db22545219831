"""The results of a run in text and in JUnit XML; totals by verdict and by clause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from .harness import CORE, Result, Rule
from .known import is_unexpected_failure, is_unexpected_pass
from .report_file import Report
from .verdict import Verdict

NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot have, not even escaped."""


def totals(results: list[Result]) -> str:
    """Return the number of cases of each verdict and kind, and the unexpected passes by name."""
    verdicts = {result.verdict for result in results}
    told = [
        total(results, verdict, verdict.value)
        for verdict in Verdict
        if verdict is not Verdict.NOT_RUN or verdict in verdicts
    ]
    lines = [f"{len(results)} cases: {', '.join(told)}"]
    if passed := [each.case.name for each in results if is_unexpected_pass(each)]:
        lines.append(f"passed, and expected to fail by --known: {', '.join(passed)}")
    if killed := [each.case.name for each in results if each.died]:
        lines.append(f"the broker died in: {', '.join(killed)}")
    return "\n".join(lines)


def total(results: list[Result], verdict: Verdict, *words: str) -> str:
    """Return the number of cases of a verdict, `words`, and in brackets those of its parts.

    The parts are the known failures, and the kinds of not applicable.
    """
    chosen = [result for result in results if result.verdict is verdict]
    parts = Counter(
        result.kind.value if result.kind is not None else "known"
        for result in chosen
        if result.kind is not None or (verdict is Verdict.FAILED and result.known)
    )
    told = ", ".join(f"{count} {name}" for name, count in sorted(parts.items()))
    return " ".join([str(len(chosen)), *words, *([f"({told})"] if told else [])])


def group_of(rule: Rule) -> str:
    """Return the clause by which totals are made: 2.6 for 2.6.3 of core, jms:13 for jms 13.16."""
    parts = rule.clause.split(".")
    if rule.source == CORE:
        return ".".join(parts[:2])
    return f"{rule.source}:{parts[0]}"


def by_clause(results: list[Result]) -> Mapping[str, Counter[Verdict]]:
    """Return the verdicts by clause, core first, clauses in the order of their numbers."""
    found: dict[str, Counter[Verdict]] = {}
    for result in results:
        found.setdefault(group_of(result.case), Counter())[result.verdict] += 1
    return {name: found[name] for name in sorted(found, key=_order)}


def _order(group: str) -> tuple[bool, str, list[int], str]:
    source, _, number = group.rpartition(":")
    numbers = [int(part) for part in number.split(".") if part.isdigit()]
    return bool(source), source, numbers, number


def verdict_of(result: Result) -> str:
    """Return the verdict in words, with the kind of one that is not applicable."""
    words = result.verdict.value
    if result.kind is not None:
        words += f" ({result.kind.value})"
    if result.known:
        words += " (known)" if result.verdict is Verdict.FAILED else " (expected to fail)"
    return words


def reasons_of(result: Result) -> list[tuple[str, str]]:
    """Return all that explains a verdict besides the frames: pairs of a word and a text."""
    pairs: list[tuple[str, str]] = []
    if result.verdict is Verdict.FAILED:
        pairs += [("expected", result.expected), ("got", result.got)]
    if result.died:
        pairs.append(("died", "the broker died in this case"))
    if result.reason:
        pairs.append(("reason", result.reason))
    if result.known:
        pairs.append(("known", result.known))
    return pairs


def in_text(result: Result, *, frames: bool) -> str:
    """Return the verdict on one case and its reason, and with `frames` the conversation."""
    case = result.case
    lines = [f"{verdict_of(result)}: {case.source} {case.clause} {case.name}"]
    lines.append(f"  {case.sentence}")
    lines += [f"  {f'{word}:':10}{text}" for word, text in reasons_of(result)]
    if frames:
        lines += [f"    {line}" for line in result.conversation]
    return "\n".join(lines)


def write_junit(report: Report, file: Path) -> None:
    """Write a JUnit test suite with a test per case.

    A case that is not applicable is skipped, as is a known failure; an unexpected pass is a
    failure, and a case that was not run an error.
    """
    results = report.results
    suite = Element("testsuite", name=_in_xml(report.title), timestamp=report.began, errors="0")
    suite.set("tests", str(len(results)))
    suite.set("time", f"{report.seconds:.3f}")
    properties = SubElement(suite, "properties")
    for name, value in _properties(report).items():
        SubElement(properties, "property", name=_in_xml(name), value=_in_xml(str(value)))
    for result in results:
        _add_test(suite, result)
    for attribute, tag in (("failures", "failure"), ("skipped", "skipped"), ("errors", "error")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    tree = ElementTree(suite)
    indent(tree)
    tree.write(file, encoding="utf-8", xml_declaration=True)


def _properties(report: Report) -> dict[str, object]:
    broker = report.broker
    return {
        "harness": report.harness,
        "broker": broker.place,
        "product": broker.product,
        "version": broker.version,
        "container-id": broker.container_id,
        "capabilities": " ".join(broker.capabilities),
        **{f"broker.{name}": value for name, value in broker.properties.items()},
        **{f"option.{name}": value for name, value in report.options.items()},
    }


def _add_test(suite: Element, result: Result) -> None:
    case = result.case
    test = SubElement(
        suite,
        "testcase",
        classname=f"{case.source} {case.clause}".replace(".", "_"),
        name=case.name,
        time=f"{result.seconds:.3f}",
    )
    message = _in_xml("; ".join(f"{word} {text}" for word, text in reasons_of(result)))
    if is_unexpected_failure(result) or is_unexpected_pass(result):
        SubElement(test, "failure", message=message, type=verdict_of(result))
    elif result.verdict is Verdict.NOT_RUN:
        SubElement(test, "error", message=message, type=verdict_of(result))
    elif result.verdict is not Verdict.PASSED:
        SubElement(test, "skipped", message=message, type=verdict_of(result))
    SubElement(test, "system-out").text = _in_xml(in_text(result, frames=True))


def _in_xml(text: str) -> str:
    """Return `text` with the code points in braces of characters that XML cannot have."""
    return NOT_XML.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)
