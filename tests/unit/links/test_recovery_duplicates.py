"""Duplicate detection after a restart, of messages sent before it."""

import asyncio

import pytest

from broker.routing.addresses.policy import AddressPolicy
from tests.unit.links.test_recovery import restarted
from tests.unit.routing.queues.test_duplicates import detecting, held, send, window_of

DETECTING = AddressPolicy(duplicate_window=3)


@pytest.mark.requirement("PRD-03")
def test_a_message_that_is_sent_again_after_a_restart_is_a_repeat() -> None:
    old = detecting()
    send(old, "a", "b", durable=True)
    send(old, "c", node=old.topic(), durable=True)
    send(old, "lost")
    new = restarted(old, policy=DETECTING)
    send(new, "a", "b", "lost", durable=True)
    send(new, "c", node=new.topic(), durable=True)
    assert held(new) == [b"a", b"b", b"lost"]
    assert new.stats.duplicates == 3
    assert window_of(new.topic()).repeats == 1


def test_the_window_goes_on_where_it_was() -> None:
    old = detecting(3, 1000)
    send(old, "a", durable=True)
    old.clock.advance(600)
    send(old, "b", "c", durable=True)
    new = restarted(old, policy=AddressPolicy(duplicate_window=3, duplicate_window_ms=1000))
    new.clock.advance(400)
    send(new, "a", "b", durable=True)
    assert held(new) == [b"a", b"b", b"c", b"a"]
    new.commit()
    assert [int(each.number) for each in asyncio.run(new.store.ids(0))] == [2, 3, 4]


def test_ids_that_are_too_old_are_forgotten_at_the_start() -> None:
    old = detecting(3, 1000)
    send(old, "a", durable=True)
    old.clock.advance(600)
    send(old, "b", durable=True)
    old.clock.advance(400)
    new = restarted(old, policy=AddressPolicy(duplicate_window=3, duplicate_window_ms=1000))
    assert window_of(new.queue()).size() == 1
    new.commit()
    assert [int(each.number) for each in asyncio.run(new.store.ids(0))] == [2]


RIGHT_AGAIN = [
    # ms by which the wall clock was set for "b", ms from then to the restart, and from the restart
    # until "b" is forgotten
    pytest.param(10**10, 400, 1000, id="ahead"),
    pytest.param(-700, 400, 600, id="back"),
]


@pytest.mark.parametrize(("set_by_ms", "age_ms", "left_ms"), RIGHT_AGAIN)
def test_a_wall_clock_that_was_wrong_before_a_restart(
    set_by_ms: int, age_ms: int, left_ms: int
) -> None:
    old = detecting(3, 1000)
    send(old, "a", durable=True)
    old.clock.set_wall(set_by_ms)
    send(old, "b", durable=True)
    old.clock.set_wall(-set_by_ms)
    old.clock.advance(age_ms)
    new = restarted(old, policy=AddressPolicy(duplicate_window=3, duplicate_window_ms=1000))
    new.clock.advance(left_ms - 1)
    send(new, "b", durable=True)
    assert new.stats.duplicates == 1
    new.clock.advance(1)
    send(new, "a", "b", durable=True)
    assert held(new) == [b"a", b"b", b"a", b"b"]


def test_a_window_that_is_smaller_now_forgets_the_oldest() -> None:
    old = detecting(3)
    send(old, "a", "b", "c", durable=True)
    new = restarted(old, policy=AddressPolicy(duplicate_window=1))
    assert new.batch.ids is not None
    assert new.batch.ids.forgotten == [1, 2]
    send(new, "c", durable=True)
    assert new.stats.duplicates == 1


def test_what_is_detected_no_longer_is_forgotten() -> None:
    old = detecting(3)
    send(old, "a", "b", durable=True)
    new = restarted(old)
    assert new.batch.ids is not None
    assert new.batch.ids.forgotten == [1, 2]
    assert new.router.duplicates.ids == 0
