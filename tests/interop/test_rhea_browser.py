"""rhea in a page of a headless browser, over `wss`: it sends and receives, if its origin may."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Final
from urllib.parse import urlencode, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.interop.conftest import not_available
from tests.interop.secured_broker import SHOP, SHOP_PASSWORD, SecuredBroker
from tests.interop.test_rhea import CLIENT, installed
from tests.support.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.requirement("SEC-06")]

ANSWER_SECONDS: Final = 60
"""Maximum number of seconds until a page says something, with the start of the browser."""

WEB: Final = """
[[listener]]
name = "web"
kind = "wss"
port = {port}
origins = ["{origin}"]

[listener.tls]
certificate = "server.pem"
key = "server.key"
"""

FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""The tests run as root, where the browser has no sandbox; it opens pages of the test only."""


class PageServer(ThreadingHTTPServer):
    """Serves the page and rhea; `said` is what the page says. It has two origins."""

    daemon_threads = True

    def __init__(self, files: dict[str, Path]) -> None:
        super().__init__(("127.0.0.1", 0), _PageRequest)
        self.files: Final = files
        self.said: Final[SimpleQueue[str]] = SimpleQueue()

    @property
    def origin(self) -> str:
        """The origin that may connect to the broker."""
        return f"http://localhost:{self.server_address[1]}"

    @property
    def other_origin(self) -> str:
        """An origin that may not: to a browser, the same server by its address is another site."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _PageRequest(BaseHTTPRequestHandler):
    @property
    def _pages(self) -> PageServer:
        assert isinstance(self.server, PageServer)
        return self.server

    def do_GET(self) -> None:
        file = self._pages.files.get(urlsplit(self.path).path)
        self.send_response(200 if file else 404)
        self.end_headers()
        if file:
            self.wfile.write(file.read_bytes())

    def do_POST(self) -> None:
        self._pages.said.put(self.rfile.read(int(self.headers["content-length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Write nothing to standard error."""


@pytest.fixture
def pages() -> Iterator[PageServer]:
    """Yield the server of the page."""
    CLIENT.need()
    rhea = installed() / "node_modules" / "rhea" / "dist" / "rhea-umd.js"
    files = {"/page.html": CLIENT.folder / "page.html", "/rhea-umd.js": rhea}
    server = PageServer(files)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def chromium() -> str:
    """Return the command; skip unless it is installed."""
    if shutil.which("chromium") is None:
        not_available("chromium is not installed: no test with a browser")
    return "chromium"


@contextmanager
def browser(url: str, folder: Path, *, trusted: Path) -> Iterator[None]:
    """Run the browser with one page; it trusts no authority but this certificate."""
    key = x509.load_pem_x509_certificate(trusted.read_bytes()).public_key()
    spki = hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    own = [
        f"--user-data-dir={folder / 'profile'}",
        f"--ignore-certificate-errors-spki-list={base64.b64encode(spki.digest()).decode()}",
    ]
    with (folder / "chromium.txt").open("w") as output:
        process = subprocess.Popen(
            [chromium(), *FLAGS, *own, url],
            cwd=folder,
            env=os.environ | {"HOME": str(folder)},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.parametrize(
    ("is_listed", "said"),
    [
        pytest.param(True, "received a book", id="a page of a listed origin sends and receives"),
        pytest.param(False, "no connection", id="a page of another origin is refused"),
    ],
)
def test_rhea_in_a_browser(
    pages: PageServer, tmp_path: Path, *, is_listed: bool, said: str
) -> None:
    port = free_port()
    settings = WEB.format(port=port, origin=pages.origin)
    broker = SecuredBroker(tmp_path, settings=settings)
    asked = {"url": f"wss://localhost:{port}", "username": SHOP, "password": SHOP_PASSWORD}
    origin = pages.origin if is_listed else pages.other_origin
    page = f"{origin}/page.html?{urlencode(asked)}"
    with browser(page, tmp_path, trusted=tmp_path / "server.pem"):
        assert pages.said.get(timeout=ANSWER_SECONDS) == said
    assert broker.stop() == 0
    assert ("403 Forbidden: invalid Origin" in broker.log.read_text()) != is_listed
