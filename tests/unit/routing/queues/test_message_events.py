"""The event log: the rows that a message leaves, their batch, and how long they are kept."""

import pytest

from broker.routing.addresses.policy import DROP_OLDEST, AddressPolicy
from broker.routing.entries.dead_letter import Cause
from broker.routing.entries.participants import Consumer, Label
from broker.routing.entries.record_mapping import stored_position
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.message_events import (
    KINDS,
    SETTLEMENTS,
    TEXT_MAX,
    TRIM_EVERY,
    TRIM_PERIOD_MS,
    TRIM_STEP,
    EventLogLimits,
    shown,
)
from broker.routing.queues.queue_inspection import deliver_now, purge
from broker.routing.transaction import Retirement, Transaction
from storage.batch import Batch
from storage.events import EVENT_COLUMNS, Trim
from tests.support.clock import WALL_START_MS
from tests.support.parties import RecordingConsumer, RecordingWitness
from tests.support.routing import Routing, new_message
from tests.unit.routing.queues.test_duplicates import sent

LOGGED = AddressPolicy(event_log=True)


class KnownConsumer(RecordingConsumer):
    """A consumer with a label for operators."""

    def label(self) -> Label:
        return Label("shop", "orders\0in", "7/1")


def events(batch: Batch) -> list[dict[str, object]]:
    """Return the rows noted in a batch, by the names of their columns."""
    if batch.events is None:
        return []
    return [dict(zip(EVENT_COLUMNS, row, strict=True)) for row in batch.events.rows]


def told(routing: Routing, *columns: str) -> list[tuple[object, ...]]:
    """Return kind and reason, or other columns, of each event since the last commit."""
    names = columns or ("kind", "reason")
    found = [tuple(event[name] for name in names) for event in events(routing.batch)]
    routing.commit()
    return found


def kinds(routing: Routing) -> list[object]:
    return [kind for (kind,) in told(routing, "kind")]


def test_a_row_says_what_where_and_who() -> None:
    routing = Routing(policy=LOGGED)
    queue = routing.queue()
    queue.put(sent("ID:1", durable=True), routing.batch)
    consumer = KnownConsumer()
    queue.attach_consumer(consumer)
    routing.give(queue, consumer, 1)
    enqueued, delivered = events(routing.batch)
    boot = routing.router.context.event_log.boot
    assert enqueued == {
        "id": 1,
        "at_us": WALL_START_MS * 1000,
        "kind": "enqueued",
        "vhost": "",
        "address": "q",
        "subscription": "",
        "message_id": "ID:1",
        "position": stored_position(consumer.entries[0]),
        "consumer": "",
        "link": "",
        "session": "queue/1",
        "delivery_count": 0,
        "deliver_at_us": 0,
        "txn": "",
        "reason": "",
        "boot": boot,
    }
    assert (delivered["id"], delivered["kind"], delivered["consumer"]) == (2, "delivered", "shop")
    assert (delivered["link"], delivered["session"]) == ("orders\N{REPLACEMENT CHARACTER}in", "7/1")
    assert len(boot) == 16


def test_whoever_does_not_ask_has_no_rows() -> None:
    routing = Routing()
    routing.put(routing.queue(), b"a")
    routing.consumer(routing.queue(), 1, settles=True)
    assert routing.queue().state.observer is None
    assert routing.batch.events is None


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "not durable"])
def test_rows_of_what_came_and_went_in_one_batch_stay(durable: bool) -> None:
    routing = Routing(policy=LOGGED)
    routing.consumer(routing.queue(), 1, settles=True)
    routing.queue().put(new_message(durable=durable), routing.batch)
    routing.pump()
    assert all(message is None for message in routing.batch.appended)
    assert kinds(routing) == ["enqueued", "delivered", "accepted"]


