"""Commits of messages that their senders have settled: they stay in memory until then."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from broker import embedding
from broker.app import App
from broker.message import Origin
from broker.routing.addresses.address import Address
from broker.routing.batches.staged_transaction import KEPT_MAX
from broker.routing.batches.staging_area import KEPT_BYTES_MAX
from broker.routing.queues.node import QUEUE
from storage.stages import STAGED
from tests.support.bridges import store_in
from tests.support.broker import Client
from tests.support.frames import message
from tests.support.management import Reply, request
from tests.support.parties import RecordingProducer
from tests.support.routing import new_message
from tests.support.staging import task
from tests.support.stores import GatedStore
from tests.unit.management.test_sinks import Setting, named

pytestmark = pytest.mark.requirement("PIP-12", "PIP-13")

SETTLED = 1


def sender(setting: Setting, *, settles: bool = True, batch: int = 0, attempt: int = 0) -> Client:
    """Return a client with a link that stages messages for the query `o`."""
    client = setting.broker.session(f"task-{settles}-{batch}-{attempt}")
    properties: dict[str, object] = {
        "stage-query": "o",
        "stage-batch": batch,
        "stage-partition": 0,
        "stage-attempt": attempt,
    }
    client.attach_sender(properties=properties, snd_settle_mode=SETTLED if settles else 2)
    return client


def send(client: Client, *bodies: bytes, settled: bool = True, first: int = 0) -> None:
    for number, body in enumerate(bodies, first):
        client.transfer(number, payload=message(body, durable=True), settled=settled)


def stored(setting: Setting) -> list[str]:
    """Return the queues of the messages that the store has."""
    store, most = setting.broker.store, setting.broker.router.context.next_stored_number()
    return [each.queue for each in store.load_now(list(range(1, int(most))))]


def test_they_are_written_once_by_the_commit() -> None:
    setting = Setting()
    send(sender(setting), b"a", b"b")
    send(sender(setting, attempt=1), b"failed")
    assert (stored(setting), setting.row()["staged"]) == ([], 3)
    reply = setting.commit((0, 0, 2))
    assert (reply.status, reply.map) == (200, {"committed": True, "messages": 2})
    assert stored(setting) == ["q", "q"]
    assert setting.bodies() == [b"a", b"b"]
    assert setting.row()["staged"] == 0
    assert setting.broker.router.staging_area.kept_bytes == 0
    assert setting.commit((0, 0, 2)).map == {"committed": False, "messages": 0}


def test_a_commit_with_another_number_changes_nothing() -> None:
    setting = Setting()
    client = sender(setting)
    send(client, b"a")
    assert setting.commit((0, 0, 2)).status == 412
    send(client, b"b", first=1)
    assert setting.commit((0, 0, 2)).map["committed"] is True
    assert setting.bodies() == [b"a", b"b"]


DROPS: list[tuple[str, dict[str, Any], int]] = [
    # the operation, its arguments, how many messages are left
    ("ABORT", {"batch": 0}, 0),
    ("FORGET", {}, 0),
    ("TRIM", {"batch": 0, "partition": 0, "attempt": 0, "count": 1}, 1),
]


@pytest.mark.parametrize(("operation", "arguments", "left"), DROPS)
def test_they_are_dropped_like_others(operation: str, arguments: dict[str, Any], left: int) -> None:
    setting = Setting()
    send(sender(setting), b"a", b"b", b"c")
    assert setting.ask(operation, **arguments).map == {"messages": 3 - left}
    assert stored(setting) == [STAGED] * left
    area = setting.broker.router.staging_area
    assert (area.kept_bytes, area.messages(), setting.broker.queue().staged) == (0, left, left)


def test_a_sender_that_waits_for_the_store_has_all_stored() -> None:
    setting = Setting()
    send(sender(setting), b"a")
    waiting = sender(setting, settles=False)
    send(waiting, b"b", settled=False)
    assert stored(setting) == [STAGED, STAGED]
    assert setting.commit((0, 0, 2)).map["committed"] is True
    assert setting.bodies() == [b"a", b"b"]


def test_many_of_them_are_stored() -> None:
    setting = Setting()
    client = sender(setting)
    send(client, *[b"x"] * KEPT_MAX)
    assert stored(setting) == []
    send(client, b"one more", first=KEPT_MAX)
    assert len(stored(setting)) == KEPT_MAX + 1
    assert setting.commit((0, 0, KEPT_MAX + 1)).map["committed"] is True


def test_what_memory_has_no_room_for_is_stored() -> None:
    setting = Setting()
    setting.broker.router.staging_area.kept_bytes = KEPT_BYTES_MAX
    send(sender(setting), b"a")
    assert stored(setting) == [STAGED]
    assert setting.commit((0, 0, 1)).map["committed"] is True


async def test_a_commit_waits_for_those_before_it() -> None:
    """Else the one before it would be taken for a repetition, and its messages be lost."""
    store = GatedStore()
    setting = Setting(store)
    running = asyncio.ensure_future(setting.broker.journal.run(setting.broker.container.run_round))
    send(sender(setting, settles=False), b"first", settled=False)
    send(sender(setting, batch=1), b"second")
    for batch in (0, 1):
        body = named((0, 0, 1), batch=batch)
        setting.manager.send(request("COMMIT", "sink", "o", body=body))
    work = [asyncio.ensure_future(each) for each in setting.waiting]
    replies: list[Reply] = []
    for _ in range(1000):
        store.let_all_through()
        await asyncio.sleep(0)
        replies += setting.replies()
    assert [reply.map["committed"] for reply in replies] == [True, True]
    assert setting.bodies() == [b"first", b"second"]
    await asyncio.gather(*work)
    setting.broker.journal.close()
    await running


async def test_a_broker_that_stops_stores_them(tmp_path: Path) -> None:
    def stage(app: App) -> None:
        router, batch = app.container.router, app.journal.batch
        target = router.resolve(Address("q", QUEUE), batch)
        area = router.staging_area
        staged = area.begin(task(), target, "q", origin=Origin())
        staged.join(RecordingProducer(), settles=True)
        staged.put(new_message(message(b"a")), batch)
        assert len(staged.kept) == 1

    store = store_in(tmp_path, "sqlite", "a")
    async with embedding.Broker(store=store) as broker:
        broker._call(stage)
    async with embedding.Broker(store=store) as broker:
        count = broker._call(lambda app: app.container.router.staging_area.messages())
        assert count == 1
