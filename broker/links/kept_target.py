"""A target that keeps the outcomes of deliveries beyond its link, until their sender settles them.

Only where the sender settles second to the broker (rcv-settle-mode second): a delivery that it
resumes is not routed again, but gets its outcome once more (core 2.6.13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from broker.amqp.errors import STOLEN
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.performatives import RECEIVER
from broker.amqp.received_outcomes import ReceivedOutcomes
from broker.amqp.resume import Resumption, TagState, decide, tag_state
from broker.amqp.unsettled_map import PeerStates, UnsettledStates
from broker.links.ending import ending_of
from broker.routing.termini.suspended import SuspendedTerminus, TerminusKey
from broker.routing.topics.lifetime import ExpiryPolicy

if TYPE_CHECKING:
    from broker.links.peer import Peer


@final
class KeptTarget:
    """The outcomes of one target, while a link has it; `terms` say how long they are kept then."""

    def __init__(
        self, peer: Peer, link: IncomingLink, *, address: str, terms: ExpiryPolicy
    ) -> None:
        self.terms: Final = terms
        self._peer: Final = peer
        self._link: Final = link
        self._address: Final = address
        self._outcomes = ReceivedOutcomes()

    def resume(
        self, former: SuspendedTerminus | None, theirs: PeerStates, *, incomplete: bool
    ) -> UnsettledStates | None:
        """Take over the outcomes of `former`; return those for the broker's attach.

        None if the target has no state. A sender without a map has settled, or lost, all. What its
        map lacks it has settled, unless that is `incomplete`.
        """
        link = self._link
        kept = None if former is None or former.address != self._address else former.outcomes
        if kept is None or theirs is None:
            link.kept = self._outcomes
            return None
        for tag, outcome in kept.states():
            ours = TagState.NULL if outcome is None else TagState.TERMINAL
            listed = tag_state(theirs[tag]) if tag in theirs else TagState.ABSENT
            if decide(ours, listed, role=RECEIVER, incomplete=incomplete) is Resumption.FORGET:
                kept.settled(tag)
        self._outcomes = link.kept = kept
        self._peer.withhold()  # an outcome is told once it is durable
        return kept.states()

    def end(self, *, closed: bool) -> None:
        """Suspend the target with its outcomes, unless it ends with the link."""
        peer, link = self._peer, self._link
        fault = link.ended_by
        if closed or (fault is not None and fault.condition != STOLEN):
            return
        if self._outcomes.count() == 0:
            return
        key: TerminusKey = (peer.container_id, link.name, True)
        peer.container.router.termini.suspend(
            SuspendedTerminus(
                key,
                peer.identity.user,
                address=self._address,
                terms=self.terms,
                outcomes=self._outcomes,
            ),
            ending_of(link, closed=closed),
            peer.container.journal.batch,
            connection=peer.id,
            session=link.session.channel,
        )
