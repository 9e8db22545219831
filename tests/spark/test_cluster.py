"""A driver, a master and two workers, each a process of its own, as on a real cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from proton import Message
from proton.utils import BlockingConnection

from tests.interop.broker_process import BrokerProcess, command, environment
from tests.spark import session
from tests.spark.cluster import Cluster, cluster
from tests.spark.crashes import MESSAGES, WHOLE, Scene
from tests.spark.driver import running
from tests.support.pipeline_site import PASSWORD, PipelineSite, as_https, flags

pytestmark = [pytest.mark.requirement("PIP-72"), pytest.mark.usefixtures("quick_drivers")]

ARCHIVED: Final = 200

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


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "files") as started:
        yield started


def test_messages_are_streamed_and_audited_there(two_workers: Cluster, scene: Scene) -> None:
    master, earlier = two_workers.master, two_workers.applications()
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
    tasks = two_workers.tasks(but=earlier)
    assert len(tasks) == 2, "the stream, and the audit"
    assert all(min(counts) > 0 for counts in tasks), "both workers have their part"


@pytest.fixture
def site(tmp_path: Path) -> PipelineSite:
    folder = tmp_path / "site"
    folder.mkdir()
    site = PipelineSite(folder)
    site.users.add("app", "engine", roles=["application"])
    return site


@pytest.fixture
def secured(site: PipelineSite) -> Iterator[BrokerProcess]:
    """Yield a broker with users, TLS and two queues of durable messages."""
    settings = f'store = "sqlite:///store.db"\n{site.toml()}{LOGGED}'
    process = BrokerProcess(site.folder, settings=settings)
    connection = BlockingConnection(process.url.replace("//", "//app:engine@"), timeout=30)
    for address in ("in", "out"):
        sender = connection.create_sender(address)
        for number in range(ARCHIVED):
            sender.send(Message(body=f"text {number}", durable=True))
    connection.close()
    yield process
    process.kill()


@pytest.mark.requirement("SEC-09")
def test_a_user_with_the_role_pipeline_archives_there_over_tls(
    two_workers: Cluster, secured: BrokerProcess, site: PipelineSite, tmp_path: Path
) -> None:
    """Once over AMQP and HTTP by a certificate, whose files have the same path on all machines.

    Then over AMQP by a password, with an authority that Spark copies to the workers.
    """
    earlier = two_workers.applications()
    by_certificate = site.by_certificate() | {"managementUrl": as_https(secured.http_url)}
    by_password = site.by_password() | {"tls.caFile": site.ca.name}
    del by_password["password"]
    copied = {"spark.files": str(site.ca)}
    runs: tuple[tuple[str, dict[str, str], dict[str, str], list[str]], ...] = (
        ("in", by_certificate, {}, ["--mode", "browse"]),
        ("out", by_password, copied, ["--mode", "lease"]),
    )
    for address, options, more, mode in runs:
        given = [
            word for pair in (settings() | more).items() for word in ("--conf", "=".join(pair))
        ]
        place = tmp_path / f"archive-{address}"
        done = subprocess.run(
            [
                *(*command(), "pipeline", "archive", str(place), "--address", address, *mode),
                *(*flags(options), "--master", two_workers.master, "--json", *given),
            ],
            env=environment(JMS_BROKER_PASSWORD=PASSWORD) | session.given(tmp_path),
            cwd=site.folder,
            capture_output=True,
            text=True,
            timeout=AUDIT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        summed = json.loads(done.stdout)
        assert summed["messages"] == ARCHIVED
        assert summed["events"] >= 2 * ARCHIVED
    tasks = two_workers.tasks(but=earlier)
    assert len(tasks) == 2
    assert all(min(counts) > 0 for counts in tasks), "both workers have their part"
