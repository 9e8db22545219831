"""Room in queues for several messages together."""

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.capacity import CapacityCheck
from broker.routing.errors import QueueFull
from tests.support.routing import Routing, new_message


def full_at(*, messages: int = 0, size: int = 0) -> Routing:
    return Routing(policy=AddressPolicy(max_messages=messages, max_bytes=size))


@pytest.mark.parametrize(
    ("there", "asked", "fits"),
    [
        pytest.param(0, 3, True, id="as many as the limit"),
        pytest.param(0, 4, False, id="one more"),
        pytest.param(2, 1, True, id="the rest"),
        pytest.param(2, 2, False, id="more than the rest"),
        pytest.param(3, 0, True, id="nothing for a full queue"),
    ],
)
def test_messages_have_room_together(there: int, asked: int, fits: bool) -> None:
    routing = full_at(messages=3)
    queue = routing.queue()
    routing.put(queue, *[b"x"] * there)
    room = CapacityCheck()
    for _ in range(asked):
        room.add(queue, new_message())
    if fits:
        room.check()
        return
    with pytest.raises(QueueFull, match="3 messages"):
        room.check()


@pytest.mark.parametrize(("size", "fits"), [(5, True), (6, False)], ids=["fits", "does not"])
def test_bytes_have_room_together(size: int, fits: bool) -> None:
    routing = full_at(size=10)
    queue = routing.queue()
    room = CapacityCheck()
    room.add(queue, new_message(b"12345"))
    room.add(queue, new_message(b"x" * size))
    if fits:
        room.check()
        return
    with pytest.raises(QueueFull, match="10 bytes"):
        room.check()


def test_what_leaves_makes_room() -> None:
    routing = full_at(messages=1)
    queue = routing.queue()
    routing.put(queue, b"old")
    consumer = routing.consumer(queue, credit=1)
    room = CapacityCheck()
    room.add(queue, new_message())
    room.give_back(consumer.entries[0])
    room.check()
    room.add(queue, new_message())
    with pytest.raises(QueueFull):
        room.check()


def test_what_leaves_a_queue_that_gets_nothing_is_not_looked_at() -> None:
    routing = full_at(messages=1)
    other = routing.queue("other")
    routing.put(other, b"old")
    consumer = routing.consumer(other, credit=1)
    room = CapacityCheck()
    room.give_back(consumer.entries[0])
    room.check()


def test_every_queue_has_its_own_room() -> None:
    routing = full_at(messages=1)
    room = CapacityCheck()
    room.add(routing.queue("one"), new_message())
    room.add(routing.queue("other"), new_message())
    room.check()
