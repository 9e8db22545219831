"""Qpid JMS over WebSocket: JUnit tests of other modules once more, over `amqpwss` and `amqpws`.

Over `amqpwss` the clients log in with their certificate (SASL EXTERNAL). Over `amqpws`, which has
the same frames of WebSocket, the tests are those with messages of many sizes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from broker.security.users import Users
from tests.interop.broker_process import BrokerProcess
from tests.interop.junit import JUnit, cases_of
from tests.support.certificates import Authority
from tests.support.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.requirement("SEC-06")]

CLASSES: Final = {
    "wss": ("SendReceiveTest", "TransactionTest", "TopicTest", "SelectorTest"),
    # large ones not over TLS: a JVM that compiles fast and little (pom.xml) encrypts 3 MiB/s
    "ws": ("SendReceiveTest", "LargeMessageTest"),
}
LEAST: Final = {"wss": 20, "ws": 8}
"""Number of tests that must have run, by kind of listener."""

NOT_HERE: Final = "TransactionTest#connectionLost"
"""Its proxy, which cuts connections, is for TCP only."""

SECRET: Final = "changeit"

LISTENER: Final = """
[[listener]]
name = "web"
kind = "{kind}"
port = {port}
"""

TLS: Final = """
[listener.tls]
certificate = "server.pem"
key = "server.key"
client_certificates = "require"
client_ca = "ca.pem"
user_from = "san:dns"
"""


class Site:
    """A broker with a listener of one kind; `url` is what clients connect to."""

    def __init__(self, folder: Path, kind: str) -> None:
        port = free_port()
        settings = LISTENER.format(kind=kind, port=port)
        self.kind: Final = kind
        self.properties: dict[str, str] = {}
        if kind == "wss":
            origin = f'origins = ["http://localhost:{port}"]'
            settings = f'users_file = "users"\n{settings}{origin}\n{TLS}'
            self.properties = _stores(folder)
            Users(folder / "users").add(
                "shop", "tulip", roles=["admin"], certificates=["shop.example"]
            )
        self.url: Final = f"amqp{kind}://localhost:{port}"
        self.broker: Final = BrokerProcess(folder, settings=settings)


def _stores(folder: Path) -> dict[str, str]:
    """Write certificates and Java's stores of them; return the JVM's properties that name these."""
    authority = Authority()
    authority.write(folder)
    authority.issue("localhost").write(folder, "server")
    shown, key = authority.issue("shop.example").write(folder, "shop")
    keys, trusted = folder / "keys.p12", folder / "trusted.p12"
    exported = ["openssl", "pkcs12", "-export", "-in", str(shown), "-inkey", str(key)]
    exported += ["-out", str(keys), "-passout", f"pass:{SECRET}"]
    imported = ["keytool", "-importcert", "-noprompt", "-file", str(folder / "ca.pem")]
    imported += ["-keystore", str(trusted), "-storepass", SECRET]
    for command in (exported, imported):
        subprocess.run(command, check=True, capture_output=True)
    return {
        "javax.net.ssl.trustStore": str(trusted),
        "javax.net.ssl.trustStorePassword": SECRET,
        "javax.net.ssl.keyStore": str(keys),
        "javax.net.ssl.keyStorePassword": SECRET,
    }


@pytest.fixture(params=["ws", "wss"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, str(request.param))
    yield made
    assert made.broker.running, f"the broker died, see {made.broker.log}"
    assert made.broker.stop() == 0


def test_qpid_jms_over_websocket(junit: JUnit, site: Site, tmp_path: Path) -> None:
    tests = cases_of(CLASSES[site.kind], but=[NOT_HERE])
    found = junit.run(tests, tmp_path, url=site.url, properties=site.properties)
    assert set(found) == set(tests)
    problems = {name: verdict.problem for name, verdict in found.items() if verdict.problem}
    assert not problems
    ran = [verdict for verdict in found.values() if verdict.skipped is None]
    assert len(ran) >= LEAST[site.kind]
    assert "failed: " not in site.broker.log.read_text(), "no WebSocket connection has failed"
