"""Selectors and message groups: a group has one consumer, whatever others select."""

from collections.abc import Callable

import pytest

from broker.message import AT_ONCE, NEVER, Message, optional_fields_of
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.queue import Queue
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing
from tests.support.selected import selectable
from tests.unit.routing.queues.test_selection import BLUE, RED, numbers, put, selective

pytestmark = pytest.mark.requirement("RCV-05", "RCV-07")


def grouped(color: str, number: int, group: str = "g", *, closes: bool = False) -> Message:
    encoded = selectable({"color": color}, body=f"{color} {number}").encoded
    return Message(
        encoded=encoded,
        durable=False,
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=NEVER,
        optional_fields=optional_fields_of(AT_ONCE, group, closes_group=closes),
    )


def test_a_group_that_is_another_s_is_met_again_once_it_is_free() -> None:
    routing = Routing()
    queue = routing.queue()
    owner = routing.consumer(queue, 1)
    red = selective(routing, queue, RED, 10)
    put(routing, queue, grouped("red", 1), grouped("red", 2), grouped("blue", 3))
    assert (numbers(owner), numbers(red)) == ([1], [])
    owner.dispose(Disposal.REMOVE, routing.batch)
    queue.detach_consumer(owner, queue, routing.batch)
    routing.pump()
    assert numbers(red) == [2]


def close_group(routing: Routing, queue: Queue, owner: RecordingConsumer) -> None:
    """Put the closing message of the group, which its owner gets, and settle it."""
    closing = grouped("red", 8, closes=True)
    put(routing, queue, closing)
    while owner.entries:
        owner.dispose(Disposal.REMOVE, routing.batch)


def leave(routing: Routing, queue: Queue, owner: RecordingConsumer) -> None:
    while owner.entries:
        owner.dispose(Disposal.REMOVE, routing.batch)
    queue.detach_consumer(owner, queue, routing.batch)


@pytest.mark.parametrize("end", [leave, close_group], ids=lambda end: end.__name__)
@pytest.mark.parametrize("selects_all", [False, True], ids=["blue", "all"])
def test_a_message_that_its_group_s_owner_does_not_select_waits_for_the_group(
    end: Callable[[Routing, Queue, RecordingConsumer], None], selects_all: bool
) -> None:
    """A group's single consumer takes precedence over throughput: no other consumer gets it."""
    routing = Routing()
    queue = routing.queue()
    owner = selective(routing, queue, RED, 10)
    other = routing.consumer(queue) if selects_all else selective(routing, queue, BLUE)
    put(routing, queue, grouped("red", 1), grouped("blue", 2), grouped("red", 3))
    routing.give(queue, other, 10)
    put(routing, queue, grouped("blue", 4, group="free"))
    routing.pump()
    assert (numbers(owner), numbers(other)) == ([1, 3], [4])
    end(routing, queue, owner)
    routing.pump()
    assert numbers(other) == [4, 2]


@pytest.mark.parametrize("failed", [1, 2])
def test_released_messages_follow_the_failed_ones_of_their_group(failed: int) -> None:
    """A JMS client that rolls back releases what it has prefetched behind the failed messages."""
    policy = AddressPolicy(redelivery_delay_ms=500, redelivery_backoff=2.0)
    routing = Routing(policy=policy)
    queue = routing.queue()
    red = selective(routing, queue, RED, 3)
    put(routing, queue, grouped("red", 1), grouped("red", 2), grouped("red", 3))
    for _ in range(failed):
        red.dispose(Disposal.FAIL, routing.batch)
    while red.entries:
        red.dispose(Disposal.RELEASE, routing.batch)
    put(routing, queue, grouped("red", 4))
    routing.give(queue, red, 9)
    assert numbers(red) == [1, 2, 3], "the group waits"
    routing.advance(500)
    assert numbers(red) == [1, 2, 3, 1, 2, 3, 4]
