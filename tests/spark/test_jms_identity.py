"""Qpid JMS gets back from the archive what it sent: every header, property and body.

Its messages of all kinds go to a queue, into the archive, and from there into another queue, by
the command line and a file of jobs as a user has them. `QPID_JMS_MESSAGES=10000` sends more.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from broker.http.console.pipeline_audit import read_audit
from tests.interop.broker_process import BrokerProcess, command, environment
from tests.interop.conftest import junit as junit
from tests.interop.conftest import maven as maven
from tests.interop.junit import JUnit
from tests.interop.test_qpid_jms_mapping import Facts, by_case
from tests.spark import session

COUNT: Final = int(os.environ.get("QPID_JMS_MESSAGES", "260"))
MINUTES: Final = 20
LOGGED: Final = """\
store = "sqlite:///store.db"

[[address]]
pattern = "in"
event_log = true
"""


def sent_by_jms(
    junit: JUnit, broker: BrokerProcess, address: str, folder: Path
) -> dict[int, Facts]:
    """Return the facts that Qpid JMS wrote of the messages that it sent."""
    return phase("sendMany", junit, broker, address, folder)


def shown_by_jms(
    junit: JUnit, broker: BrokerProcess, address: str, folder: Path
) -> dict[int, Facts]:
    """Return the facts that Qpid JMS wrote of the messages that it received."""
    return phase("show", junit, broker, address, folder)


def phase(
    name: str, junit: JUnit, broker: BrokerProcess, address: str, folder: Path
) -> dict[int, Facts]:
    output = folder / name
    given = {
        "mapping.address": address,
        "mapping.output": str(output),
        "mapping.count": str(COUNT),
    }
    junit.phase(f"MappingPhases#{name}", folder, url=broker.url, properties=given)
    return by_case(output)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    folder = tmp_path / "broker"
    folder.mkdir()
    process = BrokerProcess(folder, settings=LOGGED)
    yield process
    if process.running:
        process.stop()


JOBS: Final = """\
url = "{url}"
json = true

[[job]]
run = "archive"
archive = "kept"
address = ["in"]
mode = "lease"

[[job]]
run = "audit"
archive = "kept"

[[job]]
run = "report"
archive = "kept"
url = false
out = "report"

[[job]]
run = "replay"
archive = "kept"
to = "again"
"""
"""One start of Spark does for all jobs; the tests of each job use its command line."""


def reported_by_jobs(url: str, folder: Path) -> list[dict[str, Any]]:
    """Run JOBS; return what each of them reports at its end."""
    (folder / "jobs.toml").write_text(JOBS.format(url=url))
    done = subprocess.run(
        [*command(), "pipeline", "run", "jobs.toml"],
        cwd=folder,
        env=environment() | session.given(folder),
        capture_output=True,
        text=True,
        timeout=60 * MINUTES,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.requirement("PIP-74")
@pytest.mark.usefixtures("quick_drivers")
def test_what_jms_sent_comes_back(junit: JUnit, broker: BrokerProcess, tmp_path: Path) -> None:
    sent = sent_by_jms(junit, broker, "in", tmp_path)
    assert set(sent) == set(range(COUNT))
    taken, verdict, reported, _ = reported_by_jobs(broker.url, tmp_path)
    assert taken["messages"] == COUNT
    (tmp_path / "audit.json").write_text(json.dumps(verdict))
    in_console = asyncio.run(read_audit(tmp_path / "audit.json"))
    assert (in_console.problem, in_console.holds) == ("", verdict["holds"])
    assert len(in_console.checks) == len(verdict["checks"]) > 0
    assert verdict["holds"]
    assert verdict["messages"] == COUNT
    assert (reported["enqueued"], reported["accepted"]) == (COUNT, COUNT)
    shown = shown_by_jms(junit, broker, "again", tmp_path)
    assert shown == sent
