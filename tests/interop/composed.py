"""A broker with the settings of the compose file: its files, and whether it serves each port."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path
from typing import Final

from broker.amqp.frames import SASL_HEADER
from tests.interop import deployment
from tests.interop.broker_process import BrokerProcess
from tests.interop.deployment import COMPOSE
from tests.support.certificates import SERVER_NAME, Authority

ANSWER_SECONDS: Final = 60
MOUNTED: Final = "/etc/jms-broker-tls"
"""The folder of the certificate in the container."""

UPGRADE: Final = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: amqp\r\n\r\n"
)


class Composed:
    """The files that compose mounts, in `folder`, with a certificate and free ports.

    The broker sees the folder as `seen_as`. `variables` are those of the compose file.
    """

    def __init__(self, folder: Path, seen_as: str) -> None:
        authority = Authority()
        issued = authority.issue(SERVER_NAME)
        (folder / "tls.crt").write_bytes(issued.chain)
        (folder / "tls.key").write_bytes(issued.key)
        (folder / "password").write_text("sesame\n")
        text = (COMPOSE / "broker.toml").read_text().replace(MOUNTED, seen_as)
        for port in (5671, 5674, 8161):
            text = text.replace(f"port = {port}", "port = 0").replace('"0.0.0.0"', '"127.0.0.1"')
        self.settings: Final = text
        (folder / "compose.toml").write_text(text)
        self.variables: Final[dict[str, str]] = deployment.compose()["environment"] | {
            "JMS_BROKER_CONFIG": f"{seen_as}/compose.toml",
            "JMS_BROKER_PASSWORD_FILE": f"{seen_as}/password",
        }
        self._trusting: Final = authority.client()

    def check(self, broker: BrokerProcess) -> None:
        """Check that amqps, wss and https answer, and that the broker is ready."""
        ports = {name: port_of(url) for name, url in broker.listeners.items()}
        assert self._answer(ports["amqps"], SASL_HEADER).startswith(SASL_HEADER)
        assert self._answer(ports["wss"], UPGRADE).startswith(b"HTTP/1.1 101 ")
        web = http.client.HTTPSConnection(
            SERVER_NAME, port_of(broker.http_url), context=self._trusting, timeout=ANSWER_SECONDS
        )
        for path in ("/livez", "/readyz"):
            web.request("GET", path)
            response = web.getresponse()
            response.read()
            assert response.status == 200, path
        web.close()

    def _answer(self, port: int, sent: bytes) -> bytes:
        """Send bytes over TLS, and return the first ones of the answer."""
        with (
            socket.create_connection((SERVER_NAME, port), timeout=ANSWER_SECONDS) as plain,
            self._trusting.wrap_socket(plain, server_hostname=SERVER_NAME) as secured,
        ):
            secured.sendall(sent)
            return secured.recv(1000)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2].rstrip("/"))
