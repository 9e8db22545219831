"""Duplicate detection: which messages are duplicates, how long ids are kept, and their cost."""

import tracemalloc
from uuid import UUID

import pytest

from broker.amqp.sections import split
from broker.amqp.types import Char, Float, Symbol, Timestamp, UInt, ULong
from broker.message import Message, read_message
from broker.routing.addresses.policy import REJECT, AddressPolicy
from broker.routing.errors import QueueFull
from broker.routing.queues.duplicates import (
    BYTES_PER_ID,
    COMPACT_FROM,
    DIGEST_BYTES,
    Duplicates,
    DuplicateWindow,
    digest_of,
)
from broker.routing.queues.node import Node
from broker.routing.queues.queue import Queue
from broker.routing.transaction import Transaction
from broker.stats import Stats
from storage.batch import Batch
from tests.support.clock import SimulatedClock
from tests.support.frames import body_of, message
from tests.support.routing import Routing, bodies

NAME = "_AMQ_DUPL_ID"


def sent(
    message_id: object = None,
    body: bytes = b"x",
    *,
    key: object = None,
    durable: bool = False,
) -> Message:
    """Return a message as it is read from a client; `key` is its application property NAME."""
    properties = {} if key is None else {NAME: key}
    data = message(body, durable=durable, message_id=message_id, properties=properties)
    return read_message(split(data, 0, len(data)), data, SimulatedClock())


def detecting(
    window: int = 3, age_ms: int = 0, *, max_messages: int = 0, full: str = REJECT
) -> Routing:
    """Return routing in which all addresses detect duplicates; `age_ms` 0 keeps ids of any age."""
    return Routing(
        policy=AddressPolicy(
            duplicate_window=window,
            duplicate_window_ms=age_ms,
            max_messages=max_messages,
            full=full,
        )
    )


def window_of(node: Node) -> DuplicateWindow:
    assert node.duplicates is not None
    return node.duplicates


def send(routing: Routing, *ids: object, node: Node | None = None, durable: bool = False) -> None:
    """Send messages with these ids, the texts of which are their bodies."""
    for each in ids:
        given = sent(each, str(each).encode(), durable=durable)
        window_of(node or routing.queue()).put(given, routing.batch)


def held(routing: Routing, queue: Queue | None = None) -> list[bytes]:
    """Return the bodies of the ready messages in a queue."""
    waiting = routing.consumer(queue or routing.queue(), 1000).entries
    return [body_of(encoded) for encoded in bodies(waiting)]


ALIKE = [
    ("the same string", sent("a"), sent("a", b"other"), True),
    ("another string", sent("a"), sent("b"), False),
    ("text and bytes", sent("a"), sent(b"a"), False),
    ("the same number", sent(ULong(7)), sent(ULong(7)), True),
    ("a number and its text", sent(ULong(7)), sent("7"), False),
    ("the same uuid", sent(UUID(int=7)), sent(UUID(int=7)), True),
    (
        "the property, of other message-ids",
        sent("a", key="k"),
        sent("b", key="k"),
        True,
    ),
    ("another property", sent("a", key="k"), sent("a", key="l"), False),
    ("a property as another's message-id", sent("k"), sent("a", key="k"), False),
    ("the same bytes as property", sent(key=b"k"), sent(key=b"k"), True),
    ("one number in two widths", sent(key=7), sent(key=UInt(7)), True),
]


@pytest.mark.parametrize(
    ("one", "other", "expected"), [each[1:] for each in ALIKE], ids=[each[0] for each in ALIKE]
)
def test_what_is_a_repeat(one: Message, other: Message, expected: bool) -> None:
    assert digest_of(one) is not None
    assert (digest_of(one) == digest_of(other)) is expected


WITHOUT = {
    "no id": sent(),
    "an empty message-id": sent(""),
    "an empty property": sent("a", key=""),
    "a boolean": sent("a", key=True),
    "a float": sent("a", key=Float(1.5)),
    "a moment": sent("a", key=Timestamp(1)),
    "a character": sent("a", key=Char(65)),
    "a symbol": sent("a", key=Symbol("a")),
}


@pytest.mark.parametrize("given", WITHOUT.values(), ids=WITHOUT)
def test_a_message_without_a_good_id_goes_through_as_any_other(given: Message) -> None:
    routing = detecting()
    window = window_of(routing.queue())
    assert digest_of(given) is None
    window.put(given, routing.batch)
    window.put(given, routing.batch)
    window.publish(given, routing.batch)
    assert not window.knows(given)
    assert (routing.queue().backlogs.waiting, window.size(), window.repeats) == (3, 0, 0)


