"""Closes connections whose login has ended, such as by the expiry of a token. One timer for all."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.routing.timer_queue import NOTHING, TimerCallback
from broker.security.identity import FOREVER, Identity

if TYPE_CHECKING:
    from broker.links.container import Container
    from broker.links.peer import Peer

EXPIRED: Final = "credential expired"

LOOK_MS: Final[i64] = 60_000
"""Maximum ms between two looks: logins end by the wall clock, which may be set, and timers are due
by the steady one."""

AT_ONCE_MAX: Final[i64] = 500
"""Maximum connections that are closed in one turn of the event loop."""

STALE_MAX: Final = 64
"""Entries of the heap for connections that have ended, or renewed their login, that may stay."""


@final
class LoginExpiries(TimerCallback):
    """The connections of a container whose login ends some time, by that time."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container
        self._peers: Final[dict[int, Peer]] = {}
        self._heap: list[tuple[int, int]] = []
        self._armed_for_ms: i64 = NOTHING

    def __len__(self) -> int:
        """Return the number of connections whose login ends some time."""
        return len(self._peers)

    def watch(self, peer: Peer) -> None:
        """Close `peer` when its login ends. To be called again once the login is another one."""
        until_ms = peer.identity.valid_until_ms
        if until_ms == FOREVER:
            self.forget(peer)
            return
        self._peers[int(peer.id)] = peer
        heappush(self._heap, (int(until_ms), int(peer.id)))
        self._drop_stale()
        self._arm()

    def renewed(self, peer: Peer, identity: Identity) -> None:
        """Give `peer` a renewed login of the same user, and judge its links if rights changed."""
        had = peer.identity
        peer.identity = identity
        self._container.stats.logins_renewed += 1
        self.watch(peer)
        if (identity.roles, identity.scopes) != (had.roles, had.scopes):
            self._container.rights_review.begin_for(peer)

    def forget(self, peer: Peer) -> None:
        """Leave `peer` alone: it has ended, or its login never ends."""
        self._peers.pop(int(peer.id), None)
        self._drop_stale()

    def _drop_stale(self) -> None:
        """Make the heap anew if too much of it is about connections that need it no more."""
        if len(self._heap) > 2 * len(self._peers) + STALE_MAX:
            self._heap = [
                (int(peer.identity.valid_until_ms), id_) for id_, peer in self._peers.items()
            ]
            heapify(self._heap)

    def _arm(self) -> None:
        """Look again when the first login ends."""
        if not self._heap:
            return
        clock = self._container.clock
        wait_ms = min(max(i64(self._heap[0][0]) - clock.wall_ms(), 0), LOOK_MS)
        at_ms = clock.now_ms() + wait_ms
        if self._armed_for_ms == NOTHING or at_ms < self._armed_for_ms:
            self._armed_for_ms = at_ms
            self._container.router.timer_queue.at(at_ms, self)

    def due(self, now_ms: i64) -> None:
        if self._armed_for_ms != NOTHING and now_ms < self._armed_for_ms:
            return  # of a time that an earlier one has replaced
        self._armed_for_ms = NOTHING
        wall_ms = self._container.clock.wall_ms()
        left = AT_ONCE_MAX
        while left > 0 and self._heap and self._heap[0][0] <= wall_ms:
            until_ms, id_ = heappop(self._heap)
            peer = self._peers.get(id_)
            if peer is not None and peer.identity.valid_until_ms == until_ms:
                del self._peers[id_]
                left -= 1
                self._container.stats.logins_expired += 1
                self._container.watcher.expired(peer)
                peer.connection.close(ConnectionFault(CONNECTION_FORCED, EXPIRED))
        self._arm()
