"""Message groups (RCV-07): one consumer at a time, in order, until it leaves or the group closes.

A group belongs to the consumer that got its first message. It moves to another once
that consumer leaves, refuses a message of the group, or gets the closing message; and
then only when no consumer holds messages of the group, so that none is overtaken. A
returned message is the next of the group, for the consumer that has the group then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Wakeable

if TYPE_CHECKING:
    from broker.routing.queues.scan_positions import ScanPositions

NOBODY: Final[i64] = 0
"""The owner of a group that any consumer may take; consumers are numbered from 1."""

GROUPS_REMEMBERED: Final[i64] = 1024
"""Maximum groups of a queue that keep their consumer though the queue has no message of them."""

REMEMBERED_LENGTH_MAX: Final[i64] = 255
"""Maximum characters in the name of a group that is remembered without messages."""


def may_take(*, owner: i64, moves: bool, held: i64, consumer: i64) -> bool:
    """Return whether a consumer may have the next message of a group."""
    if owner == NOBODY:
        return held == 0
    return owner == consumer and not moves


def goes_before(one: QueueEntry, other: QueueEntry) -> bool:
    """Return whether `one` is before `other` in the queue's order."""
    if one.message.priority != other.message.priority:
        return one.message.priority > other.message.priority
    return one.position < other.position


def note_first(first: list[int], entry: QueueEntry) -> None:
    """Note the position of `entry` in `first` if no lower one of its priority is noted there."""
    priority = entry.message.priority
    position = int(entry.position)
    if first[priority] < 0 or position < first[priority]:
        first[priority] = position


@mypyc_attr(acyclic=True)
@final
class Group:
    """The state of one group in a queue.

    `owner` is the number of its consumer, `held` counts its messages that consumers
    hold, `waiting` the others. `moves`: its owner gets no more of them. `returned` are
    its returned messages, in order. `passed` is, for each priority, the first position
    at which a consumer skipped the group; -1 for none. `behind` is the same of those that a
    consumer skipped which may have them, but only after a returned one.
    """

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.owner: i64 = NOBODY
        self.moves = False
        self.held: i64 = 0
        self.waiting: i64 = 0
        self.returned: list[QueueEntry] | None = None
        self.passed: list[int] | None = None
        self.behind: list[int] | None = None

    def may_go_to(self, consumer: i64) -> bool:
        """Return whether the consumer of that number may have the group's next message."""
        return may_take(owner=self.owner, moves=self.moves, held=self.held, consumer=consumer)

    def may_go(self, entry: QueueEntry, consumer: i64) -> bool:
        """Return whether `entry` is the group's next message, and the consumer may have it."""
        if not self.may_go_to(consumer):
            return False
        returned = self.returned
        return not returned or not goes_before(returned[0], entry)

    def pass_over(self, entry: QueueEntry) -> None:
        """Note that a consumer may have skipped `entry`; it looks again once the group is free."""
        if self.passed is None:
            self.passed = [-1] * 10
        note_first(self.passed, entry)

    def skip(self, entry: QueueEntry, consumer: i64) -> None:
        """Note that the consumer of that number has skipped `entry`, which may not go to it now."""
        self.pass_over(entry)
        if self.may_go_to(consumer):
            if self.behind is None:
                self.behind = [-1] * 10
            note_first(self.behind, entry)

    def put_back(self, entry: QueueEntry) -> None:
        """Add `entry` to the returned messages: no later one is delivered before it."""
        if self.returned is None:
            self.returned = []
        at = len(self.returned)
        while at > 0 and goes_before(entry, self.returned[at - 1]):
            at -= 1
        self.returned.insert(at, entry)

    def forget_returned(self, entry: QueueEntry) -> bool:
        """Remove `entry` from the returned messages; False if it was not one of them."""
        returned = self.returned
        if returned is None or entry not in returned:
            return False
        returned.remove(entry)
        if not returned:
            self.returned = None
        return True


