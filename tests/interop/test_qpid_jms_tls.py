"""Qpid JMS over TLS: the JUnit tests of test_qpid_jms.py once more, with SCRAM and rules loaded.

The user of the suite logs in by SCRAM-SHA-512, because the broker lets it log in by no other
mechanism, and has the rights of the role `application`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.interop.junit import PATIENCE, JUnit, cases_of, junit_tests
from tests.interop.secured_broker import STORE_PASSWORD, SUITE, SUITE_PASSWORD, SecuredBroker

pytestmark = pytest.mark.slow

CLASSES: Final = (
    "AnonymousProducerTest",
    "BrowserTest",
    "ClientIdTest",
    "ConsumerTest",
    "ContextTest",
    "DestinationClassTest",
    "DurableSubscriptionTest",
    "FailoverTest",
    "HelloTest",
    "SelectorTest",
    "SendReceiveTest",
    "SharedSubscriptionTest",
    "TemporaryDestinationTest",
    "TopicAddressTest",
    "TopicTest",
    "UnsubscribeTest",
)
"""The classes that use each kind of name that rules know; the others use queues alone."""

NOT_OVER_TLS: Final = {
    "AddressSettingsTest": "needs the strict broker",
    "FullQueueTest": "needs the strict broker",
    "LargeMessageTest": "a JVM that compiles fast and little (pom.xml) encrypts 3 MiB/s",
    "RefusalTest": "needs the strict broker",
    "SecuredBrokerTest": "is about the listeners of the secured broker already",
    "SecuredConnectionTest": "needs the strict broker",
    "TransactionLimitsTest": "needs the strict broker",
}
NOT_HERE: Final = {
    "ConnectionLossTest#halfMessage": "cuts a connection after 4 MiB, see LargeMessageTest",
    "ConnectionLossTest#notHeldAgainstTheLimit": "opens 25 connections; a busy machine is too slow",
    "ConnectionTest#comeAndGo": "opens 100 connections; a busy machine is too slow",
    "ConnectionTest#withoutSasl": "needs a broker that lets everybody in",
    "ContextTest#exceptions": "needs the strict broker",
}

ALL: Final = "INTEROP_TLS_ALL"
"""With this variable the other classes run as well, which takes twice as long."""

CASE_S: Final = 25
"""Seconds for a JUnit test, whose connections cost more here; less than CLIENT_PATIENCE."""


def classes() -> set[str]:
    """Return the classes of JUnit tests that run here."""
    if not os.environ.get(ALL):
        return set(CLASSES)
    written = {str(each.values[0]).partition("#")[0] for each in junit_tests()}
    return written - NOT_OVER_TLS.keys()


@pytest.mark.requirement("SEC-01")
@pytest.mark.requirement("SEC-02")
@pytest.mark.requirement("SEC-03")
def test_qpid_jms_over_tls(junit: JUnit, secured_broker: SecuredBroker, tmp_path: Path) -> None:
    tests = cases_of(classes(), but=NOT_HERE)
    properties = {
        "javax.net.ssl.trustStore": secured_broker.file("trusted.p12"),
        "javax.net.ssl.trustStorePassword": STORE_PASSWORD,
        "broker.login": f"jms.username={SUITE}&jms.password={SUITE_PASSWORD}",
        PATIENCE: f"{CASE_S} s",
    }
    url = secured_broker.tls_url()
    found = junit.run(tests, tmp_path, url=url, properties=properties)
    assert set(found) == set(tests)
    problems = [f"{name}: {each.problem:.200}" for name, each in found.items() if each.problem]
    assert not problems, "\n".join(problems)
    assert len([verdict for verdict in found.values() if verdict.skipped is None]) >= 150
