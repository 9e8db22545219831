"""F41 with a few cycles: a receiver resumes what it holds, whatever ends the broker."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.failover import Members
from tests.faults.plan import Plan, Report
from tests.faults.resuming import MOMENTS, Resumer, receivers_killed
from tests.faults.server import Place
from tests.support import postgres

pytestmark = pytest.mark.requirement("RCV-08")


async def test_a_receiver_takes_each_message_once(tmp_path: Path) -> None:
    report = await receivers_killed(Plan(place=Place(tmp_path), cycles=2 * len(MOMENTS)))
    print(*report.lines, sep="\n")
    assert report.problems == []


async def test_a_broker_that_keeps_nothing_is_found_out(tmp_path: Path) -> None:
    """Negative control: with the broker, its deliveries and all messages are gone."""
    report = await receivers_killed(Plan(place=Place(tmp_path, store="memory"), cycles=3))
    assert any("is forgotten" in problem for problem in report.problems)


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[Members]:
    server = postgres.server()
    async with Members(tmp_path, server, server.database()) as made:
        yield made


async def test_a_receiver_resumes_at_the_next_leader(group: Members) -> None:
    """F17a and F17b under a receiver that resumes: the other member knows its deliveries."""
    leader, standby = await group.start()
    report = Report()
    resumer = Resumer("q", random.Random(1), report)
    for moment in ("settling", "sending", "settled", "attached"):
        end = leader.stop if moment == "settled" else leader.kill
        await resumer.cycle(leader.port, moment, end)
        await standby.ready()
        await leader.launch()
        leader, standby = standby, leader
    await resumer.finish(leader.port)
    assert report.problems == []
    assert resumer.resumed > 0
    await group.check_commits()
