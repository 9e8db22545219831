"""Start and stop of a whole broker, with the nodes that its settings declare."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from broker.app import App
from broker.routing.entries.entry import QueueEntry
from broker.settings import MEMORY, Settings, SettingsError, given_settings
from storage.api import StoreError
from storage.batch import Batch
from storage.records import StoredNode
from storage.sql.sqlite.store import SqliteStore
from tests.support.broker import RecordingWatcher
from tests.support.parties import RecordingConsumer
from tests.support.routing import encoded
from tests.support.stored_files import flip
from tests.unit.storage.test_batch import stored

DECLARED = {
    "auto_create": False,
    "max_messages": 7,
    "address": ({"pattern": "orders*", "dead_letter": "lost", "max_delivery_count": 3},),
    "queue": ({"name": "orders", "max_delivery_count": 9}, {"name": "plain"}),
    "topic": ({"name": "orders", "expiry": "late"},),
}


def test_declared_nodes_are_there_from_the_start(tmp_path: Path) -> None:
    app = App(given_settings(users_file=tmp_path / "users", store=MEMORY, **DECLARED))
    router = app.container.router
    assert sorted(router.queues) == ["orders", "plain"]
    assert sorted(router.topics) == ["orders"]
    stored = {(node.kind, node.address) for node in asyncio.run(stored_nodes(app))}
    assert stored == {("queue", "orders"), ("queue", "plain"), ("topic", "orders")}


async def stored_nodes(app: App) -> list[StoredNode]:
    app.container.run_round()
    return await app.store.nodes()


def test_what_a_declared_node_leaves_out_is_as_for_its_name(tmp_path: Path) -> None:
    router = App(
        given_settings(users_file=tmp_path / "users", store=MEMORY, **DECLARED)
    ).container.router
    queue, topic = router.queues["orders"].policy, router.topics["orders"].policy
    assert (queue.max_delivery_count, queue.dead_letter, queue.expiry) == (9, "lost", "")
    assert (topic.max_delivery_count, topic.dead_letter, topic.expiry) == (3, "lost", "late")
    plain = router.queues["plain"].policy
    assert (plain.max_delivery_count, plain.dead_letter, plain.max_messages) == (20, "DLQ", 7)


@pytest.mark.requirement("DST-10")
def test_a_declared_node_may_have_a_class_in_either_order(tmp_path: Path) -> None:
    declared = {"queue": ({"name": "/durable/queue/a", "max_messages": 7},)}
    router = App(
        given_settings(users_file=tmp_path / "users", store=MEMORY, **declared)
    ).container.router
    assert router.queues["/queue/durable/a"].policy.max_messages == 7


def test_declaring_again_changes_nothing(tmp_path: Path) -> None:
    app = App(given_settings(users_file=tmp_path / "users", store=MEMORY, **DECLARED))
    router = app.container.router
    before = dict(router.queues)
    router.declare(app.journal.batch)
    assert router.queues == before


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        pytest.param("queue", "$tmp/queue/x", "no temporary node", id="a temporary one"),
        pytest.param("queue", "$management", "no queue or topic", id="the broker itself"),
        pytest.param("topic", "a/b", "has no /", id="a topic with a key"),
        pytest.param("queue", "a\nb", "control characters", id="a name that cannot be"),
        pytest.param("queue", "/queue/tmp/a", "by the connection", id="a connection's own"),
        pytest.param("queue", "/durable/queue/", "lacks a name", id="a class alone"),
        pytest.param("queue", "/durable/topic/a", "is no queue", id="another kind"),
    ],
)
def test_a_node_that_cannot_be_stops_the_start(
    tmp_path: Path, kind: str, name: str, told: str
) -> None:
    nodes: dict[str, object] = {kind: ({"name": name},)}
    with pytest.raises(SettingsError, match=told):
        App(given_settings(users_file=tmp_path / "users", store=MEMORY, **nodes))


async def test_two_brokers_live_side_by_side_in_one_loop(tmp_path: Path) -> None:
    one = App(Settings(port=0, users_file=tmp_path / "users", store=MEMORY))
    other = App(Settings(port=0, users_file=tmp_path / "users", store=MEMORY))
    await one.start()
    await other.start()
    assert one.port != other.port
    await one.stop()
    await other.stop()


class Served(RecordingConsumer):
    """A consumer that sets the event `served` when it gets a message."""

    def __init__(self, credit: int) -> None:
        super().__init__(credit)
        self.served = asyncio.Event()

    def deliver(self, entry: QueueEntry) -> None:
        super().deliver(entry)
        self.served.set()


PG: Final = "postgresql://broker@127.0.0.1/broker"

AUDITS: Final = [
    # store, settings of the audit; whether the operator is told that there are no records
    pytest.param(PG, {}, True, id="PostgreSQL"),
    pytest.param(PG, {"enabled": False}, False, id="no records wanted"),
    pytest.param(PG, {"directory": "audit"}, False, id="a folder"),
    pytest.param(MEMORY, {}, False, id="memory"),
    pytest.param("sqlite:///store.db", {}, False, id="SQLite"),
]


@pytest.mark.requirement("SEC-08")
@pytest.mark.parametrize(("store", "audit", "told"), AUDITS)
def test_the_operator_is_told_that_there_are_no_audit_records(
    store: str,
    audit: dict[str, object],
    told: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    watcher = RecordingWatcher()
    App(given_settings(users_file=tmp_path / "users", store=store, audit=audit), watcher=watcher)
    notices = [each for each in watcher.events if "no audit records" in each]
    assert len(notices) == int(told)


async def test_damaged_messages_are_told_once_and_counted(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    batch.add_node(StoredNode(address="q", kind="queue"))
    for number in (1, 2, 3):
        batch.append(stored(number).fallen_due(number * 10 + 4).with_bytes(encoded(b"x")))
    await store.commit(batch)
    await store.close()
    flip(database, 1, 2)
    watcher = RecordingWatcher()
    settings = Settings(port=0, users_file=tmp_path / "users", store=f"sqlite:///{database}")
    app = App(settings, watcher=watcher)
    await app.start()
    consumer = Served(10)
    queue = app.container.router.queues["q"].attach_consumer(consumer)
    queue.consumer_ready(consumer, drain=False)
    app.container.run_round()
    await asyncio.wait_for(consumer.served.wait(), 10)
    assert (app.stats.quarantined, len(consumer.entries), queue.backlogs.waiting) == (2, 1, 0)
    notice, lost = [event for event in watcher.events if event.startswith("noticed")]
    assert lost.startswith("noticed 2 messages of q")
    assert notice.startswith("noticed 2 stored messages are damaged")
    await app.stop()


async def test_a_broker_whose_store_failed_ends_though_answers_wait_for_it(tmp_path: Path) -> None:
    app = App(given_settings(users_file=tmp_path / "users", store=MEMORY, port=0))
    await app.start()
    app._beside.spawn(_for_ever())
    await asyncio.sleep(0)
    app._store_failed(StoreError("the disk is gone"))
    async with asyncio.timeout(5):
        await app.stop()


async def _for_ever() -> None:
    await asyncio.Event().wait()
