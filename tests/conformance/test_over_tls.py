"""The whole harness on this project's broker as it stands on a hostile network.

TLS, SCRAM-SHA-256 and rules; each case also runs without them in test_this_broker.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from tests.conformance import own_batches
from tests.conformance.asked import Asked, options_of
from tests.conformance.conftest import ADDRESSES
from tests.conformance.harness import all_cases
from tests.conformance.report import in_text
from tests.conformance.running import judge_all
from tests.conformance.test_this_broker import NOT_APPLICABLE, OPEN_TO_ALL, RESTARTING
from tests.conformance.verdict import Options, Verdict
from tests.interop.secured_broker import SHOP, SHOP_PASSWORD, SecuredBroker

pytestmark = pytest.mark.slow

OF_ADMINISTRATORS: Final = {
    case.name for case in all_cases() if case.run.__module__ == own_batches.__name__
}
"""Cases whose requests need rights that the user of these tests does not have."""


def options(secured_broker: SecuredBroker) -> Options:
    return options_of(
        Asked(
            secured_broker.tls_url(),
            user=SHOP,
            password=SHOP_PASSWORD,
            **ADDRESSES,
            ca=Path(secured_broker.file("ca.pem")),
            mechanism="SCRAM-SHA-256",
        )
    )


@pytest.mark.requirement("SEC-01", "SEC-02", "SEC-03")
def test_every_case_over_tls_with_scram_and_rules(secured_broker: SecuredBroker) -> None:
    others = NOT_APPLICABLE | OPEN_TO_ALL | RESTARTING | OF_ADMINISTRATORS
    cases = [each for each in all_cases() if each.name not in others]
    results = asyncio.run(judge_all(cases, options(secured_broker))).results
    not_passed = [each for each in results if each.verdict is not Verdict.PASSED]
    assert not not_passed, "\n\n".join(in_text(each, frames=True) for each in not_passed[:5])
    assert "Traceback" not in Path(secured_broker.log).read_text()
