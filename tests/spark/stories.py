"""Short event logs, each with what the audit must find in it, once all queues are empty."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from pyspark_amqp.jobs.findings import (
    DEAD_LETTER,
    DUPLICATE,
    EARLY,
    EXCLUSIVE,
    FIRST,
    HOLDER,
    LOSS,
    ORDER,
    RECORDED,
)
from tests.spark.event_logs import Writer

Story = Callable[[Writer, str], None]


def consumed(told: Writer, q: str) -> None:
    for kind in ("enqueued", "delivered", "accepted"):
        told.note(kind, address=q)


def leased_and_settled(told: Writer, q: str) -> None:
    for kind in ("enqueued", "leased", "settled"):
        told.note(kind, address=q)


def not_consumed(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)


def delivered_only(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("delivered", address=q)


def accepted_twice(told: Writer, q: str) -> None:
    consumed(told, q)
    told.note("accepted", address=q)


def accepted_and_settled(told: Writer, q: str) -> None:
    leased_and_settled(told, q)
    told.note("accepted", address=q)


def began_before_the_journal(told: Writer, q: str) -> None:
    told.note("delivered", address=q)
    told.note("accepted", address=q)


def rejected(told: Writer, q: str) -> None:
    for kind in ("enqueued", "delivered", "rejected", "deadlettered"):
        told.note(kind, address=q)


def rejected_and_nobody_takes_it(told: Writer, q: str) -> None:
    rejected(told, q)
    told.note("purged", address=q, reason="no dead-letter node takes it")


def expired(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("expired", address=q)


def moved_by_an_operator(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("moved", address=q, reason="to queue other")


def gone_with_its_queue(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("purged", "", address=q, position=-1, reason="1 messages, with their queue")


def come_after_its_queue_was_made_anew(told: Writer, q: str) -> None:
    gone_with_its_queue(told, q)
    told.note("enqueued", 2, address=q)


def two_subscribers_without_a_name(told: Writer, q: str) -> None:
    for kind in ("enqueued", "enqueued", "delivered", "delivered", "accepted", "accepted"):
        told.note(kind, address=q)


def one_of_two_subscribers_never_got_it(told: Writer, q: str) -> None:
    for kind in ("enqueued", "enqueued", "delivered", "accepted"):
        told.note(kind, address=q)


def given_to_two(told: Writer, q: str) -> None:
    for kind in ("enqueued", "delivered", "delivered", "accepted"):
        told.note(kind, address=q)


def released_between(told: Writer, q: str) -> None:
    for kind in ("enqueued", "delivered", "released", "delivered", "modified", "delivered"):
        told.note(kind, address=q)
    told.note("accepted", address=q)


def leased_and_given(told: Writer, q: str) -> None:
    for kind in ("enqueued", "leased", "delivered", "accepted"):
        told.note(kind, address=q)


def one_place_of_messages_without_an_id(told: Writer, q: str) -> None:
    """The first one is discarded, and positions begin anew."""
    told.note("enqueued", "", address=q, position=14)
    told.note("purged", "", address=q, position=14)
    told.note("enqueued", 5, address=q, position=4)
    fetched(told, q, 5, position=4)
    told.note("enqueued", "", address=q, position=14)
    fetched(told, q, "", position=14)


def come_and_fetched_after_its_queue_was_made_anew(told: Writer, q: str) -> None:
    enqueued(told, q, 1)
    gone = "1 messages, with their queue"
    told.note("purged", "", address=q, position=-1, reason=gone)
    enqueued(told, q, 1, source="queue/2/of")
    fetched(told, q, 1)


def positions_begun_anew(told: Writer, q: str) -> None:
    consumed(told, q)
    consumed(told, q)


def out_of_order(told: Writer, q: str) -> None:
    for number in (1, 2, 3):
        told.note("enqueued", number, address=q)
    for number in (2, 1, 3):
        told.note("delivered", number, address=q, consumer="c")
        told.note("accepted", number, address=q, consumer="c")


def out_of_order_at_two_consumers(told: Writer, q: str) -> None:
    for number in (1, 2):
        told.note("enqueued", number, address=q)
    for number in (2, 1):
        told.note("delivered", number, address=q, consumer=f"c{number}")
        told.note("accepted", number, address=q, consumer=f"c{number}")


def urgent_ones_first(told: Writer, q: str) -> None:
    told.note("enqueued", 1, address=q, position=14)
    told.note("enqueued", 2, address=q, position=29)
    for number, position in ((2, 29), (1, 14)):
        told.note("delivered", number, address=q, position=position, consumer="c")
        told.note("accepted", number, address=q, position=position, consumer="c")


def a_later_one_again_before_it(told: Writer, q: str) -> None:
    for number in (1, 2, 3):
        told.note("enqueued", number, address=q)
    for number in (1, 2):
        told.note("delivered", number, address=q, consumer="c")
    told.note("released", 1, address=q, consumer="c")
    for number in (3, 1):
        told.note("delivered", number, address=q, consumer="c")
    for number in (1, 2, 3):
        told.note("accepted", number, address=q, consumer="c")


def scheduled(told: Writer, q: str, ahead: timedelta) -> None:
    told.note("scheduled", address=q, position=4, deliver_at=told.now + ahead)


def on_time(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(0))
    consumed(told, q)


def too_early(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(seconds=1))
    consumed(told, q)


def too_early_by_an_operator(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(seconds=1))
    told.note("enqueued", address=q, reason="not stored, made ready by an operator")
    fetched(told, q, 1)


def still_scheduled(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(days=1))


def due_and_never_came(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(0))


def due_and_gone_with_its_queue(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(0))
    told.note("purged", "", address=q, position=-1, reason="1 messages, with their queue")


def due_and_cancelled(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(0))
    told.note("purged", address=q, position=4)


def without_an_id(told: Writer, q: str) -> None:
    told.note("scheduled", "", address=q, deliver_at=told.now + timedelta(seconds=1))
    told.note("enqueued", "", address=q)
    told.note("expired", "", address=q)


def shared_by_two_from_before_the_journal(told: Writer, q: str) -> None:
    """At a topic, two subscribers without names have one place; their beginnings were trimmed."""
    for kind in ("delivered", "delivered", "accepted", "accepted"):
        told.note(kind, address=q)


# -- custody: rows of a broker that names the queue in them


def fetched(
    told: Writer, q: str, message: int | str, consumer: str = "c", *, position: int | None = None
) -> None:
    for kind in ("delivered", "accepted"):
        told.note(kind, message, address=q, consumer=consumer, position=position)


def enqueued(told: Writer, q: str, *numbers: int, source: str = "queue") -> None:
    for number in numbers:
        told.note("enqueued", number, address=q, source=f"{source}/{q}")


def to_another_queue(told: Writer, q: str, reason: str, kind: str = "deadlettered") -> None:
    enqueued(told, q, 1)
    told.note(kind, address=q, reason=reason)


def dead_lettered(told: Writer, q: str) -> None:
    to_another_queue(told, q, "rejected, to queue dead")
    enqueued(told, "dead", 1)
    fetched(told, "dead", 1)


def dead_lettered_and_never_came(told: Writer, q: str) -> None:
    to_another_queue(told, q, "delivery-limit, to queue dead")


def dead_lettered_and_another_came(told: Writer, q: str) -> None:
    to_another_queue(told, q, "rejected, to queue dead")
    enqueued(told, "dead", 2)
    fetched(told, "dead", 2)


def dead_lettered_elsewhere(told: Writer, q: str) -> None:
    to_another_queue(told, q, "rejected, to queue dead")
    enqueued(told, "late", 1)
    fetched(told, "late", 1)


def dead_lettered_where_nothing_is_noted(told: Writer, q: str) -> None:
    to_another_queue(told, q, "rejected, to queue dead, which has no event log")


def expired_and_never_came(told: Writer, q: str) -> None:
    to_another_queue(told, q, "to queue late", "expired")


def accepted_by_another_client(told: Writer, q: str) -> None:
    enqueued(told, q, 1)
    told.note("delivered", address=q, consumer="c")
    told.note("accepted", address=q, consumer="d")


def accepted_by_one_that_gave_it_back(told: Writer, q: str) -> None:
    enqueued(told, q, 1)
    told.note("delivered", address=q, consumer="c")
    told.note("released", address=q, consumer="c")
    told.note("delivered", address=q, consumer="d")
    told.note("accepted", address=q, consumer="c")


def accepted_by_the_second(told: Writer, q: str) -> None:
    enqueued(told, q, 1)
    told.note("delivered", address=q, consumer="c")
    told.note("modified", address=q, consumer="c")
    fetched(told, q, 1, "d")


def settled_by_another_lease(told: Writer, q: str) -> None:
    enqueued(told, q, 1)
    told.note("leased", address=q, consumer="l")
    told.note("settled", address=q, consumer="m")


def accepted_without_a_delivery(told: Writer, q: str) -> None:
    enqueued(told, q, 1)
    told.note("accepted", address=q, consumer="c")


def never_enqueued(told: Writer, q: str) -> None:
    enqueued(told, q, 1, 3)
    for number in (1, 2, 3):
        fetched(told, q, number)


def without_any_row(told: Writer, q: str) -> None:
    enqueued(told, q, 1, 3)
    for number in (1, 3):
        fetched(told, q, number)


def scheduled_messages_take_a_position_too(told: Writer, q: str) -> None:
    enqueued(told, q, 1)
    told.note("scheduled", 2, address=q, source=f"queue/{q}", deliver_at=told.now)
    enqueued(told, q, 3)
    told.note("enqueued", 2, address=q, position=44, source=f"queue/{q}")
    for number in (1, 3):
        fetched(told, q, number)
    told.note("expired", 2, address=q, position=44)


def positions_of_a_new_queue_begin_anew(told: Writer, q: str) -> None:
    enqueued(told, q, 7, 8)
    gone = "2 messages, with their queue"
    told.note("purged", "", address=q, position=-1, reason=gone)
    enqueued(told, q, 1, 2, source="queue/2/of")
    for number in (1, 2):
        fetched(told, q, number)


def subscribers_whose_first_rows_are_gone(told: Writer, q: str) -> None:
    """Two subscribers without names; the log begins with the row of the second one."""
    enqueued(told, q, 5, source="subscriber/2/of")
    told.note("delivered", 5, address=q, consumer="c")
    told.note("delivered", 5, address=q, consumer="d")
    told.note("accepted", 5, address=q, consumer="d")
    told.note("accepted", 5, address=q, consumer="c")


STORIES: Final[list[tuple[Story, set[str]]]] = [
    (consumed, set()),
    (leased_and_settled, set()),
    (not_consumed, {LOSS}),
    (delivered_only, {LOSS}),
    (accepted_twice, {DUPLICATE}),
    (accepted_and_settled, {DUPLICATE}),
    (began_before_the_journal, set()),
    (rejected, set()),
    (rejected_and_nobody_takes_it, set()),
    (expired, set()),
    (moved_by_an_operator, set()),
    (gone_with_its_queue, set()),
    (come_after_its_queue_was_made_anew, {LOSS}),
    (two_subscribers_without_a_name, set()),
    (one_of_two_subscribers_never_got_it, {LOSS}),
    (given_to_two, {EXCLUSIVE}),
    (released_between, set()),
    (leased_and_given, {EXCLUSIVE}),
    (come_and_fetched_after_its_queue_was_made_anew, set()),
    (positions_begun_anew, set()),
    (one_place_of_messages_without_an_id, set()),
    (out_of_order, {ORDER}),
    (out_of_order_at_two_consumers, set()),
    (urgent_ones_first, set()),
    (a_later_one_again_before_it, set()),
    (on_time, set()),
    (too_early, {EARLY}),
    (too_early_by_an_operator, set()),
    (still_scheduled, set()),
    (due_and_never_came, {LOSS}),
    (due_and_gone_with_its_queue, set()),
    (due_and_cancelled, set()),
    (without_an_id, set()),
    (shared_by_two_from_before_the_journal, set()),
    (dead_lettered, set()),
    (dead_lettered_and_never_came, {DEAD_LETTER}),
    (dead_lettered_and_another_came, {DEAD_LETTER}),
    (dead_lettered_elsewhere, {DEAD_LETTER}),
    (dead_lettered_where_nothing_is_noted, set()),
    (expired_and_never_came, {DEAD_LETTER}),
    (accepted_by_another_client, {HOLDER}),
    (accepted_by_one_that_gave_it_back, {HOLDER}),
    (accepted_by_the_second, set()),
    (settled_by_another_lease, {HOLDER}),
    (accepted_without_a_delivery, {FIRST}),
    (never_enqueued, {FIRST}),
    (without_any_row, {RECORDED}),
    (scheduled_messages_take_a_position_too, set()),
    (positions_of_a_new_queue_begin_anew, set()),
    (subscribers_whose_first_rows_are_gone, set()),
]


# -- where a restart makes the difference


def delivered_before_and_after(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("delivered", address=q)
    told.restart()
    told.note("delivered", address=q)
    told.note("accepted", address=q)


def leased_before_and_given_after(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("leased", address=q)
    told.restart()
    told.note("delivered", address=q)
    told.note("accepted", address=q)


def leased_before_and_settled_after(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("leased", address=q, consumer="l")
    told.restart()
    told.note("settled", address=q, consumer="l")


def numbered_anew(told: Writer, q: str) -> None:
    """Positions begin anew when an empty queue is restored, and go on elsewhere otherwise."""
    enqueued(told, q, 1, 2)
    for number in (1, 2):
        fetched(told, q, number)
    told.restart()
    enqueued(told, q, 5, 6)
    for number in (5, 6):
        fetched(told, q, number)


def not_stored(told: Writer, q: str) -> None:
    told.note("enqueued", address=q, reason="not stored")
    told.restart()


def scheduled_and_not_stored(told: Writer, q: str) -> None:
    told.note("scheduled", address=q, position=4, deliver_at=told.now, reason="not stored")
    told.restart()


def another_clock(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(hours=1))
    told.restart()
    consumed(told, q)


RESTARTED: Final[list[tuple[Story, set[str]]]] = [
    (delivered_before_and_after, set()),
    (leased_before_and_given_after, {EXCLUSIVE}),
    (leased_before_and_settled_after, set()),
    (numbered_anew, set()),
    (not_stored, set()),
    (scheduled_and_not_stored, set()),
    (another_clock, set()),
]