def test_malformed_properties_are_no_id() -> None:
    given = sent(key="k")
    at = given.encoded.index(b"\x00\x53\x74") + 3
    broken = given.encoded[: at + 3] + b"\xff" + given.encoded[at + 4 :]
    changed = Message(
        encoded=broken, durable=False, priority=4, ttl_ms=-1, arrived_ms=0, expires_at_ms=0
    )
    assert digest_of(changed) is None


def test_an_id_of_any_length_takes_the_same_room() -> None:
    for length in (1, 300, 200_000):
        digest = digest_of(sent(key="k" * length))
        assert digest is not None
        assert len(digest) == DIGEST_BYTES


def test_a_repeat_is_counted_and_goes_nowhere() -> None:
    routing = detecting()
    send(routing, "a", "b", "a", "a")
    assert held(routing) == [b"a", b"b"]
    assert (routing.stats.duplicates, window_of(routing.queue()).repeats) == (2, 2)


def test_a_consumed_message_is_still_known() -> None:
    routing = detecting()
    routing.consumer(routing.queue(), 1, settles=True)
    send(routing, "a")
    routing.pump()
    send(routing, "a")
    assert routing.queue().contents() == 0


def test_the_window_holds_the_latest_ids() -> None:
    routing = detecting(3)
    send(routing, "a", "b", "c", "d")
    send(routing, "b", "a")
    assert held(routing) == [b"a", b"b", b"c", b"d", b"a"]
    assert window_of(routing.queue()).size() == 3


def test_an_id_is_forgotten_when_it_is_old() -> None:
    routing = detecting(3, 1000)
    send(routing, "a")
    routing.clock.advance(999)
    send(routing, "a", "b")
    routing.clock.advance(1)
    send(routing, "a", "b")
    assert held(routing) == [b"a", b"b", b"a"]


@pytest.mark.parametrize("set_by_ms", [-5000, 5000, 10**10], ids=["back", "ahead", "far ahead"])
def test_ids_age_alike_while_the_wall_clock_is_wrong(set_by_ms: int) -> None:
    """Neither are they forgotten too early, nor kept until the wrong time comes."""
    routing = detecting(3, 1000)
    send(routing, "a")
    routing.clock.set_wall(set_by_ms)
    send(routing, "a", "b")
    routing.clock.set_wall(-set_by_ms)
    send(routing, "a", "b")
    assert routing.stats.duplicates == 3
    routing.clock.advance(1000)
    send(routing, "a", "b")
    assert held(routing) == [b"a", b"b", b"a", b"b"]


def test_each_node_has_ids_of_its_own() -> None:
    routing = detecting()
    send(routing, "a")
    send(routing, "a", node=routing.queue("other"))
    assert held(routing) == held(routing, routing.queue("other")) == [b"a"]


def test_a_topic_has_each_message_once_for_all_its_subscribers() -> None:
    routing = detecting()
    topic = routing.topic()
    consumers = [routing.consumer(topic, 10) for _ in range(2)]
    send(routing, "a", "a", "b", node=topic)
    routing.pump()
    assert [len(consumer.taken) for consumer in consumers] == [2, 2]


def test_a_message_that_was_refused_may_be_sent_again() -> None:
    routing = detecting(max_messages=1)
    send(routing, "a")
    with pytest.raises(QueueFull):
        send(routing, "b")
    send(routing, "a")  # a repeat needs no room
    routing.consumer(routing.queue(), 1, settles=True)
    send(routing, "b")
    assert held(routing) == [b"b"]


def test_without_the_setting_nothing_is_remembered() -> None:
    assert Routing().queue().duplicates is None
    assert detecting(0, 1000).queue().duplicates is None


# -- transactions


def test_a_message_of_a_transaction_counts_when_that_is_committed() -> None:
    routing = detecting()
    work = Transaction(routing.router, operations_max=0, bytes_max=0)
    for each in ("a", "b", "a"):
        work.post(routing.queue(), sent(each, each.encode()), 1)
    send(routing, "b")
    work.commit(routing.batch)
    assert held(routing) == [b"b", b"a"]


def test_a_repeat_in_a_transaction_needs_no_room() -> None:
    routing = detecting(max_messages=1)
    send(routing, "a")
    work = Transaction(routing.router, operations_max=0, bytes_max=0)
    work.post(routing.queue(), sent("a", b"a"), 1)
    work.commit(routing.batch)
    assert held(routing) == [b"a"]


