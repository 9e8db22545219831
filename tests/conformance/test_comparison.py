"""Several brokers side by side: which rules are told, in text, HTML and Markdown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.comparison import compare, comparison_of, in_lines, in_markdown
from tests.conformance.harness import Result
from tests.conformance.report_file import Report, write_json
from tests.conformance.test_report import BROKER, REPORT, of
from tests.conformance.verdict import Kind, Verdict

FENCE: Final = "```"

OURS: Final = [
    Result(of("kept"), Verdict.PASSED, 0.1, []),
    Result(of("broken", "2.6.3"), Verdict.PASSED, 0.1, []),
    Result(of("absent"), Verdict.PASSED, 0.1, []),
]
THEIRS: Final = [
    Result(of("kept"), Verdict.PASSED, 0.1, ["→ all is well"]),
    Result(
        of("broken", "2.6.3"),
        *(Verdict.FAILED, 0.1, [f"frame {number}" for number in range(20)]),
        expected="a detach",
        got=f"{FENCE} and no | detach",
        known="the handle is not looked up: see 2.6.3",
    ),
    Result(of("alone"), Verdict.NOT_APPLICABLE, 0.1, [], reason="no", kind=Kind.DID_NOT_HAPPEN),
]


def reports() -> list[tuple[Path, Report]]:
    other = replace(BROKER, product="Other", version="9")
    return [
        (Path("ours.json"), replace(REPORT, results=OURS)),
        (Path("theirs.json"), replace(REPORT, broker=other, results=THEIRS)),
    ]


def test_rules_on_which_brokers_differ_are_told() -> None:
    text = in_lines(comparison_of(reports()))
    assert "Example 1.2  3 cases: 3 passed, 0 failed, 0 not applicable" in text
    assert "core 2.6.3 broken" in text
    assert "  Other 9      failed (known)" in text
    assert "core 2.4 kept" not in text
    assert "  Example 1.2  not chosen" in text


def test_runs_of_one_broker_are_told_apart_by_their_files() -> None:
    both = [(Path("a/one.json"), REPORT), (Path("b/two.json"), REPORT)]
    assert list(comparison_of(both).reports) == [
        "Example 1.2 (one.json)",
        "Example 1.2 (two.json)",
    ]


def test_the_page_in_markdown_has_each_failure_with_its_last_frames() -> None:
    page = in_markdown(comparison_of(reports()))
    assert "| Other 9 | 3 | 1 | 1 (1 known) | 1 (1 did not happen) |" in page
    assert "| 2.6 | 1 / 0 / 0 | 0 / 1 / 0 |" in page
    assert "## Failures of Example 1.2\n\nNone." in page
    assert "### core 2.6.3: `broken`" in page
    assert "known: the handle is not looked up: see 2.6.3" in page
    assert "… 8 frames before\nframe 8\n" in page
    # the broker's text does not end the block
    assert page.count(f"\n{FENCE}`text\n") == 1
    assert page.endswith(f"frame 19\n{FENCE}`\n")


FENCES: Final = [
    pytest.param("no fence", 3, id="none"),
    pytest.param("``", 3, id="shorter than a fence"),
    pytest.param("`" * 7, 8, id="a long one"),
    pytest.param("``` ``` ````", 5, id="several"),
]


@pytest.mark.parametrize(("got", "length"), FENCES)
def test_no_text_of_a_broker_ends_its_block(got: str, length: int) -> None:
    failed = Result(of("broken"), Verdict.FAILED, 0.1, ["frame"], expected="a detach", got=got)
    page = in_markdown(comparison_of([(Path("x.json"), replace(REPORT, results=[failed]))]))
    assert f"\n{'`' * length}text\nThe rule" in page
    assert page.endswith(f"\nframe\n{'`' * length}\n")


def test_the_name_of_a_broker_is_plain_in_markdown() -> None:
    broker = replace(BROKER, product="[x](http://h)\n# <b>", version="1|2")
    page = in_markdown(comparison_of([(Path("x.json"), replace(REPORT, broker=broker))]))
    name = r"\[x\](http://h) \# \<b\> 1\|2"
    assert f"\n| {name} | 7 |" in page
    assert f"\n| clause | {name} |\n" in page
    assert f"\n## Failures of {name}\n" in page


def test_the_command_writes_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / file for file, _ in reports()]
    for file, (_, report) in zip(files, reports(), strict=True):
        write_json(report, file)
    html, markdown = tmp_path / "page.html", tmp_path / "page.md"
    assert compare(files, html=html, markdown=markdown) == 0
    assert capsys.readouterr().out == ""
    page = html.read_text()
    assert "frames with Other 9" in page
    assert "differs (3)" in page
    assert "failed: Other 9 (1)" in page
    assert markdown.read_text() == in_markdown(comparison_of(reports()))
    assert compare(files, html=None, markdown=None) == 0
    assert "core 2.6.3 broken" in capsys.readouterr().out


OUTPUTS: Final = [
    pytest.param("no/page", "there is no folder", id="no folder"),
    pytest.param(".", "it is a folder", id="a folder"),
    pytest.param("/dev/full", "it cannot be written: No space", id="a full disk"),
]


@pytest.mark.parametrize("option", ["html", "markdown"])
@pytest.mark.parametrize(("page", "told"), OUTPUTS)
def test_a_page_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], page: str, told: str, option: str
) -> None:
    file = tmp_path / "report.json"
    write_json(REPORT, file)
    pages: dict[str, Path | None] = {"html": None, "markdown": None, option: tmp_path / page}
    assert compare([file], **pages) == 2
    assert f"{tmp_path / page}: {told}" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["html", "markdown"])
def test_no_page_takes_the_place_of_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    file = tmp_path / "report.json"
    write_json(REPORT, file)
    before = file.read_bytes()
    pages: dict[str, Path | None] = {"html": None, "markdown": None, option: file}
    assert compare([file], **pages) == 2
    assert "it is one of the reports to be read" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_a_file_that_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare([tmp_path / "missing.json"], html=None, markdown=None) == 2
    assert "missing.json: it cannot be read" in capsys.readouterr().err
