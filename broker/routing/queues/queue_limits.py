"""What a queue does at its limits: refuse, make room, or tell how much credit it can stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from broker.message import Message
from broker.routing.addresses.policy import BLOCK, DROP_OLDEST
from broker.routing.credit.credit_pool import UNLIMITED, room_left
from broker.routing.entries.entry import QueueEntry
from broker.routing.errors import QueueFull
from broker.routing.queues.backlog import Backlog
from broker.routing.queues.message_events import PURGED, depart
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue


def check(queue: Queue, message: Message) -> None:
    """Raise QueueFull where there is no room for `message`, and none can be made."""
    policy = queue.policy
    if policy.full != DROP_OLDEST:
        check_all(queue, 1, message.size, max_bytes=bytes_taken_at_most(queue))
    elif 0 < policy.max_bytes < message.size:
        raise QueueFull(f"{queue.address} holds its {policy.max_bytes} bytes")


def bytes_taken_at_most(queue: Queue) -> i64:
    """Return how many bytes `queue` may hold, 0 if there is no limit.

    Twice the limit if it blocks: how many bytes come of credit is unknown when it is granted.
    """
    policy = queue.policy
    return policy.max_bytes * (2 if policy.full == BLOCK else 1)


def check_all(queue: Queue, messages: i64, size: i64, *, max_bytes: i64) -> None:
    """Raise QueueFull where there is no room for so many messages of `size` bytes together.

    What producers have credit for is taken already.
    """
    policy = queue.policy
    if policy.full == DROP_OLDEST:
        return
    staged = staged_for(queue)
    taken = queue.contents() + staged
    if queue.credit_pool is not None:
        taken += queue.credit_pool.granted
    among = f", {staged} of them staged" if staged > 0 else ""
    if 0 < policy.max_messages < taken + messages:
        raise QueueFull(f"{queue.address} holds its {policy.max_messages} messages{among}")
    if 0 < max_bytes < queue.bytes + staged_bytes_for(queue) + size:
        raise QueueFull(f"{queue.address} holds its {policy.max_bytes} bytes")


def staged_for(queue: Queue) -> i64:
    """Return how many messages commits will put into `queue` at most: they have their room.

    Those of sinks, and of transactions where the node that they were sent to blocks.
    """
    staged = queue.staged
    if queue.policy.full == BLOCK:
        staged += queue.posted
    for topic in queue.topics:
        staged += topic.staged
        if topic.policy.full == BLOCK:
            staged += topic.posted
    return staged


def staged_bytes_for(queue: Queue) -> i64:
    """Return how many bytes these have."""
    size = queue.staged_bytes
    if queue.policy.full == BLOCK:
        size += queue.posted_bytes
    for topic in queue.topics:
        size += topic.staged_bytes
        if topic.policy.full == BLOCK:
            size += topic.posted_bytes
    return size


def is_filled_by_stages(queue: Queue) -> bool:
    """Whether `queue` holds producers back, and no consumer can ever make room for them."""
    policy = queue.policy
    staged = staged_for(queue)
    if policy.full != BLOCK or staged == 0:
        return False
    size = staged_bytes_for(queue)
    return (
        room_left(
            max_messages=policy.max_messages, max_bytes=policy.max_bytes, messages=staged, size=size
        )
        == 0
    )


def make_room(queue: Queue, message: Message, batch: Batch) -> None:
    """Drop what may go until `message` fits, or nothing waits: what is delivered cannot go."""
    policy = queue.policy
    while queue.waiting > 0 and not has_room(
        max_messages=policy.max_messages,
        max_bytes=policy.max_bytes,
        messages=queue.contents(),
        size=queue.bytes,
        more=message.size,
    ):
        entry = least(queue.backlogs)
        if entry is None:
            return  # it is being loaded: the next message makes room
        depart(entry, PURGED, batch, reason="displaced")
        queue.withdraw(entry, batch)
        queue.router.stats.displaced += 1


def is_over(queue: Queue, message: Message) -> bool:
    """Whether `queue` is beyond a limit of its address once it has `message`, too."""
    policy = queue.policy
    return not has_room(
        max_messages=policy.max_messages,
        max_bytes=policy.max_bytes,
        messages=queue.contents(),
        size=queue.bytes,
        more=message.size,
    )


def has_room(*, max_messages: i64, max_bytes: i64, messages: i64, size: i64, more: i64) -> bool:
    """Whether a message of `more` bytes fits beside what is there; 0 is no limit."""
    if 0 < max_messages <= messages:
        return False
    return max_bytes == 0 or size + more <= max_bytes


def least(backlogs: list[Backlog | None]) -> QueueEntry | None:
    """What waits longest of the lowest priority that has something."""
    for backlog in backlogs:
        if backlog is not None and backlog.waiting > 0:
            return backlog.first()
    return None


def room_beside(queue: Queue, granted: i64) -> i64:
    """For how many more messages `queue` has room, where so many may come anyway."""
    policy = queue.policy
    if policy.full != BLOCK:
        return UNLIMITED
    return room_left(
        max_messages=policy.max_messages,
        max_bytes=policy.max_bytes,
        messages=queue.contents() + staged_for(queue),
        size=queue.bytes + staged_bytes_for(queue),
        granted=granted,
    )
