"""Qpid JMS logs in with tokens: XOAUTH2, PLAIN, and failover when a token has expired."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from tests.interop.broker_process import BrokerProcess
from tests.interop.test_qpid_jms import run_maven
from tests.support.tokens import AUDIENCE, ISSUER, TokenIssuer

pytestmark = pytest.mark.slow

PHASES: Final = ("xoauth2", "password", "bad", "failover")
SHORT_S: Final = 1.5
"""Seconds for which a token is valid that expires during a test."""

SETTINGS: Final = f"""
[oauth]
issuer = "{ISSUER}"
audience = "{AUDIENCE}"
jwks = "jwks.json"
leeway_s = 0
"""


class TokenServer(ThreadingHTTPServer):
    """Issues tokens to the clients of a test, made when they ask: /good, /bad and /short."""

    daemon_threads = True

    def __init__(self, issuer: TokenIssuer) -> None:
        super().__init__(("127.0.0.1", 0), _TokenRequest)
        self.issuer: Final = issuer


class _TokenRequest(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, TokenServer)
        changed: dict[str, dict[str, object]] = {
            "/good": {},
            "/bad": {"aud": "another"},
            "/short": {"exp": time.time() + SHORT_S},
        }
        self.send_response(200)
        self.end_headers()
        self.wfile.write(server.issuer.token(**changed[self.path]).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Write nothing to standard error."""


@contextmanager
def token_server(issuer: TokenIssuer) -> Iterator[str]:
    """Run a server of tokens, and yield its URL."""
    server = TokenServer(issuer)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.requirement("SEC-07")
def test_qpid_jms_logs_in_with_tokens(maven: str, tmp_path: Path) -> None:
    issuer = TokenIssuer("RS256")
    (tmp_path / "jwks.json").write_bytes(issuer.jwks())
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    output = tmp_path / "output.txt"
    with token_server(issuer) as url:
        command = [maven, "-Dtest=TokenPhases", f"-Dtoken.issuer={url}"]
        found = run_maven(command, url=broker.url, output=output)
    assert set(found) == {f"TokenPhases#{name}" for name in PHASES}, output.read_text()[-3000:]
    problems = {name: each.problem for name, each in found.items() if each.problem is not None}
    assert problems == {}
    assert "credential expired" in broker.log.read_text()
    assert broker.stop() == 0
