"""Suspended sources as the model has them: what is unsettled when a link ends waits for it.

A link that returns with an unsettled map resumes the deliveries that this has (core 2.6.13). All
others, and those of a link without a map, are there for everybody again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from broker.amqp.outcomes import Accepted, DeliveryState, Outcome, Received
from broker.amqp.terminus import LINK_DETACH, NEVER, SESSION_END
from broker.amqp.unsettled_map import read_unsettled_map
from tests.scenario.simulation_records import Ending, Entry, Left, Node
from tests.scenario.simulation_subscriptions import LIVES_UNTIL, Key, Terms

if TYPE_CHECKING:
    from tests.scenario.simulation_links import Link, Session
    from tests.scenario.simulation_world import World


@dataclass(eq=False)
class SuspendedSource:
    """The source of `link`, which has ended, with its unsettled deliveries."""

    link: Link
    terms: Terms
    numbers: dict[int, bytes]
    "Tags by delivery-ids. The unsettled map of their session has those without an outcome."
    due: dict[bytes, Left]
    "Deliveries of earlier links that the link has not gone on with, by their tags."
    left: Session | None = None
    "The session of the link, while its end or its connection's end is awaited."
    deadline: int | None = None

    def take_all(self) -> dict[bytes, Left]:
        """Remove the deliveries that have no outcome yet from their session; return all."""
        unsettled = self.link.session.unsettled
        taken = dict(self.due)
        for number, tag in self.numbers.items():
            _, entry = unsettled.pop(number, (None, None))
            if entry is not None:
                taken[tag] = Left(entry)
        return taken


class SuspendedSources:
    """The suspended sources, by the keys of their links."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._all: dict[Key, SuspendedSource] = {}

    def terms_of(self, link: Link) -> Terms | None:
        """Return how long the deliveries of `link` outlive it; None if they do not."""
        most = self._world.setting.resume_max_s
        source = link.attach.source
        if most == 0 or link.incoming or source is None or link.node is None:
            return None
        if link.browses or link.sends_settled or link.creation is not None:
            return None
        if link.subscription is None:
            return _granted(source.expiry_policy, int(source.timeout) * 1000, most * 1000)
        terms = link.subscription.terms
        if link.subscription.is_shared or terms.lives_until is Ending.SESSION:
            return None
        if terms.lives_until is None and link.attach.unsettled is None:
            return None
        timeout = min(terms.timeout, most * 1000)
        return _lasting(Terms(terms.lives_until, timeout))

    def suspend(self, link: Link, terms: Terms, ending: Ending) -> None:
        """Keep the unsettled deliveries of `link`, which ends, as its `terms` say."""
        unsettled, tags = link.session.unsettled, link.session.tags
        numbers = {
            number: tags[number] for number, (owner, _) in unsettled.items() if owner is link
        }
        due = {tag: left for tag, left in link.due.items() if not left.is_partial}
        link.due = {}
        if numbers or due:
            self.claim(link.key())
            kept = SuspendedSource(link, terms, numbers, due, left=link.session)
            self._all[link.key()] = kept
            self._reach(kept, ending)

    def restore(self, link: Link, terms: Terms) -> None:
        """Keep what `link` had left unsettled before a restart; its time begins anew."""
        due, link.due = link.due, {}
        kept = self._all[link.key()] = SuspendedSource(link, terms, {}, due)
        self._reach(kept, Ending.CONNECTION)

    def _reach(self, kept: SuspendedSource, ending: Ending) -> None:
        if not kept.terms.end_at(ending):
            return
        kept.left = None
        kept.deadline = self._world.model.now + kept.terms.timeout
        if not kept.terms.timeout:
            self.claim(kept.link.key())

    def session_ended(self, session: Session) -> None:
        for each in [each for each in self._all.values() if each.left is session]:
            self._reach(each, Ending.SESSION)

    def connection_ended(self, owner: object) -> None:
        for each in list(self._all.values()):
            if each.left is not None and each.left.owner is owner:
                self._reach(each, Ending.CONNECTION)

    def run_out(self, now: int) -> None:
        """Give up the deliveries of sources whose time is over."""
        for each in list(self._all.values()):
            if each.deadline is not None and each.deadline <= now:
                self.claim(each.link.key())

    def claim(self, key: Key, link: Link | None = None) -> None:
        """End the source of that key, if there is one; `link` of that key resumes what it may."""
        kept = self._all.pop(key, None)
        if kept is None:
            return
        if link is not None and self._resumes(link, kept):
            theirs = read_unsettled_map(link.attach.unsettled) or {}
            for tag, left in kept.take_all().items():
                self._resume(link, tag, left, theirs)
            return
        for left in kept.take_all().values():
            if left.entry is not None:
                self.give_up(left.entry, kept.link.default_outcome)

    def _resumes(self, link: Link, kept: SuspendedSource) -> bool:
        has_map = link.attach.unsettled is not None
        return has_map and self.terms_of(link) is not None and link.node is kept.link.node

    def _resume(
        self, link: Link, tag: bytes, left: Left, theirs: dict[bytes, DeliveryState | None]
    ) -> None:
        """Decide about a delivery by the client's map (core 2.6.13)."""
        if tag not in theirs:
            if link.attach.incomplete_unsettled:
                link.due[tag] = replace(left, waits=True)
            elif left.entry is not None:
                self.give_up(left.entry, link.default_outcome)
            return
        state = theirs[tag]
        if left.entry is None or state is None:
            link.due[tag] = replace(left, waits=False)
        elif isinstance(state, Received):
            self.give_up(left.entry, link.default_outcome)
            link.due[tag] = Left(None, is_partial=True)
        else:
            self._world.model.settle(left.entry, state, explicit=True)
            link.due[tag] = Left(None, state)

    def resumed_before(self, link: Link, number: int, tag: bytes) -> None:
        """Note that `link`, which has ended, had gone on with a delivery."""
        kept = self._all.get(link.key())
        if kept is None or kept.link is not link:
            return
        left = kept.due.pop(tag, None)
        if left is not None and left.entry is not None:
            kept.numbers[number] = tag
            link.session.unsettled[number] = (link, left.entry)

    def give_up(self, entry: Entry, default: Outcome | None) -> None:
        """Give an entry the default-outcome of its source."""
        model = self._world.model
        if not entry.node.is_deleted:
            model.settle(entry, default, explicit=False)
        elif isinstance(default, Accepted):
            model.stats["acknowledged"] += 1  # it was deleted with its queue

    def has(self, queue: Node) -> bool:
        """Return whether a source of that queue is suspended."""
        return any(each.link.node is queue for each in self._all.values())

    def links(self) -> list[Link]:
        """Return the links of all suspended sources."""
        return [each.link for each in self._all.values()]

    def end_all_of(self, queue: Node) -> None:
        """End the sources of a queue: it is deleted, or has its only subscriber again."""
        for key in [key for key, each in self._all.items() if each.link.node is queue]:
            self.claim(key)


def _granted(policy: str, timeout: int, most: int) -> Terms | None:
    """Return the terms that a queue's source gets; None if nothing outlives the link."""
    if policy == SESSION_END:
        return None
    if policy == NEVER:
        return Terms(Ending.CONNECTION, most)
    return _lasting(Terms(LIVES_UNTIL[policy], min(timeout, most)))


def _lasting(terms: Terms) -> Terms | None:
    is_lasting = terms.lives_until is not LIVES_UNTIL[LINK_DETACH] or terms.timeout > 0
    return terms if is_lasting else None
