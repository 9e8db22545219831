"""The choice of audit records."""

from pathlib import Path

import pytest

from broker.audit.reading import RecordChoice, records
from broker.audit.record import Actor, AuditEvent, body_of
from broker.audit.writer import AuditLimits, AuditWriter, PendingRecord

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    now = [0]
    writer = AuditWriter(tmp_path, AuditLimits(10**6, 0, 0), wall_ms=lambda: now[0])
    for day, (action, user, resource) in enumerate(
        [("auth.success", "ada", ""), ("user.added", "ada", "user:bob"), ("node.created", "", "")]
    ):
        now[0] = day * DAY_MS
        event = AuditEvent(action=action, actor=Actor(user=user), resource=resource)
        writer.append([PendingRecord(now[0], body_of(event))])
    writer.close()
    return tmp_path


CHOICES = [
    pytest.param(RecordChoice(), [1, 2, 3], id="all"),
    pytest.param(RecordChoice(since="1970-01-02"), [2, 3], id="from a day on"),
    pytest.param(RecordChoice(action="user.*"), [2], id="a pattern of actions"),
    pytest.param(RecordChoice(user="ada"), [1, 2], id="what a user did"),
    pytest.param(RecordChoice(user="bob"), [2], id="what was done to a user"),
    pytest.param(RecordChoice(user="ada", since="1970-01-03"), [], id="none"),
]


@pytest.mark.parametrize(("wanted", "expected"), CHOICES)
def test_records_are_chosen(folder: Path, wanted: RecordChoice, expected: list[int]) -> None:
    assert [record["seq"] for record in records(folder, wanted)] == expected


def test_lines_that_are_no_records_are_left_out(folder: Path) -> None:
    file = sorted(folder.glob("*.jsonl"))[0]
    file.write_bytes(b"nonsense\n" + file.read_bytes())
    assert len(list(records(folder, RecordChoice()))) == 3
