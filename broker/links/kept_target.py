"""A target that keeps the outcomes of deliveries beyond its link, until their sender settles them.

Only where the sender settles second to the broker (rcv-settle-mode second): a delivery that it
resumes is not routed again, but gets its outcome once more (core 2.6.13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.encode import BytesWriter
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.outcomes import Outcome, State
from broker.amqp.performatives import RECEIVER
from broker.amqp.received_outcomes import ReceivedOutcomes
from broker.amqp.resume import Resumption, TagState, decide, tag_state
from broker.amqp.terminus import Target
from broker.amqp.unsettled_map import PeerStates, UnsettledStates
from broker.links.ending import ending_of, ends_terminus
from broker.links.lasting_terms import granted_terms, outlives_broker, outlives_link
from broker.routing.termini.suspended import SuspendedTerminus, TerminusKey
from broker.routing.topics.lifetime import ExpiryPolicy
from storage.unsettled import StoredOutcome

if TYPE_CHECKING:
    from broker.links.peer import Peer


@final
class KeptTarget:
    """The outcomes of one target, while a link has it; `terms` say how long they are kept then.

    `is_stored`: they outlive the broker, too, each from the commit of its message on.
    """

    def __init__(
        self,
        peer: Peer,
        link: IncomingLink,
        *,
        address: str,
        terms: ExpiryPolicy,
        is_stored: bool,
    ) -> None:
        self.terms: Final = terms
        self.is_stored: Final = is_stored
        self._peer: Final = peer
        self._link: Final = link
        self._address: Final = address
        self._outcomes = ReceivedOutcomes()

    def resume(
        self, former: SuspendedTerminus | None, theirs: PeerStates, *, incomplete: bool
    ) -> UnsettledStates | None:
        """Take over the outcomes of `former`; return those for the broker's attach.

        None if the target has no state. A sender without a map has settled, or lost, all. What its
        map lacks it has settled, unless that is `incomplete`. Known outcomes are stored if they
        were not, and this target is.
        """
        link = self._link
        kept = None if former is None or former.address != self._address else former.outcomes
        if former is not None and (kept is None or theirs is None or not self.is_stored):
            former.give_up(self._peer.container.journal.batch)
        if former is None or kept is None or theirs is None:
            link.kept = self._outcomes
            return None
        becomes_stored = self.is_stored and not former.is_stored
        # if a frame has no room for all: what the sender lists is what it can settle now
        states: UnsettledStates = []
        unlisted: UnsettledStates = []
        for tag, outcome in kept.states():
            listed = tag_state(theirs[tag]) if tag in theirs else TagState.ABSENT
            # a receiver does the same whether it knows the outcome or not
            verdict = decide(TagState.NULL, listed, role=RECEIVER, incomplete=incomplete)
            if verdict is Resumption.FORGET:
                kept.settled(tag)
                self.settled(tag)
                continue
            (unlisted if listed is TagState.ABSENT else states).append((tag, outcome))
            if becomes_stored and outcome is not None:
                self._store(tag, outcome)
        self._outcomes = link.kept = kept
        self._peer.withhold()  # an outcome is told once it is durable
        return states + unlisted

    def note(self, delivery_id: i64, outcome: Outcome) -> None:
        """Note the outcome of a delivery in the batch that has its message."""
        tag = self._link.tag_of(delivery_id)
        if tag is not None:
            self._store(tag, outcome)

    def _store(self, tag: bytes, outcome: State) -> None:
        peer, encoded = self._peer, BytesWriter()
        outcome.write(encoded)
        peer.container.journal.batch.unsettled_changes().keep(
            StoredOutcome(
                container_id=peer.container_id,
                link=self._link.name,
                tag=tag,
                outcome=encoded.getvalue(),
                owner=peer.identity.user,
                address=self._address,
                expiry_policy=self.terms.policy,
                timeout_s=self.terms.timeout_s,
            )
        )

    def settled(self, tag: bytes) -> None:
        """Note that the sender has settled the delivery of that tag."""
        if self.is_stored:
            peer = self._peer
            changes = peer.container.journal.batch.unsettled_changes()
            changes.forget(peer.container_id, self._link.name, tag)

    def end(self, *, closed: bool) -> None:
        """Suspend the target with its outcomes, unless it ends with the link."""
        peer, link = self._peer, self._link
        batch = peer.container.journal.batch
        if ends_terminus(link, closed=closed):
            if self.is_stored:
                batch.unsettled_changes().end(peer.container_id, link.name)
            return
        if self._outcomes.count() == 0:
            return
        key: TerminusKey = (peer.container_id, link.name, True)
        terminus = SuspendedTerminus(
            key,
            peer.identity.user,
            address=self._address,
            terms=self.terms,
            outcomes=self._outcomes,
        )
        terminus.is_stored = self.is_stored
        peer.container.router.termini.suspend(
            terminus,
            ending_of(link, closed=closed),
            batch,
            connection=peer.id,
            session=link.session.channel,
        )


def lasting_target(
    peer: Peer, link: IncomingLink, asked: Target, *, has_map: bool
) -> KeptTarget | None:
    """Return what keeps outcomes beyond `link`; None unless its sender settles second.

    Its target has to last, too. Outcomes outlive the broker if `asked` wants that, and the sender
    shows by its `has_map` that it may resume.
    """
    most_s = peer.container.limits.resume_max_s
    terms = granted_terms(asked.expiry_policy, asked.timeout, most_s=most_s)
    if not link.settles_second or not outlives_link(terms):
        return None
    return KeptTarget(
        peer,
        link,
        address=asked.address or "",
        terms=terms,
        is_stored=outlives_broker(
            terms, asked.durable, has_map=has_map, names=(peer.container_id, link.name)
        ),
    )
