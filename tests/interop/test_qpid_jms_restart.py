"""Qpid JMS before and after a `kill -9` of its broker: a JVM with each broker process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.broker_process import BrokerProcess
from tests.interop.junit import JUnit

pytestmark = pytest.mark.slow

SETTINGS = 'store = "sqlite:///data/store.db"\n'


@pytest.mark.requirement("PRD-03", "DLY-03", "SUB-02", "RCV-08")
def test_what_qpid_jms_was_promised_outlives_a_kill(junit: JUnit, tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    junit.phase("RestartPhases#before", tmp_path, url=broker.url)
    broker.kill()
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    junit.phase("RestartPhases#after", tmp_path, url=again.url)
    assert again.stop() == 0