OUTCOMES = [
    (Disposal.REMOVE, [("accepted", "")]),
    (Disposal.RELEASE, [("released", "")]),
    (Disposal.COUNT, [("modified", "the delivery was lost")]),
    (Disposal.FAIL, [("modified", "delivery-failed")]),
    (Disposal.ELSEWHERE, [("modified", "undeliverable-here")]),
    (Disposal.FAIL_ELSEWHERE, [("modified", "delivery-failed, undeliverable-here")]),
    (
        Disposal.DEAD_LETTER,
        [
            ("rejected", ""),
            ("deadlettered", "rejected, to queue DLQ"),
            ("enqueued", "not stored"),
        ],
    ),
]


@pytest.mark.parametrize(
    ("disposal", "expected"), OUTCOMES, ids=[str(each[0]) for each in OUTCOMES]
)
def test_how_a_delivery_ends(disposal: Disposal, expected: list[tuple[str, str]]) -> None:
    routing = Routing(policy=LOGGED)
    routing.put(routing.queue(), b"a")
    consumer = routing.consumer(routing.queue(), 1)
    told(routing)
    consumer.dispose(disposal, routing.batch)
    assert told(routing) == expected


def test_every_outcome_is_told() -> None:
    assert set(SETTLEMENTS) == set(Disposal)
    assert {kind for kind, _ in SETTLEMENTS.values()} < set(KINDS)


CAUSES = [
    (Cause("rejected", "amqp:decode-error", "no such thing"), "amqp:decode-error: no such thing"),
    (Cause("rejected", "amqp:decode-error"), "amqp:decode-error"),
    (Cause("rejected", "", "no such thing"), "no such thing"),
]


@pytest.mark.parametrize(("cause", "reason"), CAUSES)
def test_what_a_consumer_says_of_a_rejection(cause: Cause, reason: str) -> None:
    routing = Routing(policy=LOGGED)
    routing.put(routing.queue(), b"a")
    entry = routing.consumer(routing.queue(), 1).entries[0]
    told(routing)
    routing.queue().dispose(entry, Disposal.DEAD_LETTER, routing.batch, cause=cause)
    assert told(routing)[0] == ("rejected", reason)


def test_a_message_that_fails_too_often() -> None:
    routing = Routing(policy=AddressPolicy(event_log=True, max_delivery_count=2, dead_letter=""))
    routing.put(routing.queue(), b"a")
    consumer = routing.consumer(routing.queue(), 2)
    consumer.dispose(Disposal.FAIL, routing.batch)
    routing.pump()
    consumer.dispose(Disposal.FAIL, routing.batch)
    assert told(routing, "kind", "reason", "delivery_count") == [
        ("enqueued", "not stored", 0),
        ("delivered", "", 0),
        ("modified", "delivery-failed", 0),
        ("delivered", "", 1),
        ("modified", "delivery-failed", 1),
        ("deadlettered", "delivery-limit", 2),
        ("purged", "no dead-letter node takes it", 2),
    ]


@pytest.mark.requirement("DLY-03")
def test_a_message_with_a_delivery_time() -> None:
    routing = Routing(policy=LOGGED)
    later = WALL_START_MS + 1000
    routing.queue().put(new_message(deliver_at_ms=later), routing.batch)
    routing.queue().put(new_message(b"early"), routing.batch)
    routing.advance(1000)
    assert told(routing, "kind", "deliver_at_us", "at_us") == [
        ("scheduled", later * 1000, WALL_START_MS * 1000),
        ("enqueued", 0, WALL_START_MS * 1000),
        ("enqueued", 0, later * 1000),
    ]


@pytest.mark.parametrize(
    ("durable", "reason"),
    [
        (True, "made ready by an operator"),
        (False, "not stored, made ready by an operator"),
    ],
    ids=["durable", "not durable"],
)
def test_a_message_that_an_operator_makes_ready(durable: bool, reason: str) -> None:
    routing = Routing(policy=LOGGED)
    message = new_message(durable=durable, deliver_at_ms=WALL_START_MS + 1000)
    routing.queue().put(message, routing.batch)
    routing.queue().put(new_message(durable=True, deliver_at_ms=WALL_START_MS + 1), routing.batch)
    told(routing)
    assert deliver_now(routing.queue(), 4, routing.batch)
    routing.advance(1)
    assert told(routing) == [("enqueued", reason), ("enqueued", "")]