@final
class Groups:
    """The groups of one queue: those with messages in it, and the latest others."""

    def __init__(self, queue: Wakeable, scan_positions: ScanPositions) -> None:
        self._queue: Wakeable | None = queue
        self._scan_positions: Final = scan_positions
        self._groups: Final[dict[str, Group]] = {}
        self._idle: Final[dict[str, Group]] = {}
        self._owned: Final[dict[int, dict[str, Group]]] = {}

    def size(self) -> int:
        """Return the number of known groups."""
        return len(self._groups)

    def join(self, entry: QueueEntry, name: str) -> None:
        """Add `entry`, which waits from now on, as the last one of the group `name`."""
        group = self._groups.get(name)
        if group is None:
            group = Group(name)
            self._groups[name] = group
        elif group.waiting == 0 and group.held == 0:
            del self._idle[name]
        group.waiting += 1
        entry.group = group

    def taken(self, entry: QueueEntry, group: Group, consumer: i64) -> None:
        """Note that the consumer of that number, which may have it, has acquired `entry`."""
        group.waiting -= 1
        group.held += 1
        if group.returned is not None and group.forget_returned(entry):
            self._let_look(group, consumer)
        if group.owner != consumer:
            group.owner = consumer
            self._owned.setdefault(int(consumer), {})[group.name] = group
        if entry.message.closes_group:
            group.moves = True

    def adopted(self, group: Group, consumer: i64) -> None:
        """Let the consumer of that number go on with a group whose held messages it takes over."""
        if group.owner == NOBODY:
            group.owner = consumer
            self._owned.setdefault(int(consumer), {})[group.name] = group

    def back(self, entry: QueueEntry, group: Group, *, refused: bool) -> None:
        """Note that `entry` is no longer acquired and waits again, perhaps after a pause.

        `refused`: the consumer that had it will not get it again.
        """
        group.held -= 1
        group.waiting += 1
        group.put_back(entry)
        if refused and group.owner != NOBODY:
            group.moves = True
        self._settled(group)

    def gone(self, entry: QueueEntry, group: Group) -> None:
        """Note that `entry` has left for good, acquired or not. Ignored after `clear`."""
        if self._queue is None:
            return
        if entry.consumer is not None:
            group.held -= 1
        else:
            group.waiting -= 1
            if group.forget_returned(entry):
                self._let_all_look(group)
        self._settled(group)

    def dropped(self, group: Group) -> None:
        """Note that a message of `group` that was not in memory has left."""
        group.waiting -= 1
        self._settled(group)

    def _settled(self, group: Group) -> None:
        """If no message of `group` is held, free it if it moves, and let it rest if it is empty."""
        if group.held > 0:
            return
        if group.moves:
            self._disown(group)
        if group.waiting == 0:
            self._rest(group)
        elif group.owner == NOBODY:
            self._let_all_look(group)

    def _disown(self, group: Group) -> None:
        owned = self._owned.get(int(group.owner))
        if owned is not None:
            owned.pop(group.name, None)
            if not owned:
                del self._owned[int(group.owner)]
        group.owner = NOBODY
        group.moves = False

    def _rest(self, group: Group) -> None:
        """Remember the owner of `group`, which has no messages, unless too many are remembered."""
        group.passed = None
        group.behind = None
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

    def _let_all_look(self, group: Group) -> None:
        """Let consumers that skipped messages of `group` look at them again."""
        if group.passed is not None:
            self._scan_positions.rewind(group.passed)
            group.passed = None
            group.behind = None
        if self._queue is not None:
            self._queue.wake()

    def _let_look(self, group: Group, consumer: i64) -> None:
        """Let the consumer of that number look at what it skipped behind a returned message.

        It has taken that message. The next returned one is the only one that it may have now.
        """
        if group.returned is not None:
            self._scan_positions.look_again_for(consumer, group.returned[0])
        elif group.behind is not None:
            self._scan_positions.rewind_for(consumer, group.behind)
            group.behind = None

    def left(self, consumer: i64) -> None:
        """Free the groups of the consumer of that number, which has left, once nothing is held."""
        for group in list(self._owned.get(int(consumer), {}).values()):
            if group.held == 0 and group.waiting == 0:
                self._forget(group)
            else:
                self._disown(group)
                self._settled(group)

    def clear(self) -> None:
        """Forget all groups: the queue is deleted, and no message waits."""
        self._queue = None
        for group in self._groups.values():
            group.returned = None
        self._groups.clear()
        self._idle.clear()
        self._owned.clear()
