"""The log: a line for each event of a connection, and no line that a peer could forge."""

import io
import json

import pytest

from broker.amqp.performatives import Close
from broker.app import App
from broker.log_events import SUBSCRIPTION_ANEW
from broker.log_lines import configure_logging
from broker.net.log import TEXT_MAX, Log, printable
from broker.security.identity import Identity
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
    Log().noticed(SUBSCRIPTION_ANEW.notice("subscription n\nx starts anew: 3 messages dropped"))
    (line,) = lines.getvalue().splitlines()
    told = json.loads(line)
    assert told["event"] == r"subscription n\nx starts anew: 3 messages dropped"
    assert (told["code"], told["level"]) == ("SUB-002", "warning")


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


async def test_the_name_that_a_client_claims_is_logged(lines: io.StringIO, app: App) -> None:
    async with SocketClient(app.port) as client:
        client.login("PLAIN", b"\0guest\nx\0guest")
        await client.header()
        await client.next()
        await client.next()
        await client.open("shop")
    opened = json.loads(lines.getvalue().splitlines()[0])
    assert (opened["user"], opened["claimed_user"]) == ("anonymous", r"guest\nx")


def test_a_management_change_is_a_line_with_its_user(lines: io.StringIO) -> None:
    alice = Identity("alice", roles=frozenset())
    Log().managed(alice, "127.0.0.1:1", {"operation": "DELETE", "type": "queue", "name": "a\nb"})
    (line,) = map(json.loads, lines.getvalue().splitlines())
    assert (line["event"], line["user"], line["operation"], line["name"]) == (
        *("management change", "alice", "DELETE"),
        r"a\nb",
    )
