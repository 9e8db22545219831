"""The unsettled map of a session in one direction: deliveries by their ids.

Ids are consecutive, so a ring suffices, twenty times faster than a dictionary. A
delivery that stays while thousands after it are settled moves to a dictionary, so
that the ring stays small whatever a peer leaves unsettled.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.delivery import Delivery
from broker.amqp.events import OutgoingOwner
from broker.amqp.id_set import IdSet
from broker.amqp.send_times import SendTimes

RING_MIN: Final[i64] = 16
RING_MAX: Final[i64] = 65_536

SPARSE: Final[i64] = 8
"""A ring with more gaps than this for each delivery is made smaller before it is walked."""


@final
class UnsettledDeliveries:
    """The `count` deliveries of one session and direction that are not settled.

    Inside, ids are *numbers*: the id without its wrap at 2^32. Each delivery also counts in
    `unsettled` of the owner of its link. `is_noted` is True while the connection's output is to
    record when the latest of them were sent (`note_sent`); `noted_before` is then the map of
    another session that it is to do the same for, a list without memory of its own.
    """

    def __init__(self) -> None:
        self.count: i64 = 0
        self.is_noted = False
        self.noted_before: UnsettledDeliveries | None = None
        self._send_times: SendTimes | None = None
        self._ring: list[Delivery | None] = [None] * int(RING_MIN)
        self._mask: i64 = RING_MIN - 1
        self._oldest: i64 = 0
        self._next: i64 = 0
        self._stragglers: Final[dict[int, Delivery]] = {}
        self._straggler_ids: Final = IdSet()
        self._parts: dict[OutgoingOwner, list[Delivery]] | None = None

    def put(self, delivery: Delivery) -> None:
        """Keep `delivery` under its id, which must follow all ids that were put before."""
        number = self._next + ((delivery.delivery_id - self._next) & 0xFFFF_FFFF)
        if self._oldest == self._next:
            self._oldest = number
        elif number - self._oldest > self._mask:
            self._make_room(number)
        self._ring[number & self._mask] = delivery
        self._next = number + 1
        self.count += 1
        if delivery.sent_to is not None:
            delivery.sent_to.unsettled += 1

    def _number(self, delivery_id: i64) -> i64:
        """Return the number nearest to `_next` that is `delivery_id` modulo 2^32."""
        ahead = (delivery_id - self._next) & 0xFFFF_FFFF
        if ahead >= 0x8000_0000:
            ahead -= 0x1_0000_0000
        return self._next + ahead

    def _make_room(self, number: i64) -> None:
        """Make the ring reach from the oldest delivery to `number`."""
        self._skip_gaps()
        while number - self._oldest >= RING_MAX and self._oldest < self._next:
            self._leave_behind()
            self._skip_gaps()
        mask = self._mask
        if self._oldest == self._next:
            self._oldest = number
            return
        while number - self._oldest > mask:
            mask = mask * 2 + 1
        if mask == self._mask:
            return
        ring: list[Delivery | None] = [None] * int(mask + 1)
        at = self._oldest
        while at < self._next:
            ring[at & mask] = self._ring[at & self._mask]
            at += 1
        self._ring = ring
        self._mask = mask

    def _skip_gaps(self) -> None:
        while self._oldest < self._next and self._ring[self._oldest & self._mask] is None:
            self._oldest += 1

    def _leave_behind(self) -> None:
        """Move the oldest delivery from the ring to the dictionary."""
        delivery = self._ring[self._oldest & self._mask]
        if delivery is not None:
            self._ring[self._oldest & self._mask] = None
            self._keep_straggler(delivery)
        self._oldest += 1

    def _keep_straggler(self, delivery: Delivery) -> None:
        self._stragglers[int(delivery.delivery_id)] = delivery
        self._straggler_ids.add(delivery.delivery_id)

    def _compact(self) -> None:
        """Move old deliveries from a ring with many gaps to the dictionary.

        A walk over the ring then costs time for its deliveries, not for its gaps.
        """
        self._skip_gaps()
        held = self.count - i64(len(self._stragglers))
        while self._next - self._oldest > RING_MIN + SPARSE * held:
            self._leave_behind()
            self._skip_gaps()
            held -= 1

    def take(self, delivery_id: i64) -> Delivery | None:
        """Remove and return the delivery of that id, None if it is not here."""
        number = self._number(delivery_id)
        if number < self._oldest or number >= self._next:
            late = self._stragglers.pop(int(delivery_id), None)
            if late is not None:
                self._straggler_ids.discard(delivery_id)
                self.count -= 1
                _count(late.sent_to, -1)
            return late
        delivery = self._ring[number & self._mask]
        if delivery is not None:
            self._ring[number & self._mask] = None
            self.count -= 1
            _count(delivery.sent_to, -1)
            if number == self._oldest:
                self._oldest = number + 1
        return delivery

    def put_back(self, delivery: Delivery) -> None:
        """Keep a delivery again that was taken."""
        number = self._number(delivery.delivery_id)
        if self._oldest <= number < self._next:
            self._ring[number & self._mask] = delivery
        else:
            self._keep_straggler(delivery)
        self.count += 1
        _count(delivery.sent_to, 1)

    def take_range(self, first: i64, last: i64) -> list[Delivery]:
        """Remove and return the deliveries with ids `first` to `last`, in order.

        Costs time for what is taken, neither for what is kept here nor for what the peer names
        (`docs/design/hostile-input.md` C12). Where many places of the ring are empty, they are
        passed over once: what is older than the end of the range moves to the dictionary.
        """
        taken: list[Delivery] = []
        length = (last - first) & 0xFFFF_FFFF
        if length >= 0x8000_0000 or self.count == 0:
            return taken
        self._compact()
        start = self._number(first)
        end = start + length
        if start < self._oldest and self._stragglers:
            self._take_stragglers(first, last, taken)
        stragglers = i64(len(taken))
        at = begin = max(start, self._oldest)
        end = min(end + 1, self._next)
        at_start = at == self._oldest
        owner: OutgoingOwner | None = None
        run: i64 = 0
        while at < end:
            delivery = self._ring[at & self._mask]
            if delivery is not None:
                self._ring[at & self._mask] = None
                taken.append(delivery)
                if delivery.sent_to is not owner:
                    _count(owner, -run)
                    owner = delivery.sent_to
                    run = 0
                run += 1
            at += 1
        _count(owner, -run)
        if at_start and end > self._oldest:
            self._oldest = end
        elif end - begin > RING_MIN + SPARSE * (i64(len(taken)) - stragglers):
            while self._oldest < end:
                self._leave_behind()
        self.count -= i64(len(taken))
        return taken

    def _take_stragglers(self, first: i64, last: i64, taken: list[Delivery]) -> None:
        for delivery_id in self._straggler_ids.take_range(first, last):
            delivery = self._stragglers.pop(delivery_id)
            taken.append(delivery)
            _count(delivery.sent_to, -1)

    def part(self) -> None:
        """Sort the deliveries by owner: all links end now, and `take_all_of` need not search.

        A session may have thousands of links, and a hundred thousand deliveries on each. Until
        `clear`, no deliveries can be put, and only `take_all_of` can take them.
        """
        parts: dict[OutgoingOwner, list[Delivery]] = {}
        for late in self._stragglers.values():
            _add(late, parts)
        at = self._oldest
        while at < self._next:
            delivery = self._ring[at & self._mask]
            if delivery is not None:
                _add(delivery, parts)
            at += 1
        self._parts = parts
        self._stragglers.clear()
        self._straggler_ids.clear()
        self._oldest = self._next

    def take_all_of(self, owner: OutgoingOwner) -> list[Delivery]:
        """Remove and return the deliveries that were sent to `owner`, in order."""
        taken: list[Delivery] = []
        if self.count == 0 or owner.unsettled == 0:
            return taken
        parts = self._parts
        if parts is not None:
            taken = parts.pop(owner, taken)
            self.count -= i64(len(taken))
            owner.unsettled -= i64(len(taken))
            return taken
        self._compact()
        for delivery_id, late in list(self._stragglers.items()):
            if late.sent_to is owner:
                del self._stragglers[delivery_id]
                self._straggler_ids.discard(late.delivery_id)
                taken.append(late)
        at = self._oldest
        while at < self._next:
            delivery = self._ring[at & self._mask]
            if delivery is not None and delivery.sent_to is owner:
                self._ring[at & self._mask] = None
                taken.append(delivery)
            at += 1
        self.count -= i64(len(taken))
        owner.unsettled -= i64(len(taken))
        return taken

    def note_sent(self, now_ms: i64) -> UnsettledDeliveries | None:
        """Record that all deliveries that were put here have been sent by `now_ms`.

        Return `noted_before`, and forget it.
        """
        self.is_noted = False
        before = self.noted_before
        self.noted_before = None
        times = self._send_times
        if times is None:
            times = self._send_times = SendTimes()
        if times.wants_mark(now_ms):
            self._skip_gaps()
            times.mark(now_ms, oldest=0 if self._stragglers else self._oldest)
        times.following = self._next
        return before

    def oldest_sent_ms(self, owner: OutgoingOwner) -> i64:
        """Return when the oldest delivery of `owner` was sent, in ms, 0 if it has none.

        Takes time for every delivery here: for management, not for the data path.
        """
        times = self._send_times
        if times is None or owner.unsettled == 0:
            return 0
        oldest = self._next
        for delivery_id, late in self._stragglers.items():
            if late.sent_to is owner:
                oldest = min(oldest, self._number(i64(delivery_id)))
        at = self._oldest
        while at < oldest:
            delivery = self._ring[at & self._mask]
            if delivery is not None and delivery.sent_to is owner:
                oldest = at
            at += 1
        return times.sent_ms(oldest)

    def clear(self) -> None:
        """Remove all deliveries."""
        self._parts = None
        self._stragglers.clear()
        self._straggler_ids.clear()
        self._ring = [None] * int(RING_MIN)
        self._mask = RING_MIN - 1
        self._oldest = self._next
        self.count = 0


def _add(delivery: Delivery, parts: dict[OutgoingOwner, list[Delivery]]) -> None:
    """Add `delivery` to those of its owner, if it has one."""
    owner = delivery.sent_to
    if owner is None:
        return
    part = parts.get(owner)
    if part is None:
        parts[owner] = [delivery]
    else:
        part.append(delivery)


def _count(owner: OutgoingOwner | None, change: i64) -> None:
    """Add `change` to the unsettled deliveries of a link's owner, if there is one."""
    if owner is not None:
        owner.unsettled += change
