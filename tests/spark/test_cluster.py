"""A driver, a master and two workers, each a process of its own, as on a real cluster."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.interop.broker_process import command, environment
from tests.spark import session
from tests.spark.cluster import cluster
from tests.spark.crashes import MESSAGES, WHOLE, Scene
from tests.spark.driver import Plan, running
from tests.spark.toy import calls

pytestmark = [pytest.mark.requirement("PIP-72"), pytest.mark.usefixtures("quick_drivers")]

EXECUTORS = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": session.JVM}
AUDIT_SECONDS = 600
JOURNALED = """
[[address]]
pattern = "in"
journal = true

[[address]]
pattern = "out"
journal = true
"""
"""Not of all: answers to requests of management go through queues, too."""


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


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, settings=JOURNALED)
    yield scene
    scene.close()


def test_messages_are_streamed_and_audited_there(master: str, scene: Scene) -> None:
    plan = replace(scene.plan(), master=master, settings=EXECUTORS)
    with running(plan) as driver:
        assert driver.wait() is None
    assert scene.count() == WHOLE
    settings = [word for name, value in EXECUTORS.items() for word in ("--conf", f"{name}={value}")]
    audit = ["pipeline", "audit", "--url", scene.broker.url, "--master", master, "--json"]
    done = subprocess.run(
        [*command(), *audit, *settings],
        env=environment() | session.given(scene.folder),
        cwd=scene.folder,
        capture_output=True,
        text=True,
        timeout=AUDIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["holds"]
    assert verdict["messages"] == 2 * MESSAGES, "each in the one queue, and in the other"
    assert sum(verdict["open"].values()) == MESSAGES, "those of the other are still there"
