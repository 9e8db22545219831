"""Outcomes of deliveries that their sender has to settle, kept beyond the link (core 2.6.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import NOT_ALLOWED, RESOURCE_LIMIT_EXCEEDED, LinkFault
from broker.amqp.limits import UNSETTLED_MAP_MAX
from broker.amqp.outcomes import Outcome
from broker.amqp.unsettled_map import UnsettledStates

if TYPE_CHECKING:
    from broker.amqp.incoming_link import IncomingLink


@final
class ReceivedOutcomes:
    """The deliveries of one target that their sender has not settled: tag -> outcome.

    None stands for an outcome that is not known yet. One link after the other may use the target.
    """

    def __init__(self) -> None:
        self._outcomes: Final[dict[bytes, Outcome | None]] = {}
        # resumed deliveries that wait for their outcome
        self._asked: Final[dict[bytes, tuple[IncomingLink, int]]] = {}

    def count(self) -> int:
        """Return the number of deliveries that their sender has not settled."""
        return len(self._outcomes)

    def arrived(self, tag: bytes) -> None:
        """Keep the tag of a new delivery; LinkFault if it is in use, or there are too many."""
        if tag in self._outcomes:
            raise LinkFault(
                NOT_ALLOWED, "a delivery-tag of a delivery that is not settled (2.6.12)"
            )
        if len(self._outcomes) >= UNSETTLED_MAP_MAX:
            raise LinkFault(
                RESOURCE_LIMIT_EXCEEDED,
                f"a target has at most {UNSETTLED_MAP_MAX} deliveries that are not settled",
            )
        self._outcomes[tag] = None

    def decided(self, tag: bytes, outcome: Outcome) -> None:
        """Keep the outcome of a delivery, unless its sender has settled it before."""
        if tag not in self._outcomes:
            return
        self._outcomes[tag] = outcome
        asked = self._asked.pop(tag, None)
        if asked is not None:
            link, delivery_id = asked
            link.report(i64(delivery_id), outcome)

    def settled(self, tag: bytes) -> None:
        """Forget a delivery: its sender has settled it. Idempotent."""
        self._outcomes.pop(tag, None)
        self._asked.pop(tag, None)

    def knows(self, tag: bytes) -> bool:
        """Return whether there is a delivery of that tag; else a resumed one is ignored (2.7.5)."""
        return tag in self._outcomes

    def resumed(self, tag: bytes, link: IncomingLink, delivery_id: i64) -> None:
        """Report the outcome of a known delivery that `link` resumes, once there is one."""
        outcome = self._outcomes[tag]
        if outcome is None:
            self._asked[tag] = (link, int(delivery_id))
        else:
            link.report(delivery_id, outcome)

    def states(self) -> UnsettledStates:
        """Return all deliveries with their outcomes, for the map of an attach."""
        found: UnsettledStates = []
        for tag, outcome in self._outcomes.items():
            found.append((tag, outcome))
        return found
