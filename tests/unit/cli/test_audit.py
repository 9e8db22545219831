"""`jms-broker audit` on files of records."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from broker.audit.folder import files_in
from broker.audit.record import Actor, AuditEvent, body_of
from broker.audit.writer import AuditLimits, AuditWriter, PendingRecord
from broker.cli.application import application
from broker.settings_errors import ENVIRONMENT_PREFIX


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "store.db.audit"
    writer = AuditWriter(made, AuditLimits(10**6, 0, 0), wall_ms=lambda: 1_795_489_463_007)
    for action, user in (("auth.success", "ada"), ("user.added", "ada"), ("auth.failure", "")):
        event = AuditEvent(action=action, actor=Actor(user=user), resource="user:bob")
        writer.append([PendingRecord(1_795_489_463_007, body_of(event))])
    writer.close()
    return made


def typed(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(application, ["audit", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_records_are_lines(folder: Path) -> None:
    status, printed, _ = typed("show", "--directory", str(folder), "--action", "auth.*")
    header, first, second = printed.splitlines()
    assert status == 0
    assert header.split("\t")[:3] == ["at", "seq", "actor"]
    assert first.split("\t")[:3] == ["2026-11-24T03:04:23.007Z", "1", "ada"]
    assert second.split("\t")[:3] == ["2026-11-24T03:04:23.007Z", "3", ""]


def test_records_as_json_have_every_field(folder: Path) -> None:
    _, printed, _ = typed("show", "--directory", str(folder), "--user", "ada", "--json")
    records = [json.loads(line) for line in printed.splitlines()]
    assert [record["seq"] for record in records] == [1, 2]
    assert "previous_hash" in records[0]


@pytest.mark.parametrize(
    ("since", "count"), [("2026-11-24", 3), ("2026-11-24T03:04:24Z", 0), ("2026-11-25", 0)]
)
def test_records_since_a_time(folder: Path, since: str, count: int) -> None:
    _, printed, _ = typed("show", "--directory", str(folder), "--since", since, "--json")
    assert len(printed.splitlines()) == count


def test_the_folder_is_that_of_the_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}STORE", f"sqlite:///{folder.parent}/store.db")
    status, printed, _ = typed("verify")
    assert status == 0
    assert f"{folder}: sound: records 3, from number 1 to 3, in 1 files\nhead 3:" in printed


def test_a_sound_chain_has_the_head_that_it_printed(folder: Path) -> None:
    _, printed, _ = typed("verify", "--directory", str(folder), "--json")
    head = json.loads(printed)["head"]
    assert typed("verify", "--directory", str(folder), "--head", head)[0] == 0
    other = f"3:{'0' * 64}"
    status, printed, _ = typed("verify", "--directory", str(folder), "--head", other)
    assert status == 1
    assert "record 3 is not the one that was noted" in printed


def test_a_break_is_printed_with_its_place(folder: Path) -> None:
    (file,) = files_in(folder)
    file.path.write_bytes(file.path.read_bytes().replace(b"user.added", b"user.spared"))
    status, printed, _ = typed("verify", "--directory", str(folder))
    assert status == 1
    assert f"broken: {file.path}, line 3: record 2 was changed" in printed


def test_a_torn_line_is_told(folder: Path) -> None:
    with files_in(folder)[0].path.open("ab") as end:
        end.write(b"torn")
    status, printed, _ = typed("verify", "--directory", str(folder))
    assert status == 0
    assert "the last line was not written to its end (4 bytes)" in printed


WRONG = [
    pytest.param(["show", "--since", "yesterday"], 2, "--since is a time", id="no time"),
    pytest.param(["verify", "--head", "3"], 2, "--head is NUMBER:HASH", id="no head"),
    pytest.param(["show", "--directory", "/none"], 1, "No such file", id="no folder"),
]


@pytest.mark.parametrize(("arguments", "status", "told"), WRONG)
def test_what_is_wrong_is_told(folder: Path, arguments: list[str], status: int, told: str) -> None:
    given = [] if "--directory" in arguments else ["--directory", str(folder)]
    found, _, error = typed(*arguments, *given)
    assert (found, told in error) == (status, True), error


def test_without_a_folder_there_is_nothing_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}STORE", "memory")
    status, _, error = typed("verify")
    assert status == 2
    assert "give one with --directory" in error
