"""Sums over the queues, subscriptions, connections and links of a broker, made for one scrape.

They are made in stretches, so they are not of one moment. Nothing is summed on the data path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from broker.amqp.deadlines import NO_DEADLINE
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.link import Link
from broker.http.stretches import Stretches
from broker.links.container import Container
from broker.links.peer import Peer
from broker.routing.credit.quota import Quota
from broker.routing.queues.message_totals import MessageTotals
from broker.routing.topics.subscription_totals import SubscriptionTotals


class BrokerTotals:
    """The sums; all are 0 until `sum_up` has been called."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container
        self.messages: Final = MessageTotals()
        self.subscriptions: Final = SubscriptionTotals()
        self.queues = 0
        self.temporary_queues = 0
        self.topics = 0
        self.temporary_topics = 0
        self.connections: Final = Counter[str]()
        self.sessions = 0
        self.transactions = 0
        self.senders = 0
        self.receivers = 0
        self.stalled_links = 0
        self.leased = 0
        self._quotas: Final[dict[Quota, None]] = {}

    async def sum_up(self, stretches: Stretches) -> None:
        """Sum up everything."""
        router = self._container.router
        queues = list(router.queues.values())
        self.queues = len(queues)
        async for part in stretches.of(queues):
            self.messages.add(list(part))
        self.temporary_queues = int(self.messages.temporary)
        async for part in stretches.of(list(router.subscriptions.of)):
            self.messages.add(list(part))
        async for some in stretches.of(list(router.subscriptions.of.values())):
            self.subscriptions.add(list(some))
        topics = list(router.topics.values())
        self.topics = len(topics)
        async for others in stretches.of(topics):
            self.temporary_topics += sum(topic.is_temporary for topic in others)
        async for peers in stretches.of(self._container.peers()):
            self._add_peers(peers)
        async for links in stretches.of(self._container.links()):
            self._add_links(links)
        async for leases in stretches.of(list(router.leases.named.values())):
            self.leased += sum(int(lease.held()) for lease in leases)

    def _add_peers(self, peers: Sequence[Peer]) -> None:
        for peer in peers:
            self.connections[peer.entrance.listener] += 1
            self.sessions += len(peer.connection.channels.mapped())
            self.transactions += peer.transactions.count()
            if peer.quota is not None:
                self._quotas[peer.quota] = None

    def _add_links(self, links: Sequence[Link]) -> None:
        for link in links:
            if isinstance(link, IncomingLink):
                self.senders += 1
            else:
                self.receivers += 1
            owner = link.session.connection.owner
            if isinstance(owner, Peer) and owner.blocked_since_ms != NO_DEADLINE:
                self.stalled_links += 1

    def held_links(self) -> int:
        """Return the number of senders that wait for the rates of their user."""
        return sum(quota.waiting.count() for quota in self._quotas)
