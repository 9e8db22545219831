"""Termini that outlive their links with unsettled deliveries (core 2.6.13, 3.5.6): all of a broker.

A terminus is known by the container-id, the name and the role of its link. It is suspended when
that ends, and resumed by a link of the same key and user. Its expiry-policy and timeout say how
long it lasts; its entries stay acquired until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.received_outcomes import ReceivedOutcomes
from broker.log_events import TERMINUS_DROPPED
from broker.routing.entries.dead_letter import REJECTED_UNSAID, Cause
from broker.routing.entries.redelivery import Disposal
from broker.routing.termini.acquisition_records import AcquisitionRecords
from broker.routing.termini.kept_deliveries import KeptDeliveries
from broker.routing.topics.lifetime import Ending, Expiring, Expiry, ExpiryPolicy
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue
    from broker.routing.router import Router

TERMINI_MAX: Final = 10_000
"""Maximum suspended termini of the broker: a client could leave one behind with each link."""

TERMINUS_BYTES: Final[i64] = 1024
"""Bytes of memory, estimated, that a suspended terminus takes beside its deliveries."""

TAG_BYTES: Final[i64] = 300
"""Bytes of memory, estimated, that a kept delivery takes beside its message: tag and outcome."""

TerminusKey = tuple[str, str, bool]
"""The container-id and the name of a link, and whether it is one on which the peer sends."""


@final
class SuspendedTerminus(Expiring):
    """A terminus without a link.

    A source has `deliveries` of `queue`, which get `disposal` if none resumes them; a target has
    `outcomes`. `user` is the one whose link it was. `number` names it to an operator, `since_ms` is
    wall time. `memory` is what it takes in bytes, `own_bytes` the part of that without the
    messages. `home` is None unless it is suspended now.
    `is_stored`: the store has its outcomes, for a restart.
    """

    def __init__(
        self,
        key: TerminusKey,
        user: str,
        *,
        address: str,
        terms: ExpiryPolicy,
        queue: Queue | None = None,
        deliveries: KeptDeliveries | None = None,
        outcomes: ReceivedOutcomes | None = None,
        disposal: Disposal = Disposal.RELEASE,
        cause: Cause = REJECTED_UNSAID,
    ) -> None:
        self.key: Final = key
        self.user: Final = user
        self.address: Final = address
        self.queue: Final = queue
        self.deliveries: Final = deliveries
        self.outcomes: Final = outcomes
        self.disposal: Final = disposal
        self.cause: Final = cause
        self.expiry: Final = Expiry(self, terms)
        self.is_stored = False
        self.number: i64 = 0
        self.since_ms: i64 = 0
        self.own_bytes: i64 = 0
        self.memory: i64 = 0
        self.home: SuspendedTermini | None = None

    def count(self) -> int:
        """Return the number of its unsettled deliveries."""
        count = 0 if self.deliveries is None else self.deliveries.count()
        return count if self.outcomes is None else count + self.outcomes.count()

    def expired(self, batch: Batch) -> None:
        home = self.home
        if home is not None:
            home.expired(self, batch)

    def give_up(self, batch: Batch) -> None:
        """Return its entries, which no link resumes; forget its outcomes, also in the store."""
        if self.is_stored:
            batch.unsettled_changes().end(self.key[0], self.key[1])
        if self.deliveries is not None:
            self.deliveries.give_up(self.disposal, batch, cause=self.cause)


@final
class SuspendedTermini:
    """The suspended termini of one broker, the longest suspended first.

    Together they may take an eighth of the memory budget; beyond that, and beyond TERMINI_MAX, the
    longest suspended ones end. `dropped` counts these, `resumed` the deliveries that links have
    resumed, since the start. `records` are of the sources whose deliveries outlive the broker.
    """

    def __init__(self, router: Router, termini_max: int = TERMINI_MAX) -> None:
        self.dropped: i64 = 0
        self.resumed: i64 = 0
        self.records: Final = AcquisitionRecords()
        self._router: Final = router
        self._max: Final = termini_max
        self._by_key: Final[dict[TerminusKey, SuspendedTerminus]] = {}
        self._of_queue: Final[dict[Queue, dict[SuspendedTerminus, None]]] = {}
        self._of_user: Final[dict[str, int]] = {}
        self._bytes: i64 = 0
        self._last_number: i64 = 0

    # -- those there are

    def all(self) -> list[SuspendedTerminus]:
        """Return all suspended termini, the longest suspended first."""
        return list(self._by_key.values())

    def find(self, key: TerminusKey) -> SuspendedTerminus | None:
        """Return the suspended terminus of that key, None if there is none."""
        return self._by_key.get(key)

    def count(self) -> int:
        """Return the number of suspended termini."""
        return len(self._by_key)

    def count_of(self, user: str) -> int:
        """Return the number of suspended termini of `user`: they count as links of it."""
        return self._of_user.get(user, 0)

    # -- suspended and resumed

    def suspend(
        self,
        terminus: SuspendedTerminus,
        ending: Ending,
        batch: Batch,
        *,
        connection: i64,
        session: i64,
    ) -> None:
        """Keep `terminus`, whose link in that session of that connection has ended as `ending`."""
        former = self._by_key.get(terminus.key)
        if former is not None:
            self.end(former, batch)
        self._add(terminus)
        self._router.expiries.link_ended(
            terminus.expiry, ending, batch, connection=connection, session=session
        )
        self._make_room(batch)

    def claim(self, key: TerminusKey, user: str, batch: Batch) -> SuspendedTerminus | None:
        """Return the terminus that a link of `key` resumes, None if there is none.

        It is suspended no more. One of another user ends, which only a user may bring about that
        has the right to use the container-id (`demand_terminus`); one without an owner is resumed.
        """
        found = self._by_key.get(key)
        if found is None:
            return None
        if found.user and found.user != user:
            self.end(found, batch)
            return None
        self._remove(found)
        self._router.expiries.end(found.expiry)
        return found

    def end(self, terminus: SuspendedTerminus, batch: Batch) -> None:
        """End a suspended terminus; its entries return to their queue. Idempotent."""
        if terminus.home is None:
            return
        self._remove(terminus)
        self._router.expiries.end(terminus.expiry)
        terminus.give_up(batch)

    def end_all(self, batch: Batch) -> None:
        """End all suspended termini: the broker stops. What is stored stays for the next start."""
        for terminus in self.all():
            terminus.is_stored = False
            if terminus.deliveries is not None:
                terminus.deliveries.leave_to_store()
            self.end(terminus, batch)

    def end_those_of(self, queue: Queue, batch: Batch) -> None:
        """End the suspended termini of `queue`.

        Their entries return to it, with the default-outcome of their source.
        """
        for terminus in list(self._of_queue.get(queue, {})):
            self.end(terminus, batch)

    def expired(self, terminus: SuspendedTerminus, batch: Batch) -> None:
        """End a terminus whose time is over."""
        self._remove(terminus)
        terminus.give_up(batch)

    def _make_room(self, batch: Batch) -> None:
        memory = self._router.memory
        while self._by_key and (
            len(self._by_key) > self._max or self._bytes > memory.quarter() >> 1
        ):
            oldest = next(iter(self._by_key.values()))
            self.dropped += 1
            self._router.notices.append(
                TERMINUS_DROPPED.notice(
                    f"link {oldest.key[1]:.255} of {oldest.key[0]:.255} can no longer be resumed:"
                    f" {oldest.count()} deliveries given up for lack of room"
                )
            )
            self.end(oldest, batch)

    def _add(self, terminus: SuspendedTerminus) -> None:
        terminus.home = self
        self._last_number += 1
        terminus.number = self._last_number
        terminus.since_ms = self._router.clock.wall_ms()
        terminus.own_bytes = TERMINUS_BYTES + TAG_BYTES * i64(terminus.count())
        terminus.memory = terminus.own_bytes
        self._router.memory.termini += terminus.own_bytes
        deliveries = terminus.deliveries
        if deliveries is not None:
            terminus.memory += deliveries.bytes
        self._bytes += terminus.memory
        self._by_key[terminus.key] = terminus
        if terminus.queue is not None:
            self._of_queue.setdefault(terminus.queue, {})[terminus] = None
        self._of_user[terminus.user] = self._of_user.get(terminus.user, 0) + 1

    def _remove(self, terminus: SuspendedTerminus) -> None:
        terminus.home = None
        self._router.memory.termini -= terminus.own_bytes
        self._bytes -= terminus.memory
        del self._by_key[terminus.key]
        queue = terminus.queue
        if queue is not None:
            others = self._of_queue[queue]
            del others[terminus]
            if not others:
                del self._of_queue[queue]
        left = self._of_user[terminus.user] - 1
        if left > 0:
            self._of_user[terminus.user] = left
        else:
            del self._of_user[terminus.user]
