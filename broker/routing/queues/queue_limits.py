"""The limits of a queue: checks for room, making room, and the room left for credit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from broker.message import Message
from broker.routing.addresses.policy import BLOCK, DROP_OLDEST
from broker.routing.credit.credit_pool import UNLIMITED, room_left
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.record_mapping import stored_position
from broker.routing.errors import NeverFits, QueueFull
from broker.routing.queues.message_events import PURGED, depart
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.queues.backlogs import Backlogs
    from broker.routing.queues.queue import Queue


def check(queue: Queue, message: Message) -> None:
    """Raise QueueFull if there is no room for `message`, and none can be made."""
    policy = queue.policy
    if policy.full != DROP_OLDEST:
        check_all(queue, 1, message.size, max_bytes=bytes_taken_at_most(queue))
    elif 0 < policy.max_bytes < message.size:
        raise QueueFull(f"{queue.address} holds its {policy.max_bytes} bytes")


def check_size(queue: Queue, message: Message) -> None:
    """Raise NeverFits if `message` alone is larger than `queue` may be."""
    if 0 < bytes_taken_at_most(queue) < message.size:
        raise NeverFits(
            f"{queue.address} holds {queue.policy.max_bytes} bytes, and the message has"
            f" {message.size}"
        )


def bytes_taken_at_most(queue: Queue) -> i64:
    """Return how many bytes `queue` may hold, 0 if there is no limit.

    Twice the limit if it blocks: credit is granted for messages whose size is not known yet.
    """
    policy = queue.policy
    return policy.max_bytes * (2 if policy.full == BLOCK else 1)


def check_all(queue: Queue, messages: i64, size: i64, *, max_bytes: i64) -> None:
    """Raise QueueFull if there is no room for `messages` messages of `size` bytes together.

    Messages for which producers have credit count as taken; `max_bytes` 0 is no limit.
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
    if 0 < max_bytes < queue.state.bytes + staged_bytes_for(queue) + size:
        raise QueueFull(f"{queue.address} holds its {policy.max_bytes} bytes")


def staged_for(queue: Queue) -> i64:
    """Return the maximum number of messages that commits will put into `queue`.

    They have their room already: messages of sinks, and of transactions if the node that they
    were sent to blocks.
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
    """Return the bytes of the messages that `staged_for` counts."""
    size = queue.staged_bytes
    if queue.policy.full == BLOCK:
        size += queue.posted_bytes
    for topic in queue.topics:
        size += topic.staged_bytes
        if topic.policy.full == BLOCK:
            size += topic.posted_bytes
    return size


def is_filled_by_stages(queue: Queue) -> bool:
    """Return whether `queue` blocks producers, and no consumer can ever make room for them.

    This is so if the messages that `staged_for` counts take all room by themselves.
    """
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
    """Discard messages until `message` fits, or none is left that no consumer holds.

    The first one of the lowest priority is discarded first; once none waits, the scheduled one that
    came first. Delivered messages stay. If a message has to be loaded, the queue owes the room
    until the load ends.
    """
    policy = queue.policy
    while has_any_to_discard(queue) and not has_room(
        max_messages=policy.max_messages,
        max_bytes=policy.max_bytes,
        messages=queue.contents(),
        size=queue.state.bytes,
        more=message.size,
    ):
        if not _discard_least(queue, batch):
            queue.state.owes_room = True
            return


def make_owed_room(queue: Queue, batch: Batch) -> None:
    """Discard waiting messages until the limits are kept, or one is left, after a load.

    The message that the room is owed for is among them: it stays if it is the only one.
    """
    policy = queue.policy
    queue.state.owes_room = False
    while queue.backlogs.waiting > 1 and not has_room(
        max_messages=policy.max_messages,
        max_bytes=policy.max_bytes,
        messages=queue.contents() - 1,
        size=queue.state.bytes,
        more=0,
    ):
        if not _discard_least(queue, batch):
            queue.state.owes_room = True
            return


def has_any_to_discard(queue: Queue) -> bool:
    """Return whether `queue` has messages that no consumer holds."""
    schedule = queue.state.schedule
    return queue.backlogs.waiting > 0 or (schedule is not None and schedule.by_wall.size() > 0)


def _discard_least(queue: Queue, batch: Batch) -> bool:
    """Discard the first message of the lowest priority, or the first one of the scheduled.

    False if it has to be loaded first.
    """
    if queue.backlogs.waiting > 0:
        entry = least(queue.backlogs)
        if entry is None:
            return False
        depart(entry, PURGED, batch, reason="displaced")
        queue.withdraw(entry, batch)
    else:
        schedule = queue.state.schedule
        entry = None if schedule is None else schedule.by_wall.earliest()
        assert entry is not None, "there is a message to discard"
        depart(entry, PURGED, batch, reason="displaced")
        queue.cancel(stored_position(entry), batch)
    queue.context.stats.displaced += 1
    return True


def is_over(queue: Queue, message: Message) -> bool:
    """Return whether `queue` exceeds a limit of its address once `message` is added."""
    policy = queue.policy
    return not has_room(
        max_messages=policy.max_messages,
        max_bytes=policy.max_bytes,
        messages=queue.contents(),
        size=queue.state.bytes,
        more=message.size,
    )


def has_room(*, max_messages: i64, max_bytes: i64, messages: i64, size: i64, more: i64) -> bool:
    """Return whether a message of `more` bytes fits beside `messages` of `size` bytes together.

    A maximum of 0 is no limit.
    """
    if 0 < max_messages <= messages:
        return False
    return max_bytes == 0 or size + more <= max_bytes


def least(backlogs: Backlogs) -> QueueEntry | None:
    """Return the first entry of the lowest priority; None if there is none or it is not loaded."""
    for backlog in backlogs.existing():
        if backlog.waiting > 0:
            return backlog.first()
    return None


def room_beside(queue: Queue, granted: i64) -> i64:
    """Return for how many more messages `queue` has room, beside `granted` credit.

    UNLIMITED if it does not block.
    """
    policy = queue.policy
    if policy.full != BLOCK:
        return UNLIMITED
    return room_left(
        max_messages=policy.max_messages,
        max_bytes=policy.max_bytes,
        messages=queue.contents() + staged_for(queue),
        size=queue.state.bytes + staged_bytes_for(queue),
        granted=granted,
    )