@pytest.mark.requirement("PRD-04")
def test_an_expired_message_goes_where_the_settings_say() -> None:
    policy = AddressPolicy(event_log=True, expiry="late")
    routing = Routing(patterns=[("q", policy), ("late", LOGGED)])
    routing.queue().put(new_message(expires_at_ms=WALL_START_MS + 5), routing.batch)
    routing.advance(1005)
    assert told(routing, "kind", "address", "reason") == [
        ("enqueued", "q", "not stored"),
        ("expired", "q", "to queue late"),
        ("enqueued", "late", "not stored"),
    ]


def test_whether_the_target_of_a_move_has_an_event_log() -> None:
    policy = AddressPolicy(event_log=True, dead_letter="dead")
    routing = Routing(patterns=[("q", policy), ("dead", AddressPolicy())])
    routing.put(routing.queue(), b"a")
    routing.consumer(routing.queue(), 1).dispose(Disposal.DEAD_LETTER, routing.batch)
    assert told(routing)[-1] == (
        "deadlettered",
        "rejected, to queue dead, which has no event log",
    )


def test_the_first_row_of_a_message_names_its_queue() -> None:
    """A queue that is made anew has another name, and each subscriber one of its own."""
    routing = Routing(policy=LOGGED)
    topic = routing.topic()
    for _ in range(2):
        routing.consumer(topic, 1)
    routing.put(topic, b"a")
    routing.pump()
    routing.put(routing.queue(), b"a", b"b")
    routing.router.delete(routing.queue(), routing.batch)
    routing.put(routing.queue(), b"c")
    routing.queue().put(new_message(deliver_at_ms=WALL_START_MS + 1), routing.batch)
    assert told(routing, "kind", "session") == [
        ("enqueued", "subscriber/1"),
        ("enqueued", "subscriber/2"),
        ("delivered", ""),
        ("delivered", ""),
        ("enqueued", "queue/3"),
        ("enqueued", "queue/3"),
        ("purged", ""),
        ("enqueued", "queue/4"),
        ("scheduled", "queue/4"),
    ]


def test_what_an_operator_takes_out() -> None:
    routing = Routing(policy=LOGGED)
    routing.put(routing.queue(), b"a", b"b")
    told(routing)
    assert purge(routing.queue(), 1, routing.batch) == 1
    assert told(routing) == [("purged", "")]
    routing.router.delete(routing.queue(), routing.batch)
    assert told(routing, "kind", "reason", "position") == [
        ("purged", "1 messages, with their queue", -1)
    ]


def test_what_had_to_make_room() -> None:
    routing = Routing(policy=AddressPolicy(event_log=True, max_messages=1, full=DROP_OLDEST))
    routing.put(routing.queue(), b"a", b"b")
    assert told(routing) == [
        ("enqueued", "not stored"),
        ("purged", "displaced"),
        ("enqueued", "not stored"),
    ]


@pytest.mark.parametrize(
    ("durable", "reason"), [(True, ""), (False, "not stored")], ids=["durable", "not durable"]
)
def test_whether_a_message_outlives_its_broker(durable: bool, reason: str) -> None:
    routing = Routing(policy=LOGGED)
    later = WALL_START_MS + 1000
    routing.queue().put(new_message(durable=durable), routing.batch)
    routing.queue().put(new_message(durable=durable, deliver_at_ms=later), routing.batch)
    routing.advance(1000)
    assert told(routing) == [("enqueued", reason), ("scheduled", reason), ("enqueued", reason)]


def test_a_topic_has_a_row_for_each_subscription() -> None:
    routing = Routing(policy=LOGGED)
    topic = routing.topic()
    for _ in range(2):
        routing.consumer(topic, 0)
    routing.put(topic, b"a")
    assert told(routing, "kind", "address", "subscription") == [("enqueued", "t", "")] * 2


