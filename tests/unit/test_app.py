"""Settings reach the parts that they are for, and a broker starts and stops as a whole."""

import asyncio
from pathlib import Path

import pytest

from broker.app import WRITTEN_TIMES, App, StoreSpace, limits_of, policies_of
from broker.journal import Journal
from broker.routing.entries.entry import QueueEntry
from broker.settings import MEMORY, AddressSettings, Settings, SettingsError, given_settings
from storage.api import StoreError
from storage.batch import Batch
from storage.memory import MemoryStore
from storage.records import StoredNode
from storage.sql.sqlite.store import SqliteStore
from tests.support.broker import RecordingWatcher
from tests.support.parties import RecordingConsumer
from tests.support.routing import encoded
from tests.support.staging import Staging, task
from tests.support.stored_files import flip
from tests.support.stores import GatedStore
from tests.unit.storage.test_batch import stored

ADDRESSES = [
    pytest.param("orders", True, "DLQ", 20, id="no pattern matches: what is set for all"),
    pytest.param("audit.eu", False, "DLQ", 20, id="one pattern, one setting"),
    pytest.param("audit.us.slow", False, "DLQ", 20, id="the first pattern that matches counts"),
    pytest.param("retry.slow", True, "graveyard", 3, id="several settings"),
]


@pytest.mark.parametrize(("address", "auto_create", "dead_letter", "deliveries"), ADDRESSES)
def test_an_address_has_the_policy_of_its_pattern(
    address: str, auto_create: bool, dead_letter: str, deliveries: int
) -> None:
    settings = Settings(
        address=(
            AddressSettings(pattern="audit.*", auto_create=False),
            AddressSettings(pattern="*.slow", dead_letter="graveyard", max_delivery_count=3),
        )
    )
    policy = policies_of(settings).of(address)
    assert policy.auto_create is auto_create
    assert policy.dead_letter == dead_letter
    assert policy.max_delivery_count == deliveries


def test_dead_letter_properties_are_asked_for_by_address() -> None:
    talkative = AddressSettings(pattern="jms.*", dead_letter_properties=True)
    policies = policies_of(Settings(address=(talkative,)))
    assert policies.of("jms.orders").dead_letter_properties is True
    assert policies.of("orders").dead_letter_properties is False


class RoomyStore(GatedStore):
    """A store that has so much room, whatever it is given."""

    def free_bytes(self) -> int:
        return 100_000


@pytest.mark.requirement("PIP-15")
def test_room_for_the_commits_of_sinks_is_kept_free() -> None:
    """They write once more what is staged."""
    staging = Staging()
    space = StoreSpace(RoomyStore(), Journal(MemoryStore()), staging.stages)
    assert space.free_bytes() == 100_000
    stage = staging.send(task(), b"x" * 1000)
    assert space.free_bytes() == 100_000 - WRITTEN_TIMES * stage.bytes
    staging.commit((0, 0))
    assert space.free_bytes() == 100_000


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


def test_every_limit_of_the_settings_reaches_the_engine() -> None:
    settings = Settings(
        max_frame_size=4096,
        channel_max=7,
        handle_max=6,
        incoming_window=5,
        max_message_size=1000,
        partial_bytes_max=2000,
        handshake_timeout_ms=30,
        idle_time_out_ms=40,
        transactions_max=8,
        transaction_operations_max=9,
        transaction_bytes_max=10,
        transaction_timeout_ms=11,
    )
    limits = limits_of(settings)
    assert limits.max_frame_size == 4096
    assert limits.channel_max == 7
    assert limits.handle_max == 6
    assert limits.incoming_window == 5
    assert limits.max_message_size == 1000
    assert limits.partial_bytes_max == 2000
    assert limits.handshake_timeout_ms == 30
    assert limits.idle_time_out_ms == 40
    assert limits.transactions_max == 8
    assert limits.transaction_operations_max == 9
    assert limits.transaction_bytes_max == 10
    assert limits.transaction_timeout_ms == 11


async def test_two_brokers_live_side_by_side_in_one_loop(tmp_path: Path) -> None:
    one = App(Settings(port=0, users_file=tmp_path / "users", store=MEMORY))
    other = App(Settings(port=0, users_file=tmp_path / "users", store=MEMORY))
    await one.start()
    await other.start()
    assert one.port != other.port
    await one.stop()
    await other.stop()


def test_an_address_has_pauses_of_its_own() -> None:
    settings = Settings(
        redelivery_delay_ms=1000,
        address=(
            AddressSettings(pattern="orders", redelivery_backoff=2, redelivery_delay_max_ms=60_000),
            AddressSettings(pattern="hasty", redelivery_delay_ms=0),
        ),
    )
    pauses = [
        (policy.redelivery_delay_ms, policy.redelivery_backoff, policy.redelivery_delay_max_ms)
        for policy in map(policies_of(settings).of, ("orders", "hasty", "other"))
    ]
    assert pauses == [(1000, 2.0, 60_000), (0, 1.0, 0), (1000, 1.0, 0)]


class Served(RecordingConsumer):
    """Tells when it has got something."""

    def __init__(self, credit: int) -> None:
        super().__init__(credit)
        self.served = asyncio.Event()

    def deliver(self, entry: QueueEntry) -> None:
        super().deliver(entry)
        self.served.set()


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
    assert (app.stats.quarantined, len(consumer.entries), queue.waiting) == (2, 1, 0)
    notice, lost = [event for event in watcher.events if event.startswith("noticed")]
    assert lost.startswith("noticed 2 messages of q")
    assert notice.startswith("noticed 2 stored messages are damaged")
    await app.stop()


async def test_a_broker_whose_store_failed_ends_though_answers_wait_for_it(tmp_path: Path) -> None:
    app = App(given_settings(users_file=tmp_path / "users", store=MEMORY, port=0))
    await app.start()
    app._spawn(_for_ever())
    await asyncio.sleep(0)
    app._store_failed(StoreError("the disk is gone"))
    async with asyncio.timeout(5):
        await app.stop()


async def _for_ever() -> None:
    await asyncio.Event().wait()
