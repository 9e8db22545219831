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

from pyspark_amqp.engines.duckdb_engine import duckdb_engine
from pyspark_amqp.jobs.auditing import Auditing
from tests.interop.broker_process import BrokerProcess, command, environment
from tests.spark import session
from tests.spark.cluster import Cluster, cluster
from tests.spark.crashes import MESSAGES, WHOLE, Scene
from tests.spark.driver import running
from tests.support.pipeline_site import PASSWORD, PipelineSite, as_https, as_toml, in_file

pytestmark = [pytest.mark.requirement("PIP-72"), pytest.mark.usefixtures("quick_drivers")]

ARCHIVED: Final = 200

JOBS_SECONDS = 600
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


def test_messages_are_streamed_there(two_workers: Cluster, scene: Scene) -> None:
    earlier = two_workers.applications()
    plan = replace(scene.plan(), master=two_workers.master, settings=settings())
    with running(plan) as driver:
        assert driver.wait() is None
    assert scene.count() == WHOLE
    audit = Auditing(None, {"url": scene.broker.url})
    audit.check()
    with duckdb_engine() as engine:
        verdict, _ = audit.run(engine, print)
    assert verdict.holds
    assert verdict.messages == 2 * MESSAGES, "each in the one queue, and in the other"
    assert sum(verdict.open.values()) == MESSAGES, "those of the other are still there"
    two_workers.check_both_worked(but=earlier)


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
def test_a_user_with_the_role_pipeline_archives_and_audits_there_over_tls(
    two_workers: Cluster, secured: BrokerProcess, site: PipelineSite, tmp_path: Path
) -> None:
    """Over AMQP and HTTP by a certificate, whose files have the same path on all machines.

    Over AMQP alone by a password, with an authority that Spark copies to the workers.
    """
    earlier = two_workers.applications()
    by_certificate = site.by_certificate() | {"managementUrl": as_https(secured.http_url)}
    by_password = site.by_password() | {"tls.caFile": site.ca.name}
    del by_password["password"]
    copied = settings() | {"spark.files": str(site.ca)}
    common: dict[str, object] = {
        "master": two_workers.master,
        "conf": [f"{name}={value}" for name, value in copied.items()],
        "json": True,
    }
    browse = {"run": "archive", "address": "in", "mode": "browse", "archive": str(tmp_path / "in")}
    lease = {"run": "archive", "address": "out", "mode": "lease", "archive": str(tmp_path / "out")}
    audit = {"run": "audit"}
    jobs = (
        browse | in_file(by_certificate),
        lease | in_file(by_password),
        audit | in_file(by_password),
    )
    file = tmp_path / "jobs.toml"
    file.write_text("\n[[job]]\n".join([as_toml(common), *map(as_toml, jobs)]))
    done = subprocess.run(
        [*command(), "pipeline", "run", str(file)],
        env=environment(JMS_BROKER_PASSWORD=PASSWORD) | session.given(tmp_path),
        cwd=site.folder,
        capture_output=True,
        text=True,
        timeout=JOBS_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *archived, verdict = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["messages"] for each in archived] == [ARCHIVED, ARCHIVED]
    assert all(each["events"] >= 2 * ARCHIVED for each in archived)
    assert verdict["holds"]
    assert verdict["messages"] == 2 * ARCHIVED
    two_workers.check_both_worked(but=earlier)
