"""Qpid JMS before and after a `kill -9` of its broker: two runs of Maven, a broker between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.broker_process import PASSWORD, USER, BrokerProcess
from tests.interop.test_qpid_jms import REPORTS, read, run_maven

pytestmark = pytest.mark.slow

SETTINGS = 'store = "sqlite:///data/store.db"\n'


def run_phase(maven: str, phase: str, *, url: str, folder: Path) -> None:
    """One method of RestartPhases; fails where it did."""
    for report in REPORTS.glob("TEST-*RestartPhases.xml"):
        report.unlink()
    output = folder / f"{phase}.txt"
    command = [
        *(maven, "--quiet", "--batch-mode", "test"),
        f"-Dbroker.url={url}",
        f"-Dbroker.user={USER}",
        f"-Dbroker.password={PASSWORD}",
        f"-Dtest=RestartPhases#{phase}",
        "-Djunit.jupiter.execution.timeout.testable.method.default=60 s",
    ]
    with output.open("w") as file:
        run_maven(command, file.fileno())
    found = {
        name: verdict
        for report in REPORTS.glob("TEST-*RestartPhases.xml")
        for name, verdict in read(report)
    }
    assert list(found) == [f"RestartPhases#{phase}"], output.read_text()[-3000:]
    verdict = found[f"RestartPhases#{phase}"]
    assert verdict.problem is None, verdict.problem


@pytest.mark.requirement("PRD-03", "DLY-03", "SUB-02", "RCV-08")
def test_what_qpid_jms_was_promised_outlives_a_kill(maven: str, tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    run_phase(maven, "before", url=broker.url, folder=tmp_path)
    broker.kill()
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    run_phase(maven, "after", url=again.url, folder=tmp_path)
    assert again.stop() == 0
