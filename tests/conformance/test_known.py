"""The file of expected failures: its form, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.conformance.asked import CannotRun
from tests.conformance.known import known_failures

NAMES: Final = ("one", "two")

WRONG: Final = [
    pytest.param("[failures", "no TOML", id="no TOML"),
    pytest.param("", "one table", id="no table"),
    pytest.param("[failures]\n[other]\n", "nothing else", id="another table"),
    pytest.param("[failures]\nthree = 'x'\n", "no case is called three", id="an unknown case"),
    pytest.param("[failures]\none = ' '\n", "one needs a reason", id="no reason"),
    pytest.param("[failures]\none = 1\n", "one needs a reason", id="no words"),
]


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_a_wrong_file_is_refused(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text)
    with pytest.raises(CannotRun, match=told):
        known_failures(file, NAMES)


def test_reasons_by_case(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text("[failures]\none = 'issue 1'\ntwo = 'issue 2'\n")
    assert known_failures(file, NAMES) == {"one": "issue 1", "two": "issue 2"}
