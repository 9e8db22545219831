"""A driver, a master and two workers, each a process of its own, as on a real cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.cluster import cluster
from tests.spark.driver import Plan, running
from tests.spark.toy import calls

pytestmark = pytest.mark.requirement("PIP-72")

EXECUTORS = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": "-XX:+UseSerialGC"}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


def test_a_stream_is_read_by_two_executors(master: str, tmp_path: Path) -> None:
    """By the toy source: that the ground holds, whatever the broker does."""
    notes, checkpoint = tmp_path / "calls", tmp_path / "checkpoint"
    toy = {"calls": str(notes), "checkpoint": str(checkpoint)}
    plan = Plan(
        provider="tests.spark.toy:ToySource",
        folder=str(tmp_path / "driver"),
        checkpoint=str(checkpoint),
        source={**toy, "total": "40"},
        sink=toy,
        master=master,
        settings=EXECUTORS,
    )
    with running(plan) as driver:
        assert driver.wait() is None
    written = calls(notes, "write")
    assert Counter(number for call in written for number in call["numbers"]) == Counter(range(40))
    assert len({call["executor"] for call in written}) == 2
