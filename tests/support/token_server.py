"""A server that gives clients of a test their tokens, as the token endpoint of an issuer does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final

from tests.support.tokens import TokenIssuer

SHORT_S: Final = 1.5
"""Seconds for which a token is valid that expires during a test."""


class TokenServer(ThreadingHTTPServer):
    """Issues tokens, made when a client asks: /good, /bad, /short, and /monitor with that role."""

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
            "/monitor": {"roles": ["monitor"]},
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
