"""Audit records, the newest first, page by page."""

from pathlib import Path

import pytest

from broker.audit.audit_log import AuditLog
from broker.audit.record import Actor, AuditEvent
from broker.audit.writer import AuditLimits, AuditWriter
from broker.management.audit_records import AuditRecords
from broker.management.request import Refused, Request
from tests.support.broker import Broker

pytestmark = pytest.mark.requirement("OPS-01")


async def records_in(folder: Path, number: int = 5) -> AuditRecords:
    """Return the records of an audit of `number` events in files of a few records."""
    writer = AuditWriter(folder, AuditLimits(600, 10**6, 9), wall_ms=lambda: 10**12)
    audit = AuditLog(writer, wall_ms=lambda: 10**12, tell=print)
    await audit.start()
    for each in range(number):
        actor = Actor(user="ada" if each % 2 else "bob")
        audit.record(AuditEvent(action=f"did.{each}", actor=actor))
    await audit.close()
    broker = Broker()
    broker.container.audit = audit
    return AuditRecords(broker.container)


async def ask(
    records: AuditRecords, *, count: int = 100, said: dict[str, object] | None = None
) -> tuple[list[str], object]:
    request = Request(
        operation="QUERY", type="x", properties={"count": count}, arguments=said or {}
    )
    body = (await records.query(request).answer()).body
    assert isinstance(body, dict)
    place = body["attributeNames"].index("action")
    return [row[place] for row in body["results"]], body["next"]


async def test_the_newest_are_first_and_a_page_begins_where_one_ended(tmp_path: Path) -> None:
    records = await records_in(tmp_path)
    found: list[str] = []
    before: object = 10**6
    while before is not None:
        actions, before = await ask(records, count=2, said={"before": before})
        found += actions
    assert [each for each in found if each.startswith("did.")] == [
        f"did.{each}" for each in (4, 3, 2, 1, 0)
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param({"action": "did.[12]"}, ["did.2", "did.1"], id="an action"),
        pytest.param({"user": "ada"}, ["did.3", "did.1"], id="a user"),
        pytest.param({"since": "2999-01-01"}, [], id="a time"),
    ],
)
async def test_records_are_chosen(
    tmp_path: Path, said: dict[str, object], expected: list[str]
) -> None:
    assert (await ask(await records_in(tmp_path), said=said))[0] == expected


@pytest.mark.parametrize("since", ["yesterday", "2026-12-1", "01/12/2026", "1796086607937"])
async def test_a_time_that_is_none_is_refused(tmp_path: Path, since: str) -> None:
    """Compared as a text, it would choose no records, or all."""
    records = await records_in(tmp_path)
    with pytest.raises(Refused, match="since is a time such as 2026-11-24"):
        await ask(records, said={"since": since})


async def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    records = await records_in(tmp_path / "audit")
    (tmp_path / "audit").rename(tmp_path / "elsewhere")
    request = Request(operation="QUERY", type="x")
    response = await records.query(request).answer()
    assert (response.status, "cannot be read" in response.description) == (500, True)


@pytest.mark.parametrize(
    ("offset", "why"), [(1, "have no offset"), (0, "the audit of this broker is off")]
)
def test_what_is_refused(offset: int, why: str) -> None:
    records = AuditRecords(Broker().container)
    with pytest.raises(Refused, match=why):
        records.query(Request(operation="QUERY", type="x", properties={"offset": offset}))
