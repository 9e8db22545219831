"""The file of expected decisions: what it may have, and when a decision is the expected one."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.security.cases_file import AccessCase, CasesFileError, read_cases
from broker.security.decision import COVER, Decision
from broker.security.question import AccessQuestion

CASE = """
[[case]]
verb = "send"
resource = "queue:a"
expect = "allow"
"""


def cases(folder: Path, text: str) -> list[AccessCase]:
    file = folder / "cases.toml"
    file.write_text(text)
    return read_cases(file)


def test_all_keys(tmp_path: Path) -> None:
    more = """
name = "a rare case"
user = "u"
roles = ["r", "s"]
mechanism = "EXTERNAL"
client_id = "c"
listener = "l"
from = "10.0.0.1"
tls = true
rule = "x"
"""
    (found,) = cases(tmp_path, CASE + more)
    assert found == AccessCase(
        name="a rare case",
        question=AccessQuestion(
            verb="send",
            user="u",
            roles=("r", "s"),
            mechanism="EXTERNAL",
            client_id="c",
            listener="l",
            host="10.0.0.1",
            is_tls=True,
        ),
        resource="queue:a",
        is_allowed=True,
        rule="x",
    )


MET = [
    pytest.param("", True, "orders", True, id="any rule"),
    pytest.param("orders", True, "orders", True, id="the rule"),
    pytest.param("orders", True, "others", False, id="another rule"),
    pytest.param("", False, "", False, id="another decision"),
]


@pytest.mark.parametrize(("rule", "allowed", "by", "expected"), MET)
def test_when_a_case_is_met(
    tmp_path: Path, rule: str, allowed: bool, by: str, expected: bool
) -> None:
    (found,) = cases(tmp_path, f'{CASE}rule = "{rule}"\n')
    assert found.is_met(Decision(allowed=allowed, rule=by, because=COVER)) is expected


WRONG = [
    pytest.param("", "there is no table [[case]]", id="empty"),
    pytest.param("case = 1", "there is no table [[case]]", id="no table"),
    pytest.param("x", "no TOML", id="no TOML"),
    pytest.param(f"[[rule]]\n{CASE}", "the file: unknown key 'rule'; only case", id="rules"),
    pytest.param(f"{CASE}users = 1", "case 1: unknown key 'users'; only verb", id="another key"),
    pytest.param(CASE.replace('"allow"', '"no"'), "only allow or deny", id="another decision"),
    pytest.param(CASE.replace("verb", "rule"), "case 1: verb is required", id="no verb"),
    pytest.param(f"{CASE}user = 1", "case 1: user is a text", id="a number"),
    pytest.param(f"{CASE}tls = 1", "case 1: tls is true or false", id="no flag"),
    pytest.param(f'{CASE}roles = "r"', "roles must be a list of texts", id="one role"),
]


@pytest.mark.parametrize(("text", "expected"), WRONG)
def test_wrong_files(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(CasesFileError) as raised:
        cases(tmp_path, text)
    assert expected in str(raised.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CasesFileError, match="No such file"):
        read_cases(tmp_path / "cases.toml")
