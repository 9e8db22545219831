"""The files of audit records: the chain over restarts, rotation, retention, full disks, repairs."""

import json
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.audit.folder import HEAD, files_in, read_head
from broker.audit.record import AuditEvent, body_of
from broker.audit.verify import verify
from broker.audit.writer import (
    DAMAGED,
    REPAIRED,
    RETENTION,
    AuditLimits,
    AuditWriter,
    PendingRecord,
)

pytestmark = pytest.mark.requirement("SEC-08")

DAY_MS = 24 * 3600 * 1000
WIDE = AuditLimits(file_bytes=10**6, total_bytes=0, retention_days=0)


class Days:
    """A clock of days."""

    def __init__(self) -> None:
        self.day = 20_000

    def wall_ms(self) -> int:
        return self.day * DAY_MS


def writer(folder: Path, limits: AuditLimits = WIDE, days: Days | None = None) -> AuditWriter:
    return AuditWriter(folder, limits, wall_ms=(days or Days()).wall_ms)


def waiting(*actions: str) -> list[PendingRecord]:
    return [PendingRecord(0, body_of(AuditEvent(action=action))) for action in actions]


def actions(folder: Path) -> list[str]:
    lines = [line for file in files_in(folder) for line in file.path.read_bytes().splitlines()]
    return [json.loads(line)["action"] for line in lines]


