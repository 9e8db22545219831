"""Message groups (RCV-07): one consumer at a time, in order, until it goes or the group closes.

A group belongs to the consumer that got its first message. It moves once that
consumer goes, refuses a message of it, or gets its closing one; and then only
when nothing of it is held any more, so that nothing is overtaken. What comes back
is the next to go, for whoever has the group then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.routing.entries.entry import QueueEntry

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue

NOBODY: Final[i64] = 0
"""The owner of a group that the next consumer may have; consumers are numbered from 1."""

GROUPS_REMEMBERED: Final[i64] = 1024
"""Groups of a queue that keep their consumer though nothing of them is there."""

REMEMBERED_LENGTH_MAX: Final[i64] = 255
"""Groups with longer names are forgotten as soon as nothing of them is there."""


def may_take(*, owner: i64, moves: bool, held: i64, consumer: i64) -> bool:
    """Whether a consumer may have the next message of a group."""
    if owner == NOBODY:
        return held == 0
    return owner == consumer and not moves


def goes_before(one: QueueEntry, other: QueueEntry) -> bool:
    """Whether the queue's order has `one` in front of `other`."""
    if one.message.priority != other.message.priority:
        return one.message.priority > other.message.priority
    return one.position < other.position


@mypyc_attr(acyclic=True)
@final
class Group:
    """What a queue knows of one group.

    `owner` is the number of its consumer, `held` counts what consumers have of
    it, `waiting` the rest. `moves`: its owner gets no more of it. `passed` is,
    for each priority, the first place where a consumer went past the group.
    """

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.owner: i64 = NOBODY
        self.moves = False
        self.held: i64 = 0
        self.waiting: i64 = 0
        self.returned: list[QueueEntry] | None = None
        self.passed: list[int] | None = None

    def may_go_to(self, consumer: i64) -> bool:
        """Whether the consumer of that number may have the group's next message."""
        return may_take(owner=self.owner, moves=self.moves, held=self.held, consumer=consumer)

    def may_go(self, entry: QueueEntry, consumer: i64) -> bool:
        """Whether that is `entry`, and the consumer may have it."""
        if not self.may_go_to(consumer):
            return False
        returned = self.returned
        return not returned or not goes_before(returned[0], entry)

    def pass_over(self, entry: QueueEntry) -> None:
        """Consumers may have gone past `entry`, and meet it again once that can change."""
        if self.passed is None:
            self.passed = [-1] * 10
        priority = entry.message.priority
        position = int(entry.position)
        if self.passed[priority] < 0 or position < self.passed[priority]:
            self.passed[priority] = position

    def put_back(self, entry: QueueEntry) -> None:
        """`entry` comes back: nothing behind it goes before it."""
        if self.returned is None:
            self.returned = []
        at = len(self.returned)
        while at > 0 and goes_before(entry, self.returned[at - 1]):
            at -= 1
        self.returned.insert(at, entry)

    def forget_returned(self, entry: QueueEntry) -> bool:
        """`entry` does not wait any more; True where it had come back before."""
        returned = self.returned
        if returned is None or entry not in returned:
            return False
        returned.remove(entry)
        if not returned:
            self.returned = None
        return True


@final
class Groups:
    """The groups of one queue: those of which something is there, and the latest others."""

    def __init__(self) -> None:
        self._groups: Final[dict[str, Group]] = {}
        self._idle: Final[dict[str, Group]] = {}
        self._owned: Final[dict[int, dict[str, Group]]] = {}

    def size(self) -> int:
        """How many groups are known."""
        return len(self._groups)

    def join(self, entry: QueueEntry, name: str) -> None:
        """`entry` waits from now on, the last of the group `name`."""
        group = self._groups.get(name)
        if group is None:
            group = Group(name)
            self._groups[name] = group
        elif group.waiting == 0 and group.held == 0:
            del self._idle[name]
        group.waiting += 1
        entry.group = group

    def taken(self, entry: QueueEntry, group: Group, consumer: i64) -> None:
        """The consumer of that number, which may have it, has acquired `entry`."""
        group.waiting -= 1
        group.held += 1
        if group.returned is not None:
            group.forget_returned(entry)
        if group.owner != consumer:
            group.owner = consumer
            self._owned.setdefault(int(consumer), {})[group.name] = group
        if entry.message.closes_group:
            group.moves = True

    def back(self, entry: QueueEntry, group: Group, queue: Queue, *, refused: bool) -> None:
        """`entry` is no longer acquired, and waits again, perhaps after a pause.

        `refused`: the consumer that had it will not have it again.
        """
        group.held -= 1
        group.waiting += 1
        group.put_back(entry)
        if refused and group.owner != NOBODY:
            group.moves = True
        self._settled(group, queue)

    def gone(self, entry: QueueEntry, group: Group, queue: Queue) -> None:
        """`entry` has gone for good, acquired or not. Of a deleted queue nothing is known here."""
        if queue.is_deleted:
            return
        if entry.consumer is not None:
            group.held -= 1
        else:
            group.waiting -= 1
            if group.forget_returned(entry):
                self._let_all_look(group, queue)
        self._settled(group, queue)

    def dropped(self, group: Group, queue: Queue) -> None:
        """A message of `group` that was not in memory has gone."""
        group.waiting -= 1
        self._settled(group, queue)

    def _settled(self, group: Group, queue: Queue) -> None:
        """Once nothing of it is held, a group that moves has no owner, and may be forgotten."""
        if group.held > 0:
            return
        if group.moves:
            self._disown(group)
        if group.waiting == 0:
            self._rest(group)
        elif group.owner == NOBODY:
            self._let_all_look(group, queue)

    def _disown(self, group: Group) -> None:
        owned = self._owned.get(int(group.owner))
        if owned is not None:
            owned.pop(group.name, None)
            if not owned:
                del self._owned[int(group.owner)]
        group.owner = NOBODY
        group.moves = False

    def _rest(self, group: Group) -> None:
        """Nothing of `group` is there: remember whose it is, unless there are too many."""
        group.passed = None
        if group.owner == NOBODY:
            del self._groups[group.name]
            return
        self._idle[group.name] = group
        if i64(len(group.name)) > REMEMBERED_LENGTH_MAX:
            self._forget(group)
        elif i64(len(self._idle)) > GROUPS_REMEMBERED:
            self._forget(next(iter(self._idle.values())))

    def _forget(self, idle: Group) -> None:
        del self._idle[idle.name]
        del self._groups[idle.name]
        self._disown(idle)

    def _let_all_look(self, group: Group, queue: Queue) -> None:
        """Consumers that went past `group` may have it now."""
        if group.passed is not None:
            queue.scan_positions.rewind(group.passed, queue.consumers)
            group.passed = None
        queue.router.wake(queue)

    def left(self, consumer: i64, queue: Queue) -> None:
        """The consumer of that number has gone: its groups are free once nothing is held."""
        for group in list(self._owned.get(int(consumer), {}).values()):
            if group.held == 0 and group.waiting == 0:
                self._forget(group)
            else:
                self._disown(group)
                self._settled(group, queue)

    def clear(self) -> None:
        """The queue is deleted, and nothing waits."""
        for group in self._groups.values():
            group.returned = None
        self._groups.clear()
        self._idle.clear()
        self._owned.clear()


def join_group(entry: QueueEntry, queue: Queue) -> None:
    """`entry`, which has a group, waits in `queue` from now on."""
    if queue.groups is None:
        queue.groups = Groups()
    queue.groups.join(entry, entry.message.group)
