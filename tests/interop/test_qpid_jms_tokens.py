"""Qpid JMS logs in with tokens: XOAUTH2, PLAIN, and failover when a token has expired."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.interop.broker_process import BrokerProcess
from tests.interop.junit import JUnit
from tests.support.token_server import token_server
from tests.support.tokens import AUDIENCE, ISSUER, TokenIssuer

pytestmark = pytest.mark.slow

PHASES: Final = [f"TokenPhases#{name}" for name in ("xoauth2", "password", "bad", "failover")]
SETTINGS: Final = f"""
[oauth]
issuer = "{ISSUER}"
audience = "{AUDIENCE}"
jwks = "jwks.json"
leeway_s = 0
"""


@pytest.mark.requirement("SEC-07")
def test_qpid_jms_logs_in_with_tokens(junit: JUnit, tmp_path: Path) -> None:
    issuer = TokenIssuer("RS256")
    (tmp_path / "jwks.json").write_bytes(issuer.jwks())
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    with token_server(issuer) as url:
        found = junit.run(PHASES, tmp_path, url=broker.url, properties={"token.issuer": url})
    assert set(found) == set(PHASES)
    problems = {name: each.problem for name, each in found.items() if each.problem is not None}
    assert problems == {}
    assert "credential expired" in broker.log.read_text()
    assert broker.stop() == 0
