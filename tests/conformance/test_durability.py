"""The cases on what outlives a restart, on this project's broker: killed, and started again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance.asked import Asked, options_of
from tests.conformance.harness import Case, all_cases, judge
from tests.conformance.report import in_text
from tests.conformance.test_this_broker import RESTARTING
from tests.conformance.verdict import Verdict
from tests.interop.restarted_broker import RestartedBroker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def durable_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartedBroker]:
    broker = RestartedBroker(
        tmp_path_factory.mktemp("durable"), settings='store = "sqlite:///data/store.db"\n'
    )
    yield broker
    broker.stop()


@pytest.mark.parametrize(
    "case", [each for each in all_cases() if each.name in RESTARTING], ids=lambda case: case.name
)
async def test_case(case: Case, durable_broker: RestartedBroker) -> None:
    options = options_of(
        Asked(f"amqp://127.0.0.1:{durable_broker.port}", restart=durable_broker.restart)
    )
    result = await judge(case, options)
    assert result.verdict is Verdict.PASSED, in_text(result, frames=True)


async def test_no_case_passes_on_a_broker_that_forgets(tmp_path: Path) -> None:
    """With its store in memory, the broker loses everything."""
    broker = RestartedBroker(tmp_path, settings='store = "memory"\n')
    options = options_of(Asked(f"amqp://127.0.0.1:{broker.port}", restart=broker.restart))
    try:
        results = [
            await judge(case, replace(options, timeout_s=2.0))
            for case in all_cases()
            if case.name in RESTARTING
        ]
    finally:
        broker.stop()
    passed = [result.case.name for result in results if result.verdict is Verdict.PASSED]
    assert passed == []
