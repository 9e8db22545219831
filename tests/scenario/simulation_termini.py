"""Suspended sources as the model has them: what is unsettled when a link ends waits for it.

The simulated clients send no unsettled maps. So a link that returns has lost its state, and gets
nothing resumed: all of its deliveries are there for everybody again (core 2.6.13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.amqp.outcomes import Accepted
from broker.amqp.terminus import LINK_DETACH, NEVER, SESSION_END
from tests.scenario.simulation_records import Ending, Entry, Node
from tests.scenario.simulation_subscriptions import LIVES_UNTIL, Key, Terms

if TYPE_CHECKING:
    from tests.scenario.simulation_links import Link, Session
    from tests.scenario.simulation_world import World


@dataclass(eq=False)
class SuspendedSource:
    """The source of `link`, which has ended, with its unsettled deliveries."""

    link: Link
    terms: Terms
    numbers: list[int]
    "Their delivery-ids. The unsettled map of their session has those without an outcome."
    left: Session | None = None
    "The session of the link, while its end or its connection's end is awaited."
    deadline: int | None = None

    def take_all(self) -> list[Entry]:
        """Remove the deliveries that have no outcome yet from their session; return them."""
        unsettled = self.link.session.unsettled
        taken = [unsettled.pop(number) for number in self.numbers if number in unsettled]
        return [entry for _, entry in taken if entry is not None]


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
        if link.subscription.is_shared or terms.lives_until in (None, Ending.SESSION):
            return None
        timeout = min(terms.timeout, most * 1000)
        return _lasting(Terms(terms.lives_until, timeout))

    def suspend(self, link: Link, terms: Terms, ending: Ending) -> None:
        """Keep the unsettled deliveries of `link`, which ends, as its `terms` say."""
        unsettled = link.session.unsettled
        numbers = [number for number, (owner, _) in unsettled.items() if owner is link]
        if numbers:
            self.claim(link.key())
            kept = SuspendedSource(link, terms, numbers, left=link.session)
            self._all[link.key()] = kept
            self._reach(kept, ending)

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

    def claim(self, key: Key) -> None:
        """End the source of that key, if there is one: a link of that name attaches, for one."""
        kept = self._all.pop(key, None)
        if kept is None:
            return
        model, default = self._world.model, kept.link.default_outcome
        for entry in kept.take_all():
            if not entry.node.is_deleted:
                model.settle(entry, default, explicit=False)
            elif isinstance(default, Accepted):
                model.stats["acknowledged"] += 1  # it was deleted with its queue

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
