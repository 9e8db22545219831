"""Every change of audit records after the fact is found, at the first place where it shows."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.audit.folder import HEAD, files_in, write_head
from broker.audit.record import FIELDS, Actor, AuditEvent, ChainLink, body_of, hash_of
from broker.audit.verify import verify
from broker.audit.writer import AuditLimits, AuditWriter, PendingRecord

pytestmark = pytest.mark.requirement("SEC-08")

DAY_MS = 24 * 3600 * 1000
RECORDS = 9


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with three files of three records."""
    now = [20_000 * DAY_MS]
    writer = AuditWriter(tmp_path, AuditLimits(10**6, 0, 0), wall_ms=lambda: now[0])
    for number in range(RECORDS):
        event = AuditEvent(
            action="node.created",
            resource=f"queue:{number}",
            actor=Actor(user="ada", roles=("admin",), via="amqp", address="10.0.0.1:1"),
            rule="admin",
            before={"a": 1},
            after={"a": 2},
            request_id=f"1-{number}",
        )
        now[0] = (20_000 + number // 3) * DAY_MS
        writer.append([PendingRecord(now[0] + number, body_of(event))])
    writer.close()
    return tmp_path


def path(folder: Path, index: int) -> Path:
    return files_in(folder)[index].path


def change_lines(file: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))


def test_untouched_records_are_sound(folder: Path) -> None:
    verdict = verify(folder)
    assert verdict.is_sound()
    assert (verdict.files, verdict.records, verdict.first, verdict.last.seq) == (3, 9, 1, 9)


def test_an_empty_folder_is_sound(tmp_path: Path) -> None:
    AuditWriter(tmp_path, AuditLimits(1, 0, 0), wall_ms=lambda: 0).open()
    assert verify(tmp_path).is_sound()


def changed(record: dict[str, object], field: str) -> dict[str, object]:
    old = record[field]
    new: object = "x"
    if isinstance(old, int):
        new = old + 1
    elif field == "previous_hash":
        new = "e" * 64
    return {**record, field: new}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", [1, 5, 9], ids=["first", "middle", "last"])
def test_a_changed_field_is_found(folder: Path, field: str, number: int) -> None:
    file, index = path(folder, (number - 1) // 3), (number - 1) % 3

    def change(lines: list[bytes]) -> list[bytes]:
        record = changed(json.loads(lines[index]), field)
        lines[index] = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        return lines

    change_lines(file, change)
    verdict = verify(folder)
    assert not verdict.is_sound()
    assert verdict.records in (number - 1, number)


CHANGES: list[object] = [
    pytest.param(0, lambda ls: [ls[0], ls[2]], "record 2 is missing before record 3", id="removed"),
    pytest.param(0, lambda ls: ls[1:], "and no record says", id="the first removed"),
    pytest.param(
        1, lambda ls: [ls[1], ls[0], ls[2]], "record 4 is missing before record 5", id="swapped"
    ),
    pytest.param(
        1, lambda ls: [ls[0], ls[0], *ls[1:]], "record 4 stands where record 5", id="repeated"
    ),
    pytest.param(1, lambda ls: [*ls, b"{}\n"], "this line is no record", id="added"),
    pytest.param(1, lambda ls: ls[:2], "record 6 is missing before record 7", id="truncated"),
    pytest.param(1, lambda _: [], "4 to 6 are missing before record 7", id="emptied"),
    pytest.param(
        1, lambda ls: [*ls[:2], ls[2][:-9]], "the last line of the file was cut", id="cut in a line"
    ),
    pytest.param(2, lambda ls: ls[:2], "records 9 to 9 are missing, by the file head", id="end"),
    pytest.param(
        2, lambda ls: [*ls[:2], ls[2][:-9]], "records 9 to 9 are missing, by", id="end in a line"
    ),
    pytest.param(
        2, lambda ls: [ls[0].replace(b",", b", "), *ls[1:]], "record 7 was changed", id="a space"
    ),
]


@pytest.mark.parametrize(("index", "change", "problem"), CHANGES)
def test_changed_lines_are_found(
    folder: Path, index: int, change: Callable[[list[bytes]], list[bytes]], problem: str
) -> None:
    change_lines(path(folder, index), change)
    verdict = verify(folder)
    assert problem in verdict.problem


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        pytest.param(0, "the records before 4 are missing", id="the first file"),
        pytest.param(1, "4 to 6 are missing before record 7", id="a file in the middle"),
        pytest.param(2, "records 7 to 9 are missing, by the file head", id="the last file"),
    ],
)
def test_a_missing_file_is_found(folder: Path, index: int, problem: str) -> None:
    path(folder, index).unlink()
    assert problem in verify(folder).problem


def test_the_place_is_told(folder: Path) -> None:
    change_lines(path(folder, 1), lambda lines: [lines[0], lines[2]])
    verdict = verify(folder)
    assert (verdict.file, verdict.line, verdict.records) == (path(folder, 1), 2, 4)


def test_a_torn_last_line_is_no_break(folder: Path) -> None:
    with path(folder, 2).open("ab") as end:
        end.write(b'{"at"')
    verdict = verify(folder)
    assert (verdict.is_sound(), verdict.torn_bytes) == (True, 5)


def test_a_missing_head_is_told(folder: Path) -> None:
    (folder / HEAD).unlink()
    assert "the file head is missing" in verify(folder).problem


def test_an_older_head_is_that_of_a_broker_that_was_killed(folder: Path) -> None:
    line = path(folder, 2).read_bytes().splitlines()[1]
    write_head(folder, ChainLink(8, hash_of(line)))
    assert verify(folder).is_sound()


def test_a_chain_that_was_made_anew_is_not_the_one_that_was_noted(folder: Path) -> None:
    noted = verify(folder).last
    assert verify(folder, noted).is_sound()
    rewritten = AuditWriter(folder / "new", AuditLimits(10**6, 0, 0), wall_ms=lambda: 0)
    rewritten.append([PendingRecord(0, body_of(AuditEvent(action="x")))] * 12)
    rewritten.close()
    assert verify(folder / "new").is_sound(), "without a note it cannot be told"
    assert verify(folder / "new", noted).problem == "record 9 is not the one that was noted"


def test_a_chain_that_ends_before_the_noted_record(folder: Path) -> None:
    noted = ChainLink(12, "a" * 64)
    assert "records 10 to 12 are missing, by what was noted" in verify(folder, noted).problem