def test_a_message_of_a_transaction_that_is_rolled_back_never_was() -> None:
    routing = detecting()
    work = Transaction(routing.router, operations_max=0, bytes_max=0)
    work.post(routing.queue(), sent("a", b"a"), 1)
    work.roll_back(routing.batch)
    send(routing, "a")
    assert held(routing) == [b"a"]


# -- the store


def remembered(batch: Batch) -> tuple[list[int], list[int]]:
    """Return the numbers of the ids that a batch stores, and of those that it removes."""
    if batch.ids is None:
        return [], []
    kept = [int(each.number) for each in batch.ids.remembered if each is not None]
    return kept, batch.ids.forgotten


def test_an_id_is_stored_in_the_batch_of_its_message() -> None:
    routing = detecting()
    send(routing, "a", durable=True)
    assert len(routing.batch.appended) == 1
    assert remembered(routing.batch) == ([1], [])


@pytest.mark.parametrize("window", [10, 0], ids=["detecting", "not detecting"])
def test_a_message_whose_id_is_stored_is_delivered_once_that_is_durable(window: int) -> None:
    routing = Routing(policy=AddressPolicy(duplicate_window=window), commits_take_time=True)
    consumer = routing.consumer(routing.queue(), 2)
    if window:
        send(routing, "a", durable=True)
    else:
        routing.queue().put(sent("a", durable=True), routing.batch)
    routing.pump()
    assert len(consumer.taken) == (0 if window else 1)
    routing.router.context.gates.lift(1, routing.batch.page)
    routing.pump()
    assert len(consumer.taken) == 1


def test_ids_of_messages_that_are_not_stored_are_not_either() -> None:
    routing = detecting()
    send(routing, "a")
    send(routing, "b", node=routing.temporary_queue(), durable=True)
    send(routing, "c", node=routing.queue("/queue/transient/c"), durable=True)
    assert remembered(routing.batch) == ([], [])
    send(routing, "d", node=routing.queue("/queue/durable/d"))
    assert remembered(routing.batch) == ([1], [])


def test_what_leaves_the_window_leaves_the_store() -> None:
    routing = detecting(2)
    send(routing, "a", "b", durable=True)
    routing.commit()
    send(routing, "c", "d", "e", durable=True)
    assert remembered(routing.batch) == ([4, 5], [1, 2])


def test_a_deleted_node_takes_its_ids_along() -> None:
    routing = detecting()
    send(routing, "a", "b", durable=True)
    routing.commit()
    send(routing, "c", durable=True)
    routing.router.delete(routing.queue(), routing.batch)
    assert remembered(routing.batch) == ([], [1, 2])
    assert routing.router.duplicates.ids == 0
    send(routing, "a", durable=True)
    assert held(routing) == [b"a"]


# -- memory


def test_all_nodes_together_remember_so_many() -> None:
    routing = Routing(policy=AddressPolicy(duplicate_window=100))
    shared = Duplicates(routing.clock, Stats(), ids_max=4)
    first, second, third = (routing.queue(name) for name in "abc")
    for node in (first, second, third):
        node.duplicates = DuplicateWindow(node, shared)
    send(routing, 1, 2, 3, node=first)
    send(routing, 1, node=second)
    send(routing, 1, 2, node=third)
    sizes = [int(window_of(node).size()) for node in (first, second, third)]
    assert sizes == [2, 0, 2], "in turn, the first that filled first"
    assert shared.ids == 4
    send(routing, 1, node=second)
    assert [int(window_of(node).size()) for node in (first, second, third)] == [1, 1, 2]


def test_a_window_gives_back_what_it_forgot() -> None:
    routing = detecting(10)
    send(routing, *range(3 * COMPACT_FROM))
    window = window_of(routing.queue())
    assert window.size() == 10
    assert len(window._digests) < 2 * COMPACT_FROM
    before = routing.queue().backlogs.waiting
    send(routing, *range(3 * COMPACT_FROM - 10, 3 * COMPACT_FROM))
    assert routing.queue().backlogs.waiting == before


@pytest.mark.incompatible_with_mypyc
def test_an_id_takes_no_more_memory_than_is_said() -> None:
    count = 50_000
    batch = Batch()
    node = Routing(policy=AddressPolicy(duplicate_window=count)).temporary_queue()
    window = window_of(node)
    tracemalloc.start()
    for number in range(2 * count):
        window._add(number.to_bytes(DIGEST_BYTES), 0, batch)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / count <= BYTES_PER_ID
