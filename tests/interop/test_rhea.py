"""rhea, the AMQP client of Node.js, against the broker: every case of rhea/ as a test."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.interop.broker_process import Broker, BrokerProcess, environment
from tests.interop.conftest import not_available
from tests.interop.foreign_client import ForeignClient, Report, install, run, selected
from tests.interop.secured_broker import SHOP, SHOP_PASSWORD, SecuredBroker
from tests.support.certificates import SERVER_NAME
from tests.support.ports import free_port

pytestmark = pytest.mark.slow

CLIENT: Final = ForeignClient("rhea", sources="*.js", needs=["node", "npm"])
PINNED: Final = ["package.json", "package-lock.json", ".npmrc"]


def installed() -> Path:
    """Return a folder in which node finds rhea, in exactly the version of the lock file."""
    with CLIENT.place(pinned=PINNED) as (place, missing):
        if missing:
            for name in PINNED:
                shutil.copy(CLIENT.folder / name, place)
            install(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], place)
    return place


@pytest.fixture(scope="session")
def report(
    request: pytest.FixtureRequest,
    broker: Broker,
    strict_broker: Broker,
    secured_broker: SecuredBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Report:
    """Return the results of the selected cases, which run when this is first asked for."""
    CLIENT.need()
    folder = tmp_path_factory.mktemp("rhea")
    (folder / "node_modules").symlink_to(installed() / "node_modules")
    for source in CLIENT.folder.glob("*.js"):
        shutil.copy(source, folder)
    command = ["node", "main.js", *selected(request, test_rhea.__name__)]
    return run(command, folder, broker=broker, strict=strict_broker, secured=secured_broker)


@pytest.mark.parametrize("case", CLIENT.cases())
def test_rhea(case: str, report: Report) -> None:
    report.check(case)


WEB: Final = """
[[listener]]
name = "web"
kind = "ws"
port = {port}
"""
WEB_TLS: Final = """
[[listener]]
name = "web"
kind = "wss"
port = {port}

[listener.tls]
certificate = "server.pem"
key = "server.key"
"""


@pytest.mark.requirement("SEC-06")
def test_rhea_over_websocket(tmp_path: Path) -> None:
    """The WebSocket is that of Node.js, which has the interface of browsers."""
    CLIENT.need()
    port = free_port()
    broker = BrokerProcess(tmp_path, settings=WEB.format(port=port))
    _sends_over_websocket(tmp_path, f"ws://127.0.0.1:{port}", broker)


@pytest.mark.requirement("SEC-06")
def test_rhea_over_websocket_with_tls(tmp_path: Path) -> None:
    CLIENT.need()
    port = free_port()
    broker = SecuredBroker(tmp_path, settings=WEB_TLS.format(port=port))
    _sends_over_websocket(
        tmp_path,
        f"wss://{SERVER_NAME}:{port}",
        broker,
        NODE_EXTRA_CA_CERTS=broker.file("ca.pem"),
        JMS_BROKER_USER=SHOP,
        JMS_BROKER_PASSWORD=SHOP_PASSWORD,
    )


def _sends_over_websocket(folder: Path, url: str, broker: BrokerProcess, **variables: str) -> None:
    """Send and receive by websocket.js, run with `variables`; then stop the broker."""
    (folder / "node_modules").symlink_to(installed() / "node_modules")
    shutil.copy(CLIENT.folder / "websocket.js", folder)
    done = subprocess.run(
        ["node", *_flag(), "websocket.js", url],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "received 100000\n", done.stderr
    assert broker.stop() == 0
    assert "failed: " not in broker.log.read_text(), "the connection ended as it should"


def _flag() -> list[str]:
    """Return the option that gives Node.js a WebSocket; skip if this version has none."""
    ask = ["-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)"]
    each: list[list[str]] = [[], ["--experimental-websocket"]]
    asked = (subprocess.run(["node", *flags, *ask], capture_output=True) for flags in each)
    found = [flags for flags, done in zip(each, asked, strict=True) if done.returncode == 0]
    if not found:
        not_available("this version of Node.js has no WebSocket")
    return found[0]


def test_every_case_of_rhea_is_known_here() -> None:
    """A case that is written in another form would never be reported."""
    assert len(CLIENT.cases()) == CLIENT.written() > 0
