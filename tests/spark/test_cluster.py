"""A driver, a master and two workers, each a process of its own, as on a real cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.interop.broker_process import command, environment
from tests.spark import session
from tests.spark.cluster import Cluster, cluster
from tests.spark.crashes import MESSAGES, WHOLE, Scene
from tests.spark.driver import running

pytestmark = [pytest.mark.requirement("PIP-72"), pytest.mark.usefixtures("quick_drivers")]

AUDIT_SECONDS = 600
LOGGED = """
[[address]]
pattern = "in"
event_log = true

[[address]]
pattern = "out"
event_log = true
"""
"""Not all addresses: responses of management pass through queues, too."""


def settings() -> dict[str, str]:
    """Return the settings of a program that has work for the cluster."""
    return {
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": session.flags(),
        "spark.sql.shuffle.partitions": "2",
        # no task begins before both workers are there
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, settings=LOGGED)
    yield scene
    scene.close()


@pytest.fixture
def two_workers(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "cluster") as started:
        yield started


def test_messages_are_streamed_and_audited_there(two_workers: Cluster, scene: Scene) -> None:
    master = two_workers.master
    plan = replace(scene.plan(), master=master, settings=settings())
    with running(plan) as driver:
        assert driver.wait() is None
    assert scene.count() == WHOLE
    given = [word for pair in settings().items() for word in ("--conf", "=".join(pair))]
    audit = ["pipeline", "audit", "--url", scene.broker.url, "--master", master, "--json"]
    done = subprocess.run(
        [*command(), *audit, *given],
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
    assert len(two_workers.tasks()) == 2, "the stream, and the audit"
    assert all(min(counts) > 0 for counts in two_workers.tasks()), "both workers have their part"
