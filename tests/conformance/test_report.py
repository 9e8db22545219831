"""Reports: text, JUnit XML, JSON, and a page of HTML, which have the same content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from xml.etree import ElementTree as ET

import pytest

from tests.conformance.harness import Case, Result, Rule
from tests.conformance.html_report import write_html
from tests.conformance.identity import BrokerIdentity
from tests.conformance.report import by_clause, group_of, in_text, totals, write_junit
from tests.conformance.report_file import FORMAT, Report, ReportError, read_json, write_json
from tests.conformance.test_harness import opened
from tests.conformance.verdict import Kind, Verdict
from tests.interop.conftest import debian_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE: Final = "</script><script>document.title='taken'</script>&\x00"

BYTES_MAX: Final = 500_000
"""Maximum bytes of a page with 600 cases."""


def of(name: str, clause: str = "2.4", source: str = "core") -> Rule:
    return Case(name, source, clause, f"The rule {name} is kept.", opened)


RESULTS: Final = [
    Result(of("one"), Verdict.PASSED, 0.5, ["→ one"]),
    Result(of("two", "2.6.3"), Verdict.FAILED, 0.25, ["← <two>"], expected="a & b", got=HOSTILE),
    Result(
        of("three", "13.1", "jms"),
        *(Verdict.NOT_APPLICABLE, 0.25, []),
        reason="no such thing",
        kind=Kind.NOT_OFFERED,
    ),
    Result(of("four"), Verdict.FAILED, 0.5, ["← 4"], expected="c", got="d", known="issue 7"),
    Result(of("five"), Verdict.PASSED, 0.5, ["← 5"], known="issue 8"),
    Result(of("six"), Verdict.FAILED, 0.5, ["← 6"], expected="e", got="f", died=True),
    Result(of("seven", "2.10"), Verdict.NOT_RUN, 0.0, [], reason="the broker died in six"),
]

BROKER: Final = BrokerIdentity(
    "here:1",
    product="Example",
    version="1.2",
    container_id="c",
    properties={"product": "Example", "version": "1.2", "platform": "none"},
    capabilities=["ANONYMOUS-RELAY"],
)

REPORT: Final = Report(
    broker=BROKER,
    harness="amqp-conformance 0.0",
    began="2026-11-29T00:00:00+00:00",
    seconds=2.5,
    options={"clause": ["2.4"]},
    results=RESULTS,
)


def test_the_totals_tell_kinds_and_known_failures_apart() -> None:
    assert totals(RESULTS).splitlines() == [
        "7 cases: 2 passed, 3 failed (1 known), 1 not applicable (1 not offered), 1 not run",
        "passed, and expected to fail by --known: five",
        "the broker died in: six",
    ]
    assert totals(RESULTS[:1]) == "1 cases: 1 passed, 0 failed, 0 not applicable"


TEXTS: Final = [
    pytest.param(RESULTS[1], False, ["failed: core 2.6.3 two", "expected: a & b"], id="failed"),
    pytest.param(RESULTS[1], True, ["    ← <two>"], id="with frames"),
    pytest.param(
        RESULTS[2],
        False,
        ["not applicable (not offered): jms 13.1 three", "reason:   no such thing"],
        id="not applicable",
    ),
    pytest.param(
        RESULTS[3], False, ["failed (known): core 2.4 four", "known:    issue 7"], id="known"
    ),
    pytest.param(RESULTS[4], False, ["passed (expected to fail): core 2.4 five"], id="unexpected"),
    pytest.param(RESULTS[5], False, ["died:     the broker died in this case"], id="died"),
]


@pytest.mark.parametrize(("result", "frames", "expected"), TEXTS)
def test_a_result_in_text(result: Result, frames: bool, expected: list[str]) -> None:
    text = in_text(result, frames=frames)
    assert all(words in text for words in expected), text
    assert ("←" in text) is frames


GROUPS: Final = [
    pytest.param("core", "2.6.3", "2.6", id="a clause of core"),
    pytest.param("core", "1.6", "1.6", id="a clause of core with two numbers"),
    pytest.param("jms", "13.16", "jms:13", id="another source"),
    pytest.param("shared", "table", "shared:table", id="a name"),
]


@pytest.mark.parametrize(("source", "clause", "group"), GROUPS)
def test_rules_are_counted_by_clause(source: str, clause: str, group: str) -> None:
    assert group_of(of("x", clause, source)) == group


def test_clauses_are_in_the_order_of_their_numbers() -> None:
    counts = by_clause(RESULTS)
    assert list(counts) == ["2.4", "2.6", "2.10", "jms:13"]
    assert counts["2.4"] == {Verdict.PASSED: 2, Verdict.FAILED: 2}


def test_the_report_for_build_servers(tmp_path: Path) -> None:
    write_junit(REPORT, tmp_path / "report.xml")
    suite = ET.parse(tmp_path / "report.xml").getroot()
    numbers = [suite.get(name) for name in ("tests", "failures", "skipped", "errors")]
    assert numbers == ["7", "3", "2", "1"]
    told = {each.get("name"): each.get("value") for each in suite.findall("properties/property")}
    assert told["product"] == "Example"
    assert told["option.clause"] == "['2.4']"
    tests = {test.get("name"): test for test in suite.findall("testcase")}
    failure, skipped = tests["two"].find("failure"), tests["three"].find("skipped")
    assert failure is not None
    assert skipped is not None
    # XML cannot have a zero byte
    assert failure.get("message") == f"expected a & b; got {HOSTILE[:-1]}\\u{{0}}"
    assert skipped.get("type") == "not applicable (not offered)"
    assert "← <two>" in str(tests["two"].findtext("system-out"))
    assert tests["four"].find("skipped") is not None
    assert tests["five"].find("failure") is not None
    assert tests["seven"].find("error") is not None


def test_the_report_for_build_servers_is_xml_whatever_the_broker_says(tmp_path: Path) -> None:
    broker = replace(BROKER, product="Ex\x00ample", properties={"a\x01b": "c\udc80d"})
    write_junit(replace(REPORT, broker=broker), tmp_path / "report.xml")
    suite = ET.parse(tmp_path / "report.xml").getroot()
    assert suite.get("name") == "AMQP 1.0 conformance of Ex\\u{0}ample 1.2"
    told = {each.get("name"): each.get("value") for each in suite.findall("properties/property")}
    assert told["broker.a\\u{1}b"] == "c\\u{dc80}d"


def test_the_report_for_programs_has_everything(tmp_path: Path) -> None:
    write_json(REPORT, tmp_path / "report.json")
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["format"] == FORMAT
    assert content["cases"][2]["kind"] == "not offered"
    plain = [
        replace(
            each, case=Rule(*(vars(each.case)[name] for name in vars(of("x")) if name != "run"))
        )
        for each in RESULTS
    ]
    assert read_json(tmp_path / "report.json") == replace(REPORT, results=plain)


def test_reports_for_servers_and_programs_have_the_same_content(tmp_path: Path) -> None:
    write_json(REPORT, tmp_path / "report.json")
    write_junit(REPORT, tmp_path / "report.xml")
    tests = ET.parse(tmp_path / "report.xml").findall("testcase")
    cases = json.loads((tmp_path / "report.json").read_text())["cases"]
    for test, case in zip(tests, cases, strict=True):
        told = str(test.findtext("system-out"))
        words = [case[each] for each in ("verdict", "source", "clause", "sentence", "reason")]
        words += [case["expected"], case["known"], case["kind"] or "", *case["frames"]]
        assert [each for each in words if each not in told] == []
        assert test.get("name") == case["name"]


def test_reports_have_a_surrogate_alone_as_an_escape(tmp_path: Path) -> None:
    """Arguments that are no UTF-8 have such, and what the suite in Java tells may have them."""
    result = replace(RESULTS[1], got="\\\udc80", conversation=["← \udc80"])
    report = replace(REPORT, results=[result], options={"address": "\udc80"})
    write_json(report, tmp_path / "report.json")
    found = read_json(tmp_path / "report.json")
    assert (found.options, found.results[0].got) == (report.options, result.got)
    assert found.results[0].conversation == result.conversation
    write_html(report, tmp_path / "report.html")
    assert "address=&#56448;" in (tmp_path / "report.html").read_text()


NO_REPORTS: Final = [
    pytest.param(None, "cannot be read: No such file", id="no file"),
    pytest.param("<xml/>", "wrote: Expecting value: line 1 column 1", id="no JSON"),
    pytest.param("[]", "wrote: the report is no object", id="no object"),
    pytest.param("[" * 100_000, "wrote: it is nested too deeply", id="nested too deeply"),
    pytest.param('{"format": "other-2"}', "wrote: its format is 'other-2'", id="another form"),
    pytest.param(f'{{"format": "{FORMAT}"}}', "the report has no broker", id="half a report"),
]


@pytest.mark.parametrize(("text", "told"), NO_REPORTS)
def test_what_is_no_report(text: str | None, told: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ReportError, match=told):
        read_json(file)


OTHER_TYPES: Final[list[tuple[list[str | int], object, str]]] = [
    (["seconds"], "1", 'the report: seconds is "1"'),
    (["seconds"], True, "the report: seconds is true"),
    (["options"], [], "the report: options is []"),
    (["cases"], {}, "the report: cases is {}"),
    (["cases", 0], "one", "a case is no object"),
    (["cases", 0, "name"], 1, "a case: name is 1"),
    (["cases", 0, "clause"], None, "a case: clause is null"),
    (["cases", 0, "verdict"], [], "a case: verdict is []"),
    (["cases", 0, "seconds"], None, "a case: seconds is null"),
    (["cases", 0, "kind"], 7, "a case: kind is 7"),
    (["cases", 0, "died"], "yes", 'a case: died is "yes"'),
    (["cases", 0, "frames"], "→ one", r'a case: frames is "\u2192 one"'),
    (["cases", 0, "frames"], [1], "a case: frames has something else than texts"),
    (["broker"], "Example", 'the report: broker is "Example"'),
    (["broker", "product"], None, "broker: product is null"),
    (["broker", "properties"], {"a": 1}, "properties of the broker: a is 1"),
    (["broker", "capabilities"], [[]], "capabilities has something else than texts"),
]


@pytest.mark.parametrize(("place", "value", "told"), OTHER_TYPES)
def test_a_report_with_another_type_is_none(
    place: list[str | int], value: object, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    write_json(REPORT, file)
    content = json.loads(file.read_text())
    held = content
    for name in place[:-1]:
        held = held[name]
    held[place[-1]] = value
    file.write_text(json.dumps(content))
    with pytest.raises(ReportError, match="it is no report that --json wrote: ") as raised:
        read_json(file)
    assert str(raised.value).endswith(told)


# -- HTML


def many() -> list[Result]:
    """Return 600 results with frames as a run has them, each with names of its own."""
    frames = [
        f"→ channel 0 attach(name='sender-{at}', handle={at}, role=false, snd-settle-mode=2,"
        f" source=source(address='c{at}'), target=target(address='conformance.{at:012x}'))"
        for at in range(20)
    ]
    return [
        Result(
            of(f"a_rule_of_a_usual_length_with_the_number_{at}", f"2.{at % 7}.{at % 5}"),
            Verdict.FAILED if at % 10 == 0 else Verdict.PASSED,
            0.1,
            [line.replace("sender", f"sender-{at * 7919:x}") for line in frames],
            expected="a detach with the error amqp:not-found",
            got="the end of the stream",
        )
        for at in range(600)
    ]


def test_the_page_for_people(tmp_path: Path) -> None:
    write_html(REPORT, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "AMQP 1.0 conformance of Example 1.2" in page
    assert "platform none" in page
    assert "not applicable (not offered)" in page
    assert "no such thing" in page
    # frames are compressed
    assert "← &lt;two&gt;" not in page
    assert "src=" not in page
    assert "href=" not in page


def test_the_page_of_600_cases_is_small(tmp_path: Path) -> None:
    write_html(replace(REPORT, results=many()), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < BYTES_MAX


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    yield from debian_browser()


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_in_a_browser(
    tmp_path: Path, chromium: Browser, theme: Literal["light", "dark"]
) -> None:
    """Opened from the disk; a broker's text is no script, frames come when they are opened."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    write_html(REPORT, tmp_path / "report.html")
    page = chromium.new_page(color_scheme=theme)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "report.html").as_uri())
    check_filters(page)
    page.select_option("select[name=verdict]", "")
    row = page.locator("tr", has_text="The rule two is kept.")
    assert row.locator("pre").text_content() == ""
    row.locator("summary").click()
    row.locator("pre").filter(has_text="← <two>").wait_for()
    assert page.title() == "AMQP 1.0 conformance of Example 1.2"
    assert [each["id"] for each in axe.run(page).response["violations"]] == []
    assert complaints == []
    page.close()


def check_filters(page: Page) -> None:
    """Check what each filter leaves of the seven cases."""
    shown = page.locator("#shown")
    assert shown.text_content() == "7 of 7 cases"
    page.select_option("select[name=verdict]", "failed")
    assert shown.text_content() == "3 of 7 cases"
    page.fill("input[name=words]", "RULE TWO")
    assert page.locator("#cases tbody tr:visible .name").all_text_contents() == ["two"]
    page.fill("input[name=words]", "")
    page.select_option("select[name=verdict]", "")
    page.get_by_role("button", name="jms:13").click()
    assert page.locator("#cases tbody tr:visible .name").all_text_contents() == ["three"]
    page.select_option("select[name=group]", "")
