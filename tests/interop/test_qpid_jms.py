"""Apache Qpid JMS against the broker: every JUnit test of qpid_jms/ as a test of its own.

A JVM runs once, with exactly the JUnit tests that were selected here; its results are then reported
test by test.
"""

from __future__ import annotations

import pytest

from tests.interop.broker_process import Broker
from tests.interop.junit import JUnit, Verdict, junit_tests, sources
from tests.interop.secured_broker import SecuredBroker

pytestmark = pytest.mark.slow


def selected(request: pytest.FixtureRequest) -> list[str]:
    """Return the JUnit tests that this run of pytest selects."""
    return [
        str(item.callspec.params["junit_test"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test_qpid_jms.__name__
    ]


@pytest.fixture(scope="session")
def verdicts(
    request: pytest.FixtureRequest,
    junit: JUnit,
    broker: Broker,
    strict_broker: Broker,
    secured_broker: SecuredBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Verdict]:
    """Return the results of the selected JUnit tests, which run when this is first asked for."""
    others = {
        "broker.strict.url": strict_broker.url,
        "broker.secured.asking": secured_broker.tls_url(),
        "broker.secured.demanding": secured_broker.tls_url(listener="demanding"),
        "broker.secured.folder": str(secured_broker.folder),
    }
    folder = tmp_path_factory.mktemp("junit")
    return junit.run(selected(request), folder, url=broker.url, properties=others)


@pytest.mark.parametrize("junit_test", list(junit_tests()))
def test_qpid_jms(junit_test: str, verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts.get(junit_test)
    if verdict is None:
        pytest.fail(f"{junit_test} did not run", pytrace=False)
    if verdict.problem is not None:
        pytest.fail(verdict.problem, pytrace=False)
    if verdict.skipped is not None:
        pytest.skip(verdict.skipped)


def test_every_junit_test_is_known_here() -> None:
    """A test that JUNIT_TEST does not match would never be reported."""
    written = sum(source.read_text(encoding="utf-8").count("@Test\n") for source in sources())
    assert len(list(junit_tests())) == written > 0
