"""Qpid JMS before and after a `kill -9` of its broker: a run of Maven with each broker process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.broker_process import BrokerProcess
from tests.interop.test_qpid_jms import run_phase

pytestmark = pytest.mark.slow

SETTINGS = 'store = "sqlite:///data/store.db"\n'


@pytest.mark.requirement("PRD-03", "DLY-03", "SUB-02", "RCV-08")
def test_what_qpid_jms_was_promised_outlives_a_kill(maven: str, tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    run_phase(maven, "RestartPhases#before", url=broker.url, folder=tmp_path)
    broker.kill()
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    run_phase(maven, "RestartPhases#after", url=again.url, folder=tmp_path)
    assert again.stop() == 0