@pytest.mark.requirement("RCV-06")
def test_what_a_transaction_does_has_its_id() -> None:
    routing = Routing(policy=LOGGED)
    routing.put(routing.queue(), b"a", b"b")
    consumer = routing.consumer(routing.queue(), 2)
    told(routing)
    work = Transaction(routing.router, operations_max=0, bytes_max=0)
    work.id = b"\x0a\x0b"
    work.retire(Retirement(consumer.entries[0], Disposal.REMOVE))
    work.post(routing.queue(), new_message(b"c"), 1)
    work.commit(routing.batch)
    other = Transaction(routing.router, operations_max=0, bytes_max=0)
    other.id = b"\x0c"
    other.retire(Retirement(consumer.entries[1], Disposal.REMOVE))
    other.roll_back(routing.batch)
    routing.put(routing.queue(), b"d")
    assert told(routing, "kind", "txn") == [
        ("accepted", "0a0b"),
        ("enqueued", "0a0b"),
        ("modified", "0c"),
        ("enqueued", ""),
    ]


def test_another_observer_is_informed_of_the_same() -> None:
    observer = RecordingWitness()
    routing = Routing(policy=LOGGED, observer=observer)
    routing.put(routing.queue(), b"a")
    routing.consumer(routing.queue(), 1, settles=True)
    assert observer.heard == [(b"a", 0, Disposal.REMOVE)]


def test_a_consumer_has_a_name_only_where_it_says_so() -> None:
    label = Consumer.label(RecordingConsumer())
    assert (label.container_id, label.link, label.session) == ("", "", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "a"),
        ("x" * 300, "x" * TEXT_MAX),
        ("\0a\0", "\N{REPLACEMENT CHARACTER}a\N{REPLACEMENT CHARACTER}"),
    ],
    ids=["short", "long", "with NUL"],
)
def test_texts_are_bounded_and_without_nul(text: str, expected: str) -> None:
    assert shown(text) == expected


# -- rows that are kept


def trim_in(routing: Routing) -> Trim | None:
    """Return the trim of the log that the current batch contains, None if there is none."""
    changes = routing.batch.events
    return None if changes is None else changes.trim


def limited(*, max_events: int = 0, max_age_ms: int = 0) -> Routing:
    """Return routing with the limits `event_log_max_events` and `event_log_max_age_ms`."""
    limits = EventLogLimits(max_events=max_events, max_age_ms=max_age_ms)
    return Routing(policy=LOGGED, event_log_limits=limits)


def test_with_every_thousand_rows_some_go() -> None:
    routing = limited(max_events=10, max_age_ms=60_000)
    queue = routing.queue()
    for _ in range(TRIM_EVERY - 1):
        routing.put(queue, b"a")
    assert trim_in(routing) is None
    routing.put(queue, b"a")
    trim = trim_in(routing)
    assert trim is not None
    assert (trim.floor, trim.step) == (TRIM_EVERY - 9, TRIM_STEP)
    assert trim.before_us == (WALL_START_MS - 60_000) * 1000
    routing.commit()
    assert len(routing.store._events) == 10


def test_old_rows_go_while_nothing_comes() -> None:
    routing = limited(max_age_ms=1000)
    routing.put(routing.queue(), b"a", b"b")
    routing.commit()
    routing.advance(TRIM_PERIOD_MS)
    assert trim_in(routing) is not None
    routing.commit()
    assert [row[0] for row in routing.store._events] == [2], "the newest stays"
    routing.advance(TRIM_PERIOD_MS)
    assert trim_in(routing) is not None


def test_rows_of_an_earlier_process_go_too() -> None:
    routing = limited(max_age_ms=1000)
    routing.router.context.event_log.number_from(1)
    routing.advance(TRIM_PERIOD_MS)
    assert trim_in(routing) is None, "there were none"
    routing.router.context.event_log.number_from(7)
    routing.advance(TRIM_PERIOD_MS)
    assert trim_in(routing) is not None
    routing.put(routing.queue(), b"a")
    assert events(routing.batch)[0]["id"] == 7


def test_without_limits_everything_stays() -> None:
    routing = limited()
    routing.put(routing.queue(), b"a")
    routing.commit()
    routing.advance(TRIM_PERIOD_MS)
    assert trim_in(routing) is None
