"""The table of MUSTs is complete: each line has a case or a reason, each case has a line."""

import re
from pathlib import Path

import pytest

from tests.conformance.harness import all_cases
from tests.conformance.musts import VERDICTS, all_musts, must_of

NAMES = {case.name for case in all_cases()}
MUSTS = all_musts()


def test_there_are_musts_and_cases() -> None:
    assert len(MUSTS) > 50
    assert len(NAMES) > 50


def test_every_case_that_is_named_exists() -> None:
    unknown = [(must.place, name) for must in MUSTS for name in must.cases if name not in NAMES]
    assert unknown == []


def test_no_case_is_left_out() -> None:
    named = {name for must in MUSTS for name in must.cases}
    assert sorted(NAMES - named) == []


def test_a_rule_of_core_without_a_case_says_whether_it_is_kept() -> None:
    """The page of core's rules (`docs/conformance/core.md`) is made from these words."""
    silent = [
        must.place
        for must in MUSTS
        if re.match(r"core_[2-5]", must.place)
        and re.match(r"[2-5]\.", must.clause)
        and not must.cases
        and not must.verdict
    ]
    assert silent == [], f"begin the reason with one of {', '.join(VERDICTS)} and a colon"


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [
        pytest.param("kept: so", "kept", id="kept"),
        pytest.param("not kept: why", "not kept", id="not kept"),
        pytest.param("kept by all", "", id="no colon"),
        pytest.param("forgotten: why", "", id="another word"),
    ],
)
def test_a_reason_may_begin_with_a_verdict(reason: str, verdict: str) -> None:
    must = must_of("here", f"| 2.2 | (SHOULD) answer | \N{EN DASH} {reason} |")
    assert must.verdict == verdict
    assert must.is_should


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in all_cases()]
    assert sorted(names) == sorted(set(names))


def test_a_line_tells_its_cases() -> None:
    must = must_of("here", "| 2.2 | answer | `one`, `two` |")
    assert (must.clause, must.words, must.cases, must.reason) == (
        "2.2",
        "answer",
        ["one", "two"],
        "",
    )


def test_a_line_may_tell_why_it_has_none() -> None:
    must = must_of("here", "| 2.2 | answer | \N{EN DASH} nobody sees it, not even `one` |")
    assert (must.cases, must.reason) == ([], "nobody sees it, not even `one`")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("| 2.2 | answer |  |", id="an empty cell"),
        pytest.param("| 2.2 | answer |", id="two cells"),
        pytest.param("| 2.2 | answer | later |", id="neither a case nor a reason"),
        pytest.param("| 2.2 | answer | - |", id="a dash alone"),
    ],
)
def test_a_line_without_case_or_reason_is_refused(line: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="here:1"):
        must_of("here:1", line)
    (tmp_path / "here").mkdir()
    (tmp_path / "here.md").write_text(line)
    with pytest.raises(ValueError, match=r"here\.md:1"):
        all_musts(tmp_path)
