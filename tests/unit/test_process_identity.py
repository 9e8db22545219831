"""The identity of a process, which another one cannot have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.process_identity import is_running, process_identity

pytestmark = pytest.mark.requirement("OPS-14")

REST = "S 1 " + " ".join(str(at) for at in range(5, 22))

STATS = [
    # content of the file stat, identity
    pytest.param(f"7 (python) {REST} 815 4096", "7@815", id="a process"),
    pytest.param(f"7 (a) b (c) {REST} 815 4096", "7@815", id="a name with spaces and brackets"),
    pytest.param(f"7 (python) {REST} 815 4096".replace("S 1", "Z 1"), "", id="it has ended"),
    pytest.param("7 (python) S 1", "", id="too few fields"),
    pytest.param(None, "", id="no such process"),
]


@pytest.mark.parametrize(("stat", "identity"), STATS)
def test_the_identity_is_the_number_and_the_start(
    tmp_path: Path, stat: str | None, identity: str
) -> None:
    if stat is not None:
        (tmp_path / "7").mkdir()
        (tmp_path / "7" / "stat").write_text(stat)
    assert process_identity(7, tmp_path) == identity
    assert is_running("7@815", tmp_path) == (identity == "7@815")


def test_a_process_of_the_same_number_is_another_one(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(f"7 (python) {REST} 816 4096")
    assert not is_running("7@815", tmp_path)
    assert not is_running("", tmp_path)


def test_a_process_is_seen_until_its_end() -> None:
    program = [sys.executable, "-c", "input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as process:
        identity = process_identity(process.pid)
        assert is_running(identity)
        assert is_running(process_identity(os.getpid()))
        process.communicate(b"\n")
    assert not is_running(identity)
