"""The drain of a running broker: its listeners, its log, and its end."""

import asyncio
import io
import json
from pathlib import Path

import pytest

from broker.amqp.sections import split
from broker.app import App
from broker.links.broker_group import BrokerGroup
from broker.log_lines import configure_logging
from broker.message import read_message
from broker.served_drain import ServedDrain
from broker.service_notifier import ServiceNotifier
from broker.settings import MEMORY, given_settings
from storage.members import StoredMember
from tests.support.embedded import consume
from tests.support.frames import message
from tests.support.socket_client import SocketClient

pytestmark = pytest.mark.requirement("OPS-14")


def fill(app: App) -> None:
    """Put a message into the queue `q`."""
    container = app.container
    data = message(b"x")
    node = container.router.resolve(container.router.parse("q", "queue"), container.journal.batch)
    read = read_message(split(data, 0, len(data)), data, container.clock)
    node.put(read, container.journal.batch)
    container.run_round()


@pytest.mark.parametrize(
    ("holds", "told"),
    [
        pytest.param(False, "broker drained: no client has unfinished work", id="idle clients"),
        pytest.param(True, "broker drained, but clients have not finished", id="a busy client"),
    ],
)
async def test_it_closes_the_listeners_and_ends(tmp_path: Path, holds: bool, told: str) -> None:
    lines = io.StringIO()
    configure_logging("json", "info", lines)
    times = {"announce_ms": 0, "timeout_ms": 1 if holds else 1000}
    app = App(given_settings(port=0, users_file=tmp_path / "users", store=MEMORY, drain=times))
    await app.start()
    async with SocketClient(app.port) as client:
        if holds:
            fill(app)
            await consume(client, "q", count=1)
        over = asyncio.Event()
        drain = ServedDrain(app, over.set, ServiceNotifier({}))
        app.container.drain.owner = drain
        drain.begin()
        async with asyncio.timeout(10):
            await over.wait()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", app.port)
        await app.stop(0.1)
    events = [str(json.loads(line)["event"]) for line in lines.getvalue().splitlines()]
    assert any(event.startswith(told) for event in events), events


async def test_a_leader_that_drains_hands_over_to_none(tmp_path: Path) -> None:
    """Its process is to end; by a hand-over it would cut clients off, and stand by."""
    app = App(given_settings(port=0, users_file=tmp_path / "users", store=MEMORY))
    group = app.container.group = BrokerGroup("one", app.container.router.timer_queue)
    group.hand_over = lambda: None
    drain = ServedDrain(app, lambda: None, ServiceNotifier({}))
    app.container.drain.owner = drain
    drain.begin()
    app.container.tick()
    group.know([StoredMember("two", {}, wants_to_lead=True)])
    assert group.heir == ""
