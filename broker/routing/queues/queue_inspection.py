"""Inspection of a queue by an operator: waiting entries in order of delivery, by number."""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING

from mypy_extensions import i64

from broker.routing.entries.entry import QueueEntry
from broker.routing.queues.backlogs import Backlogs
from broker.routing.queues.message_events import PURGED, depart
from broker.routing.queues.paging import NotLoaded
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue


def purge(queue: Queue, at_most: i64, batch: Batch) -> i64:
    """Discard up to `at_most` waiting messages of `queue`, loading none; return their number."""
    purged = queue.drop_pages(at_most, batch)
    if purged > 0 and queue.state.observer is not None:
        queue.state.observer.dropped(queue, purged, batch, why="which were not in memory")
    for backlog in queue.backlogs.existing():
        for entry in backlog.loaded(-1, at_most - purged):
            depart(entry, PURGED, batch)
            queue.withdraw(entry, batch)
            purged += 1
    return purged


def deliver_now(queue: Queue, number: i64, batch: Batch) -> bool:
    """Make a message available before its delivery time, behind all that are available.

    Return False if no message of that `stored_position` waits for its time.
    """
    schedule = queue.state.schedule
    entry = None if schedule is None else schedule.take(number)
    if entry is None:
        return False
    event_log = queue.context.event_log
    event_log.is_hurried = True
    queue.fall_due(entry, batch)
    event_log.is_hurried = False
    return True


def peek(backlogs: Backlogs, after: i64, at_most: i64) -> list[QueueEntry]:
    """Return waiting entries behind number `after`, whether it is there or not; -1 is the start.

    Numbers are those of `stored_position`. There are fewer than `at_most` if the next ones have to
    be loaded. Raise NotLoaded if there are none for that reason.
    """
    priority: i64 = 9
    position: i64 = -1
    if after >= 0:
        priority = after % 10
        position = after // 10
    found: list[QueueEntry] = []
    while priority >= 0 and i64(len(found)) < at_most:
        backlog = backlogs.by_priority[priority]
        if backlog is not None:
            found += backlog.after(position, at_most - i64(len(found)))
            if backlog.is_cut:
                break
        priority -= 1
        position = -1
    if not found and priority >= 0 and at_most > 0:
        raise NotLoaded
    return found


def with_held(
    found: list[QueueEntry], held: list[QueueEntry], after: i64, *, at_most: i64, is_cut: bool
) -> list[QueueEntry]:
    """Return the entries `found` by `peek` and the `held` ones among them, in one order.

    `is_cut`: more entries wait behind the last one found, so held entries behind it belong to the
    result of the next `peek`.
    """
    start = (-1, -1) if after < 0 else _order(after % 10, after // 10)
    among = [entry for entry in held if order_of(entry) > start]
    if is_cut and found:
        end = order_of(found[-1])
        among = [entry for entry in among if order_of(entry) < end]
    among.sort(key=order_of)
    return list(merge(found, among, key=order_of))[: int(at_most)]


def order_of(entry: QueueEntry) -> tuple[int, int]:
    """Return a key that sorts entries as their queue would deliver them."""
    return _order(entry.message.priority, entry.position)


def _order(priority: i64, position: i64) -> tuple[int, int]:
    return 9 - int(priority), int(position)


def entry_of(backlogs: Backlogs, number: i64) -> QueueEntry | None:
    """Return the waiting entry of `number`, None if there is none.

    Raise NotLoaded if it has to be loaded.
    """
    backlog = backlogs.by_priority[number % 10]
    if backlog is None:
        return None
    position = number // 10
    for entry in backlog.loaded(position - 1, 1):
        if entry.position == position:
            return entry
    if backlog.paged is not None and backlog.paged.ask_for(position):
        raise NotLoaded
    return None


def check_loaded(backlogs: Backlogs, numbers: list[int]) -> None:
    """Raise NotLoaded if any message of `numbers` has to be loaded; request all of these."""
    is_missing = False
    for number in numbers:
        try:
            entry_of(backlogs, number)
        except NotLoaded:
            is_missing = True
    if is_missing:
        raise NotLoaded


def goes_on(backlogs: Backlogs, last: QueueEntry) -> bool:
    """Return whether entries that are not in memory follow `last`."""
    priority = last.message.priority
    for lower in range(priority + 1):
        backlog = backlogs.by_priority[lower]
        if backlog is None or backlog.paged is None:
            continue
        if backlog.paged.pages.is_behind(last.position if lower == priority else i64(-1)):
            return True
    return False
