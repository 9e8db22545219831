"""The audit of a running broker: what is recorded reaches the disk, or is counted as lost."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.audit import audit_log
from broker.audit.audit_log import LOST, WAITING_BYTES_MAX, AuditLog
from broker.audit.folder import files_in
from broker.audit.record import AuditEvent
from broker.audit.verify import verify
from broker.audit.writer import AuditLimits, AuditWriter

pytestmark = pytest.mark.requirement("SEC-08")


class Told:
    """An audit in a folder, and what it logs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.now_ms = 0
        self.writer = AuditWriter(folder, AuditLimits(10**6, 0, 0), wall_ms=lambda: self.now_ms)
        self.audit = AuditLog(self.writer, wall_ms=lambda: self.now_ms, tell=self.lines.append)

    def records(self) -> list[dict[str, object]]:
        files = files_in(self.folder) if self.folder.is_dir() else []
        lines = [line for file in files for line in file.path.read_bytes().splitlines()]
        return [json.loads(line) for line in lines]

    def actions(self) -> list[object]:
        return [record["action"] for record in self.records()]


async def until(holds: Callable[[], bool]) -> None:
    """Wait until `holds` returns True."""
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.get_running_loop().run_in_executor(None, lambda: None)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path / "audit")


async def test_records_reach_the_disk_while_the_broker_runs(told: Told) -> None:
    await told.audit.start()
    told.audit.record(AuditEvent(action="a"))
    told.audit.record(AuditEvent(action="b"))
    await until(lambda: told.actions() == ["a", "b"])
    told.audit.record(AuditEvent(action="c"))
    await until(lambda: told.actions() == ["a", "b", "c"])
    await until(lambda: told.audit.waiting == 0)
    await told.audit.close()
    assert told.lines == []


async def test_a_stop_writes_what_waits(told: Told) -> None:
    await told.audit.start()
    for number in range(1000):
        told.audit.record(AuditEvent(action=f"{number}"))
    await told.audit.close()
    assert told.actions() == [f"{number}" for number in range(1000)]
    assert verify(told.folder).is_sound()


async def test_repeated_events_are_counted_and_the_count_is_recorded(told: Told) -> None:
    await told.audit.start()
    for _ in range(50):
        told.audit.record(AuditEvent(action="access.denied", repeat_key=("x",)))
    await told.audit.close()
    first, further = told.records()
    assert (first["after"], further["after"]) == (None, {"count": 49, "within_s": 60})


async def test_a_count_is_recorded_when_its_minute_is_over(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "WINDOW_S", 0.01)
    await told.audit.start()
    for _ in range(3):
        told.audit.record(AuditEvent(action="x", repeat_key=("x",)))
    await until(lambda: len(told.records()) == 2)
    told.audit.record(AuditEvent(action="x", repeat_key=("x",)))
    await until(lambda: len(told.records()) == 3)
    await told.audit.close()


async def test_an_unwritable_folder_stops_nothing(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "RETRY_S", 0.01)
    told.folder.write_text("in the way")
    await told.audit.start()
    told.audit.record(AuditEvent(action="a"))
    await until(lambda: told.audit.failures > 2)
    (line,) = told.lines
    assert line.startswith("audit records cannot be written: [Errno 17] File exists")
    told.now_ms += 60_000
    seen = told.audit.failures
    await until(lambda: told.audit.failures > seen + 1)
    assert len(told.lines) == 2, "told once a minute"
    told.folder.unlink()
    await until(lambda: told.actions() == ["a"])
    await told.audit.close()


async def test_beyond_its_memory_records_are_lost_and_the_next_says_how_many(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "RETRY_S", 0.01)
    told.folder.write_text("in the way")
    await told.audit.start()
    event = AuditEvent(action="a", resource="x" * 200)
    while told.audit.lost < 7:
        told.audit.record(event)
    kept = told.audit.waiting
    assert WAITING_BYTES_MAX / 1000 < kept < WAITING_BYTES_MAX / 300
    told.folder.unlink()
    await until(lambda: told.audit.waiting == 0)
    told.audit.record(AuditEvent(action="b"))
    await told.audit.close()
    records = told.records()
    assert (records[0]["action"], records[0]["result"]) == (LOST, "failed")
    assert records[0]["after"] == {"count": 7, "since": "1970-01-01T00:00:00.000Z"}
    assert [record["action"] for record in records[1:]] == [*["a"] * kept, "b"]
    assert verify(told.folder).is_sound()


async def test_records_after_the_end_are_counted_as_lost(told: Told) -> None:
    await told.audit.start()
    await told.audit.close()
    told.audit.record(AuditEvent(action="late"))
    assert (told.audit.lost, told.actions()) == (1, [])


async def test_a_disk_that_takes_nothing_does_not_keep_a_broker_from_stopping(told: Told) -> None:
    told.folder.write_text("in the way")
    await told.audit.start()
    told.audit.record(AuditEvent(action="a"))
    await told.audit.close()
    assert told.lines[-1] == "audit: 1 records were not written"


async def test_a_repair_is_told(told: Told) -> None:
    await told.audit.start()
    told.audit.record(AuditEvent(action="a"))
    await told.audit.close()
    with files_in(told.folder)[0].path.open("ab") as end:
        end.write(b"torn")
    again = Told(told.folder)
    await again.audit.start()
    again.audit.record(AuditEvent(action="b"))
    await again.audit.close()
    assert again.actions() == ["a", "audit.repaired", "b"]
    assert "was not written to its end" in again.lines[0]
