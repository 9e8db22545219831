"""Asks again for the rights of every connection and link, after rules or users have changed.

A connection whose login is no longer valid is closed, and a link that lost a right is detached. The
work is done in stretches, each in a turn of the event loop of its own, so that no client waits
longer than for one stretch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import CONNECTION_FORCED, UNAUTHORIZED_ACCESS, ConnectionFault, LinkFault
from broker.links.access import CONNECT
from broker.routing.errors import NotPermitted
from broker.routing.timer_queue import TimerCallback
from broker.security.resources import CONNECTION, Resource

if TYPE_CHECKING:
    from broker.links.container import Container, LinkRegistration
    from broker.links.peer import Peer

STRETCH: Final[i64] = 500
"""Maximum connections or links that are judged in one turn of the event loop."""

LOGIN_ENDED: Final = "the login is no longer valid"


@final
class RightsReview(TimerCallback):
    """The review of one broker. If rules change while it is going on, it starts anew."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container
        self._peers: list[Peer] = []
        self._links: list[LinkRegistration] = []
        self._is_armed = False

    def begin(self) -> None:
        """Judge every connection and link that is open now."""
        self._peers = self._container.peers()
        self._links = self._container.registrations()
        self._arm()

    def begin_for(self, peer: Peer) -> None:
        """Judge one connection and its links, whose user has other roles by now."""
        self._peers.append(peer)
        self._links += [each for each in self._container.registrations() if each.peer is peer]
        self._arm()

    def is_going_on(self) -> bool:
        """Return whether connections or links are still to be judged."""
        return bool(self._peers) or bool(self._links)

    def _arm(self) -> None:
        if not self._is_armed:
            self._is_armed = True
            timer_queue = self._container.router.timer_queue
            timer_queue.at(self._container.clock.now_ms(), self)

    def due(self, now_ms: i64) -> None:  # noqa: ARG002
        self._is_armed = False
        for _ in range(STRETCH):
            if self._peers:
                self._judge_connection(self._peers.pop())
            elif self._links:
                self._judge_link(self._links.pop())
        if self.is_going_on():
            self._arm()

    def _judge_connection(self, peer: Peer) -> None:
        if not peer.is_live():
            return
        current = self._container.authenticator.current(peer.identity)
        if current is None:
            self._close(peer, LOGIN_ENDED)
            return
        peer.identity = current
        self._container.user_limits.set_rates(peer)
        try:
            peer.demand(CONNECT, Resource(CONNECTION, peer.entrance.listener))
        except NotPermitted as refusal:
            self._close(peer, str(refusal))

    def _close(self, peer: Peer, reason: str) -> None:
        self._container.stats.connections_revoked += 1
        peer.connection.close(ConnectionFault(CONNECTION_FORCED, reason))

    def _judge_link(self, registration: LinkRegistration) -> None:
        peer = registration.peer
        if peer is None or not peer.is_live():
            return
        try:
            for right in registration.rights:
                peer.demand(right.verb, right.resource)
        except NotPermitted as refusal:
            self._container.stats.links_revoked += 1
            registration.link.detach(LinkFault(UNAUTHORIZED_ACCESS, str(refusal)))
