"""The log: a line a connection, and no line that a peer could forge."""

import io
import json

import pytest

from broker.amqp.performatives import Close
from broker.app import App
from broker.net.log import TEXT_MAX, Log, configure_logging, printable
from tests.support.socket_client import SocketClient


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("qpid-jms:1", "qpid-jms:1", id="an ordinary name"),
        pytest.param("a\nb", "a\\nb", id="a line break"),
        pytest.param("\x1b[2J", "\\x1b[2J", id="an escape sequence"),
        pytest.param("Köln", "Köln", id="letters of any script"),
        pytest.param("x" * 1000, "x" * TEXT_MAX + "…", id="too long"),
    ],
)
def test_peers_texts_are_cut_and_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.fixture
def lines() -> io.StringIO:
    stream = io.StringIO()
    configure_logging("json", "info", stream)
    return stream


def test_a_notice_is_a_line(lines: io.StringIO) -> None:
    Log().noticed("subscription n\nx starts anew: 3 messages dropped")
    (line,) = lines.getvalue().splitlines()
    assert json.loads(line)["event"] == r"subscription n\nx starts anew: 3 messages dropped"


async def test_a_connection_leaves_two_lines(lines: io.StringIO, app: App) -> None:
    async with SocketClient(app.port) as client:
        await client.open("shop")
        client.send(Close())
        await client.closed()
        assert await client.eof()
    events = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [(event["event"], event["container_id"]) for event in events] == [
        ("connection opened", "shop"),
        ("connection closed", "shop"),
    ]
