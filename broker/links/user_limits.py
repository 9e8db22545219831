"""The limits of users: what the open connections of one user hold, and when that is enough.

A user is counted as a whole, over all connections, also if a limit names a role: each user of the
role has the amount for itself. Clients without a login count together, as one user. Nothing is
ended by a limit: what exceeds a lower one after a reload stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED, ConnectionFault, SessionFault
from broker.amqp.link import Link
from broker.amqp.session import Session
from broker.routing.credit.quota import BacklogSource, Quota
from broker.routing.errors import LimitReached
from broker.routing.router import Router
from broker.routing.timer_queue import TimerCallback
from broker.security.limits import (
    BACKLOG_BYTES,
    BYTES_PER_S,
    CONNECTIONS,
    LINKS,
    MESSAGES_PER_S,
    NODES,
    NONE,
    SESSIONS,
    SUBSCRIPTIONS,
)

REMEMBERED_MS: Final[i64] = 1000
"""Milliseconds between two looks whether a user that has left has paid for what it has sent."""

if TYPE_CHECKING:
    from broker.links.container import Container
    from broker.links.linkless import Client
    from broker.links.peer import Peer
    from broker.routing.topics.subscription import Subscription


@final
class Usage:
    """The open connections of one user, with what they hold.

    `quota` are the rates of the user, None if it never had any while it was connected.
    `is_remembered`: a timer runs, as the user has used its rates and left.
    """

    def __init__(self, user: str) -> None:
        self.user: Final = user
        self.peers: Final[dict[Peer, None]] = {}
        self.quota: Quota | None = None
        self.is_remembered = False

    def connections(self) -> i64:
        """Return the number of connections that neither end has closed."""
        count: i64 = 0
        for peer in self.peers:
            if peer.is_live():
                count += 1
        return count

    def sessions(self) -> i64:
        """Return the number of sessions that neither end has ended."""
        count: i64 = 0
        for peer in self.peers:
            count += i64(len(peer.connection.channels.mapped()))
        return count

    def links(self) -> i64:
        """Return the number of attached links."""
        count: i64 = 0
        for peer in self.peers:
            for session in peer.connection.channels.mapped():
                count += session.attached
        return count


@final
class UserBacklog(BacklogSource):
    """The messages in the nodes that a user has created, and in its durable subscriptions."""

    def __init__(self, router: Router, user: str) -> None:
        self._router: Final = router
        self._user: Final = user

    def backlog_bytes(self) -> i64:
        router, user = self._router, self._user
        return router.population.created_bytes(user) + router.subscriptions.owned_bytes(user)


@final
class Debt(TimerCallback):
    """Has a user without connections forgotten after a while."""

    def __init__(self, checks: UserLimitChecks, usage: Usage) -> None:
        self._checks: Final = checks
        self._usage: Final = usage

    def due(self, now_ms: i64) -> None:  # noqa: ARG002
        self._usage.is_remembered = False
        self._checks.forget(self._usage)


@final
class UserLimitChecks:
    """Compares what a client asks for with the limits of its user.

    Nothing is counted for users without a limit. Each refusal is counted and reported.
    """

    def __init__(self, container: Container) -> None:
        self._container: Final = container
        self._usages: Final[dict[str, Usage]] = {}

    def usage(self, user: str) -> Usage | None:
        """Return what a user holds, None if it has no open connection."""
        return self._usages.get(user)

    def enter(self, peer: Peer) -> None:
        """Register a connection that has been admitted, for the user that it has now."""
        user = peer.identity.user
        usage = self._usages.get(user)
        if usage is None:
            usage = self._usages[user] = Usage(user)
        usage.peers[peer] = None
        peer.usage = usage
        self.set_rates(peer)

    def set_rates(self, peer: Peer) -> None:
        """Apply the rates and backlog that the limits now allow the user of `peer`."""
        if peer.usage is not None:
            peer.quota = self._quota(peer, peer.usage)

    def quota_of(self, client: Client) -> Quota | None:
        """Return the rates and backlog of a client without a link, None if nothing limits them.

        Its user may have no connection: `forget_user` must follow.
        """
        user = client.identity.user
        usage = self._usages.get(user)
        if usage is None:
            if not self._container.access.limits:
                return None
            usage = self._usages[user] = Usage(user)
        return self._quota(client, usage)

    def forget_user(self, user: str) -> None:
        """Forget a user without connections, at once or when it owes nothing."""
        usage = self._usages.get(user)
        if usage is not None:
            self.forget(usage)

    def _quota(self, client: Client, usage: Usage) -> Quota | None:
        """Apply the limits of now to the quota of a user; return it, None if there is no limit."""
        messages_per_s = self._most(client, MESSAGES_PER_S)
        bytes_per_s = self._most(client, BYTES_PER_S)
        backlog_max = self._most(client, BACKLOG_BYTES)
        has_any = messages_per_s != NONE or bytes_per_s != NONE or backlog_max != NONE
        quota = usage.quota
        if quota is None:
            if not has_any:
                return None
            router = self._container.router
            source = UserBacklog(router, usage.user)
            quota = usage.quota = Quota(self._container.clock, router.timer_queue, source)
        quota.limit(messages_per_s=messages_per_s, bytes_per_s=bytes_per_s, backlog_max=backlog_max)
        return quota if has_any else None

    def leave(self, peer: Peer) -> None:
        """Remove a connection that has ended. Idempotent."""
        usage = peer.usage
        if usage is not None:
            usage.peers.pop(peer, None)
            peer.usage = None
            self.forget(usage)

    def forget(self, usage: Usage) -> None:
        """Forget a user without connections, once it owes nothing of its rates.

        Else a client that connects again and again would have a whole second's amount each time.
        """
        if usage.peers or usage.is_remembered:
            return
        quota = usage.quota
        if quota is None or quota.is_full():
            self._usages.pop(usage.user, None)
            return
        usage.is_remembered = True
        container = self._container
        container.router.timer_queue.at(container.clock.now_ms() + REMEMBERED_MS, Debt(self, usage))

    # -- what clients ask for

    def check_connection(self, peer: Peer, *, replaced: list[Peer]) -> None:
        """Raise ConnectionFault if the user of `peer` may have no further connection.

        `replaced` are open ones that end for it.
        """
        most = self._most(peer, CONNECTIONS)
        usage = self._usages.get(peer.identity.user)
        if most == NONE or usage is None:
            return
        count = usage.connections()
        for each in replaced:
            if each in usage.peers:
                count -= 1
        if count >= most:
            text = self._refusal(peer, CONNECTIONS, count, most=most)
            raise ConnectionFault(RESOURCE_LIMIT_EXCEEDED, text)

    def check_session(self, peer: Peer, session: Session) -> None:
        """End `session`, which has begun, if its user has too many with it."""
        most = self._most(peer, SESSIONS)
        usage = peer.usage
        if most == NONE or usage is None:
            return
        count = usage.sessions() - 1
        if count >= most:
            text = self._refusal(peer, SESSIONS, count, most=most)
            session.end(SessionFault(RESOURCE_LIMIT_EXCEEDED, text))

    def check_link(self, peer: Peer, link: Link, *, incoming: bool) -> None:
        """Raise LimitReached if the user of `peer` may have no further link."""
        most = self._most(peer, LINKS)
        usage = peer.usage
        if most == NONE or usage is None:
            return
        termini = self._container.router.termini
        count = usage.links() + termini.count_of(usage.user)
        if count >= most and (
            self._container.steals(peer, link, incoming=incoming)
            or termini.find((peer.container_id, link.name, incoming)) is not None
        ):
            count -= 1
        if count >= most:
            raise LimitReached(self._refusal(peer, LINKS, count, most=most))

    def check_node(self, peer: Client) -> None:
        """Raise LimitReached if the user of `peer` may create no further queue or topic."""
        most = self._most(peer, NODES)
        if most == NONE:
            return
        count = self._container.router.population.created(peer.identity.user)
        if count >= most:
            raise LimitReached(self._refusal(peer, NODES, count, most=most))

    def check_subscription(self, peer: Peer, *, replaced: Subscription | None) -> None:
        """Raise LimitReached if the user of `peer` may own no further durable subscription.

        `replaced` is one that ends for it, None for none.
        """
        most = self._most(peer, SUBSCRIPTIONS)
        if most == NONE:
            return
        user = peer.identity.user
        count = self._container.router.subscriptions.owned(user)
        if replaced is not None and replaced.is_durable() and replaced.owner == user:
            count -= 1
        if count >= most:
            raise LimitReached(self._refusal(peer, SUBSCRIPTIONS, count, most=most))

    def _most(self, peer: Client, name: str) -> i64:
        access = self._container.access
        if not access.limits:
            return NONE
        return access.limits_of(peer.identity).most(name)

    def _refusal(self, peer: Client, name: str, count: i64, *, most: i64) -> str:
        """Report a refusal to the operator, and return its text for the client."""
        container = self._container
        container.stats.user_limits_reached += 1
        text = f"user {peer.identity.name()} has {count} {name}, and a limit allows {most}"
        peer.limited(text)
        return text