def test_records_are_only_for_the_broker_to_read(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "audit"
    written = writer(folder)
    written.append(waiting("a"))
    (file,) = files_in(folder)
    modes = [path.stat().st_mode & 0o777 for path in (folder, file.path, folder / HEAD)]
    assert modes == [0o700, 0o600, 0o600]
    assert file.path.name == "audit-000000000001-20241004.jsonl"


def test_the_chain_goes_on_after_a_restart(tmp_path: Path) -> None:
    for action in ("a", "b", "c"):
        written = writer(tmp_path)
        written.append(waiting(action))
        written.close()
        assert written.told == []
    assert actions(tmp_path) == ["a", "b", "c"]
    assert len(files_in(tmp_path)) == 1
    verdict = verify(tmp_path)
    assert (verdict.problem, verdict.records, verdict.last.seq) == ("", 3, 3)


def test_two_writers_do_not_share_a_folder(tmp_path: Path) -> None:
    first, second = writer(tmp_path), writer(tmp_path)
    first.append(waiting("a"))
    with pytest.raises(OSError, match="another broker writes to this folder"):
        second.append(waiting("b"))
    first.close()
    second.append(waiting("c"))
    assert actions(tmp_path) == ["a", "c"]
    assert verify(tmp_path).is_sound()


# -- rotation and retention


def test_a_file_ends_by_its_size_and_with_the_day(tmp_path: Path) -> None:
    days = Days()
    written = writer(tmp_path, AuditLimits(400, 0, 0), days)
    for action in ("a", "b", "c"):
        written.append(waiting(action))
    days.day += 1
    written.append(waiting("d"))
    written.close()
    again = writer(tmp_path, AuditLimits(400, 0, 0), days)
    days.day += 1
    again.append(waiting("e"))
    assert [file.first for file in files_in(tmp_path)] == [1, 3, 4, 5]
    assert verify(tmp_path).is_sound()


def test_old_files_are_deleted_and_a_record_says_so(tmp_path: Path) -> None:
    days = Days()
    written = writer(tmp_path, AuditLimits(10**6, 0, 2), days)
    for action in ("a", "b", "c", "d"):
        written.append(waiting(action))
        days.day += 1
    assert actions(tmp_path) == ["b", "c", "d", RETENTION]
    verdict = verify(tmp_path)
    assert (verdict.problem, verdict.first) == ("", 2)
    days.day += 1
    written.keep_house()
    assert actions(tmp_path) == ["d", RETENTION, RETENTION]
    assert verify(tmp_path).is_sound()


def test_no_more_bytes_than_allowed_are_kept(tmp_path: Path) -> None:
    written = writer(tmp_path, AuditLimits(1000, 5000, 0))
    for number in range(200):
        written.append(waiting(f"{number}"))
    assert sum(file.path.stat().st_size for file in files_in(tmp_path)) < 7000
    assert written.told == []
    verdict = verify(tmp_path)
    assert verdict.is_sound(), verdict
    assert verdict.first > 100


def test_files_that_are_deleted_without_a_record_are_missed(tmp_path: Path) -> None:
    written = writer(tmp_path, AuditLimits(1000, 5000, 0))
    for number in range(200):
        written.append(waiting(f"{number}"))
    files_in(tmp_path)[0].path.unlink()
    assert "are missing, and no record says" in verify(tmp_path).problem


# -- what goes wrong


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes: EFBIG, as a full disk gives ENOSPC."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_takes_all_records_of_a_batch_or_none(tmp_path: Path) -> None:
    written = writer(tmp_path)
    written.append(waiting("a"))
    (file,) = files_in(tmp_path)
    size = file.path.stat().st_size
    with no_file_beyond(size + 500):  # there is room for the first of them, and half the second
        for _ in range(2):
            with pytest.raises(OSError, match="too large"):
                written.append(waiting("b", "c", "d"))
        assert file.path.stat().st_size == size
    written.append(waiting("b", "c", "d"))
    assert actions(tmp_path) == ["a", "b", "c", "d"]
    assert verify(tmp_path).is_sound()


def test_a_file_that_cannot_be_opened_is_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    folder.write_text("a file in the way")
    written = writer(folder)
    for _ in range(2):
        with pytest.raises(OSError, match="exists"):
            written.append(waiting("a"))
    folder.unlink()
    written.append(waiting("a"))
    assert actions(folder) == ["a"]


def test_a_torn_line_is_removed_and_a_record_says_so(tmp_path: Path) -> None:
    written = writer(tmp_path)
    written.append(waiting("a", "b"))
    written.close()
    (file,) = files_in(tmp_path)
    with file.path.open("ab") as end:
        end.write(b'{"at":"2026-11-2')
    assert verify(tmp_path).torn_bytes == 16
    again = writer(tmp_path)
    again.append(waiting("c"))
    assert actions(tmp_path) == ["a", "b", REPAIRED, "c"]
    repaired = json.loads(file.path.read_bytes().splitlines()[2])
    assert (repaired["resource"], repaired["after"]["removed_bytes"]) == (file.path.name, 16)
    (told,) = again.told
    assert "was not written to its end" in told
    assert verify(tmp_path).is_sound()


def test_a_killed_process_leaves_records_that_can_be_continued(tmp_path: Path) -> None:
    """A child is killed while it writes, at any byte; its records are whole but for the last."""
    started, told = os.pipe()
    child = os.fork()
    if child == 0:
        endless = writer(tmp_path, AuditLimits(20_000, 0, 0))
        endless.append(waiting("a"))
        os.write(told, b"x")
        while True:
            endless.append(waiting("b", "c"))
    assert os.read(started, 1) == b"x"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(started)
    os.close(told)
    again = writer(tmp_path)
    again.append(waiting("last"))
    assert actions(tmp_path)[-1] == "last"
    assert verify(tmp_path).is_sound()


def test_records_that_were_removed_while_the_broker_was_down_are_missed(tmp_path: Path) -> None:
    written = writer(tmp_path)
    written.append(waiting("a", "b", "c"))
    written.close()
    (file,) = files_in(tmp_path)
    file.path.write_bytes(b"".join(file.path.read_bytes().splitlines(keepends=True)[:1]))
    again = writer(tmp_path)
    again.append(waiting("d"))
    assert actions(tmp_path) == ["a", DAMAGED, "d"]
    assert "the last records were changed or removed" in again.told[0]
    assert verify(tmp_path).problem == "2 to 3 are missing before record 4"


REMOVED_WHILE_RUNNING = [
    pytest.param(lambda path: path.unlink(), id="the file is deleted"),
    pytest.param(lambda path: path.write_bytes(b""), id="the file is emptied"),
    pytest.param(lambda path: os.truncate(path, 10), id="the file is cut within a line"),
]


@pytest.mark.parametrize("change", REMOVED_WHILE_RUNNING)
def test_a_file_that_another_program_changes_is_left(tmp_path: Path, change: object) -> None:
    written = writer(tmp_path)
    written.append(waiting("a"))
    (file,) = files_in(tmp_path)
    assert callable(change)
    change(file.path)
    written.append(waiting("b"))
    newest = files_in(tmp_path)[-1]
    assert newest.first == 2
    assert [json.loads(line)["action"] for line in newest.path.read_bytes().splitlines()] == [
        *(DAMAGED, "b")
    ]
    assert "was changed by another program" in written.told[0]
    assert not verify(tmp_path).is_sound()


def test_without_a_head_the_chain_goes_on_and_says_so(tmp_path: Path) -> None:
    written = writer(tmp_path)
    written.append(waiting("a"))
    written.close()
    (tmp_path / HEAD).unlink()
    assert "the file head is missing" in verify(tmp_path).problem
    again = writer(tmp_path)
    again.append(waiting("b"))
    assert actions(tmp_path) == ["a", DAMAGED, "b"]
    assert read_head(tmp_path) == again.link
