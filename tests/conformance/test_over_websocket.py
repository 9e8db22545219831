"""The harness on this project's broker within WebSocket, with and without TLS.

A few cases of each kind: the listener hands all bytes to the engine that test_this_broker.py tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.asked import Asked, CannotRun, options_of
from tests.conformance.command import run as run_harness
from tests.conformance.harness import all_cases
from tests.conformance.report import in_text
from tests.conformance.running import judge_all
from tests.conformance.test_command import run
from tests.conformance.transport import opened
from tests.conformance.verdict import Options, Verdict
from tests.interop.broker_process import BrokerProcess
from tests.support.certificates import SERVER_NAME, Authority

pytestmark = pytest.mark.requirement("SEC-06")

CASES = {
    "unknown_version_is_answered_with_a_header",
    "anonymous_is_let_in_where_it_is_offered",
    "connection_begins_behind_the_outcome",
    "a_link_to_the_anonymous_terminus_is_accepted",
    "a_container_id_is_free_after_a_lost_socket",
}
"""Cases on the header, the login, the open, a link, and the end of a connection."""

LISTENERS = """
[[listener]]
name = "web"
kind = "ws"
port = 0
path = "/amqp"

[[listener]]
name = "web-tls"
kind = "wss"
port = 0

[tls]
certificate = "server.pem"
key = "server.key"
"""


class WebBroker(BrokerProcess):
    """A broker with WebSocket; `ca` is the file of the authority of its certificate."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        self.ca = authority.write(folder)
        authority.issue(SERVER_NAME, "127.0.0.1").write(folder, "server")
        super().__init__(folder, settings=LISTENERS)


@pytest.fixture(scope="module")
def web_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebBroker]:
    process = WebBroker(tmp_path_factory.mktemp("web"))
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0
    assert "Traceback" not in Path(process.log).read_text()


def options(broker: WebBroker, listener: str) -> Options:
    is_encrypted = broker.listeners[listener].startswith("wss:")
    return options_of(Asked(broker.listeners[listener], ca=broker.ca if is_encrypted else None))


@pytest.mark.parametrize("listener", ["web", "web-tls"])
def test_cases_within_websocket(web_broker: WebBroker, listener: str) -> None:
    cases = [each for each in all_cases() if each.name in CASES]
    results = asyncio.run(judge_all(cases, options(web_broker, listener))).results
    others = [each for each in results if each.verdict is not Verdict.PASSED]
    assert not others, "\n\n".join(in_text(each, frames=True) for each in others)
    assert len(results) == len(CASES)


def test_the_command_turns_the_url_into_one_of_websocket(web_broker: WebBroker) -> None:
    url = web_broker.listeners["web-tls"].replace("wss://127.0.0.1", "amqp://localhost")
    case = ("--case", "unknown_version_is_answered_with_a_header")
    done = run(url, "--websocket", "--tls", "--ca", str(web_broker.ca), *case)
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_path_is_refused(web_broker: WebBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_harness(Asked(web_broker.listeners["web"].replace("/amqp", "/other"))) == 2
    assert "the broker refuses WebSocket: HTTP 404" in capsys.readouterr().err


def test_a_port_without_websocket(web_broker: WebBroker) -> None:
    url = web_broker.url.replace("amqp://", "ws://")
    with pytest.raises((ConnectionError, TimeoutError)):
        asyncio.run(until_opened(options_of(Asked(url, timeout=5.0))))


async def until_opened(asked: Options) -> None:
    await opened(asked)


def test_the_address_of_websocket() -> None:
    assert options_of(Asked("ws://h")) == Options("h", 5673, websocket="/")
    encrypted = options_of(Asked("wss://h/amqp"))
    assert (encrypted.port, encrypted.websocket) == (5674, "/amqp")
    assert encrypted.context is not None
    with pytest.raises(CannotRun):
        options_of(Asked("http://h"))
