"""A source whose unsettled deliveries outlive its link: it resumes and suspends them (2.6.13)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from broker.amqp.delivery import Delivery
from broker.amqp.encode import BytesWriter
from broker.amqp.errors import LinkFault
from broker.amqp.outcomes import (
    Accepted,
    DeliveryState,
    Modified,
    Outcome,
    Rejected,
    Released,
)
from broker.amqp.outgoing_link import OutgoingLink
from broker.amqp.performatives import SENDER
from broker.amqp.resume import Resumption, TagState, decide, tag_state
from broker.amqp.resumed import abort_resumed, settle_resumed
from broker.amqp.unsettled_map import PeerStates, UnsettledStates
from broker.journal import Waiter
from broker.links.credited_consumer import CreditedConsumer, tag_of
from broker.links.ending import ending_of, ends_terminus
from broker.links.late_outcomes import LateOutcomes
from broker.links.outcome import abandonment, cause_of, dispose
from broker.routing.entries.entry import QueueEntry
from broker.routing.queues.queue import Queue
from broker.routing.termini.acquisition_records import AcquisitionRecord
from broker.routing.termini.kept_deliveries import DecisionListener, KeptDeliveries, KeptDelivery
from broker.routing.termini.suspended import SuspendedTerminus, TerminusKey
from broker.routing.topics.lifetime import Ending, ExpiryPolicy
from storage.leases import StoredTerminus

if TYPE_CHECKING:
    from broker.links.outgoing import ConsumerEndpoint
    from broker.links.peer import Peer
    from broker.links.retirement import Retirements


def claim_terminus(
    peer: Peer, link_name: str, *, incoming: bool, queue: Queue | None = None
) -> SuspendedTerminus | None:
    """Return the suspended terminus that a new link of this name resumes, None if there is none.

    Call it once the link is registered. One with another queue than `queue` ends.
    """
    termini = peer.container.router.termini
    batch = peer.container.journal.batch
    key = (peer.container_id, link_name, incoming)
    found = termini.claim(key, peer.identity.user, batch)
    if found is not None and found.queue is not queue:
        found.give_up(batch)
        return None
    return found


@final
class KeptSource(DecisionListener):
    """The unsettled deliveries of one source, while a link has it.

    `terms` say how long they are kept without a link. If it `is_stored`, they outlive the broker,
    too. Deliveries of an earlier link are `_kept` until this one has sent them again, or settled
    them; `_due` are those that it does so next.
    """

    def __init__(
        self,
        peer: Peer,
        link: OutgoingLink,
        endpoint: ConsumerEndpoint,
        *,
        feed: CreditedConsumer,
        queue: Queue,
        terms: ExpiryPolicy,
        default_outcome: Outcome | None,
        is_stored: bool,
    ) -> None:
        self.terms: Final = terms
        self.is_stored: Final = is_stored
        self._peer: Final = peer
        self._link: Final = link
        self._endpoint: Final = endpoint
        self._feed: Final = feed
        self._queue: Final = queue
        self._default_outcome: Final = default_outcome
        self._kept = KeptDeliveries()
        self._due: Final[deque[tuple[KeptDelivery, Resumption]]] = deque()
        self._theirs: dict[bytes, DeliveryState | None] = {}
        self._is_incomplete = False
        self._fault: LinkFault | None = None
        # a queue may serve its consumer whenever that is chosen for exclusive use
        feed.takes_new = False

    # -- a link attaches

    def resume(
        self, former: SuspendedTerminus | None, theirs: PeerStates, *, incomplete: bool
    ) -> UnsettledStates | None:
        """Take over the deliveries of `former`; return what the broker's attach says of them.

        None if the terminus has no state. A peer that sends no map, so that `theirs` is None, has
        none: then all deliveries return to their places. Its map may be `incomplete`.
        """
        self._is_incomplete = incomplete
        if former is not None and theirs is None:
            former.give_up(self._peer.container.journal.batch)
        if former is None or former.deliveries is None or theirs is None:
            self._record()
            return None
        self._theirs = theirs
        kept = self._kept = former.deliveries
        kept.leave_session()
        kept.listener = self
        self._record()
        states = kept.states()
        for delivery in kept.all():
            if delivery.within is None:
                self._judge(delivery)
        # the outcomes that are told and taken here have to be as durable as any other
        self._peer.withhold()
        return states

    def _record(self) -> None:
        """Have the store keep the deliveries from now on, or no more, as the link asks for."""
        kept, peer = self._kept, self._peer
        if not self.is_stored:
            kept.end_record(peer.container.journal.batch)
            return
        record = kept.record
        if record is None:
            records = peer.container.router.termini.records
            record = kept.record = AcquisitionRecord(records, self._queue, self._as_stored())
        else:
            record.renew(self._as_stored())
        record.client = peer
        self._feed.record = record
        kept.record_all()

    def _as_stored(self) -> StoredTerminus:
        encoded = BytesWriter()
        if self._default_outcome is not None:
            self._default_outcome.write(encoded)
        return StoredTerminus(
            container_id=self._peer.container_id,
            link=self._link.name,
            owner=self._peer.identity.user,
            address=self._endpoint.address(),
            expiry_policy=self.terms.policy,
            timeout_s=self.terms.timeout_s,
            default_outcome=encoded.getvalue(),
        )

    def attached(self) -> None:
        """Go on once the attach is answered; an invalid outcome in the map ends the link."""
        if self._fault is not None:
            self._link.detach(self._fault)

    def _judge(self, delivery: KeptDelivery) -> None:
        ours = TagState.NULL if delivery.outcome is None else TagState.TERMINAL
        theirs = TagState.ABSENT
        state: DeliveryState | None = None
        if delivery.tag in self._theirs:
            state = self._theirs[delivery.tag]
            theirs = tag_state(state)
        verdict = decide(ours, theirs, role=SENDER, incomplete=self._is_incomplete)
        if verdict is Resumption.FORGET:
            self._kept.remove(delivery)
        elif verdict is Resumption.SEND_ANEW:
            self._give_up(delivery)
        elif verdict is Resumption.RESUME_ABORTED:
            self._give_up(delivery)
            self._due.append((delivery, verdict))
        elif verdict is Resumption.SETTLE:
            if delivery.outcome is None:
                self._take_outcome(delivery, state)
            self._due.append((delivery, verdict))
        elif verdict is Resumption.RESUME:
            self._due.append((delivery, verdict))

    def _give_up(self, delivery: KeptDelivery) -> None:
        default = self._default_outcome
        batch = self._peer.container.journal.batch
        self._kept.give_up_one(delivery, abandonment(default), batch, cause=cause_of(default))

    def _take_outcome(self, delivery: KeptDelivery, state: DeliveryState | None) -> None:
        """Apply the outcome that the peer's map has; keep it until the peer is told (2.6.12)."""
        entry = delivery.entry
        assert entry is not None
        assert isinstance(state, (Accepted, Rejected, Released, Modified))
        batch = self._peer.container.journal.batch
        self._kept.end(delivery, state)  # with the bytes that it has been counted with
        fault = dispose(entry, state, batch, default=self._default_outcome)
        if fault is not None:
            self._fault = fault

    # -- while it is attached

    def go_on(self) -> bool:
        """Send what is to be resumed or settled, as far as there is room.

        Return whether the queue may deliver: nothing is left, and both maps were complete (2.7.3).
        """
        link = self._link
        while self._due and link.has_room():
            delivery, verdict = self._due.popleft()
            if verdict is Resumption.RESUME_ABORTED:
                abort_resumed(link, delivery.tag)
                continue
            self._kept.remove(delivery)
            if delivery.outcome is not None:
                settle_resumed(link, delivery.tag, delivery.outcome)
                continue
            entry = delivery.entry
            assert entry is not None
            self._queue.delivery.hand_over(entry, self._feed)
            self._peer.container.router.termini.resumed += 1
            self._feed.resend(entry, delivery.tag)
        takes_new = not self._due and not self._is_incomplete and link.told_all
        self._feed.takes_new = takes_new
        if not takes_new and not self._due:
            link.drained()
        return takes_new

    def decided(self, delivery: KeptDelivery) -> None:
        if delivery.outcome is not None:
            self._peer.container.journal.submit(CommittedOutcome(self, delivery))
        else:
            self.judge_again(delivery)

    def judge_again(self, delivery: KeptDelivery) -> None:
        """Decide about a delivery whose transaction has ended."""
        if self._kept.listener is self:
            self._judge(delivery)
            self._endpoint.credit_changed(self._link.drain)

    # -- the link ends

    def end(
        self, unsettled: list[Delivery], retirements: Retirements | None, *, closed: bool
    ) -> list[Delivery]:
        """Suspend the terminus with its `unsettled` deliveries; return those that are not kept.

        None are if the terminus ends. Those retired in a transaction stay with that.
        """
        kept = self._kept
        kept.listener = None
        self._feed.record = None
        self._due.clear()
        default, batch = self._default_outcome, self._peer.container.journal.batch
        wanted, cause = abandonment(default), cause_of(default)
        if ends_terminus(self._link, closed=closed):
            kept.give_up(wanted, batch, cause=cause)
            return unsettled if retirements is None else retirements.without(unsettled)
        ended = unsettled
        if retirements is not None:
            unsettled = retirements.without(unsettled, kept)
        for delivery in unsettled:
            if isinstance(delivery, QueueEntry):
                kept.add(KeptDelivery(tag_of(delivery), delivery))
        if kept.count() == 0:
            kept.end_record(batch)
            return []
        kept.record_all()
        feed = self._feed
        kept.put_in_place(feed.number, feed.failures, feed.label())
        if ending_of(self._link, closed=closed) is Ending.LINK_DETACHED:
            session = self._link.session
            LateOutcomes(self._peer, session, kept=kept, default_outcome=default).begin(ended)
        elif kept.record is not None:
            kept.record.client = None
        self._suspend(kept, closed=closed)
        return []

    def _suspend(self, kept: KeptDeliveries, *, closed: bool) -> None:
        peer, link = self._peer, self._link
        key: TerminusKey = (peer.container_id, link.name, False)
        peer.container.router.termini.suspend(
            SuspendedTerminus(
                key,
                peer.identity.user,
                address=self._endpoint.address(),
                terms=self.terms,
                queue=self._queue,
                deliveries=kept,
                disposal=abandonment(self._default_outcome),
                cause=cause_of(self._default_outcome),
            ),
            ending_of(link, closed=closed),
            peer.container.journal.batch,
            connection=peer.id,
            session=link.session.channel,
        )


@final
class CommittedOutcome(Waiter):
    """A delivery of an earlier link that is settled once its transaction is durable."""

    def __init__(self, source: KeptSource, delivery: KeptDelivery) -> None:
        self._source: Final = source
        self._delivery: Final = delivery

    def committed(self) -> None:
        self._source.judge_again(self._delivery)
