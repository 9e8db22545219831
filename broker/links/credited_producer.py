"""The credit of a producer's link: how much it is granted, and what it has to wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import RESOURCE_DELETED, LinkFault
from broker.amqp.incoming_link import IncomingLink
from broker.message import Message
from broker.routing.batches.staged_transaction import check_room, is_filled
from broker.routing.credit.credit_policy import CreditPolicy
from broker.routing.credit.credit_pool import UNLIMITED
from broker.routing.credit.quota import Quota
from broker.routing.entries.participants import Label, Producer
from broker.routing.errors import QueueFull
from broker.routing.queues.node import Node

if TYPE_CHECKING:
    from broker.links.peer import Peer

LARGE_FROM: Final[i64] = 8 * 1024
"""Bytes above which a message counts for its producer's credit by its size."""

BYTES_AHEAD: Final[i64] = 4 * 1024 * 1024
"""Maximum bytes of large messages that a producer may send ahead; at least one message."""

FIRST: Final[i64] = 100
"""First credit of a new link, in messages: their sizes decide how much more it gets."""

SIZES_REMEMBERED: Final[i64] = 8
"""Approximate number of recent messages over which their mean size is calculated."""


@final
class CreditedProducer(Producer):
    """The producer of one incoming link, as its node sees it; its credit can be held back.

    `mean_size` is that of recent messages in bytes, 0 until one of them was large.
    `is_beyond_room`: it has one credit more than its node has room for. `window`: maximum
    messages that the producer may have under way, sent or not, until their outcomes are reported;
    0 if nothing but `credit` limits it, and then unsettled messages take no credit. `unsettled`
    counts the messages received whose outcomes the producer waits for.
    """

    def __init__(self, peer: Peer, link: IncomingLink, credit: i64) -> None:
        router = peer.container.router
        self._peer: Final = peer
        self._link: Final = link
        self._policy: CreditPolicy | None = router.credit_policy
        self.credit: i64 = credit
        self.node: Node | None = None
        self.is_beyond_room = False
        self.mean_size: i64 = 0
        self.window: i64 = 0
        self.unsettled: i64 = 0
        self._is_new = True

    def ask(self) -> None:
        """Grant credit if the link has used enough of its own, and its node allows it more."""
        if not self._has_room():
            return
        node = self.node
        if node is None or node.request_credit(self):
            self.resume()

    def accept(self, delivery_id: i64) -> None:
        """Accept a message: the store has it, or its consumers have settled it already."""
        self.unsettled -= 1
        self._link.accept_delivery(delivery_id)
        if self.window > 0:
            self.ask()

    def _has_room(self) -> bool:
        """Return whether at least half of the window is free; True without a window."""
        window = self.window
        return window == 0 or window - self.unsettled - self._link.credit >= (window + 1) >> 1

    def resume(self) -> None:
        policy = self._policy
        shortage = None if policy is None else policy.shortage()
        if policy is not None and shortage is not None:
            shortage.wait(self)
            if shortage is policy.memory.producers or shortage is policy.draining:
                self._trickle()
            return
        quota = self._quota()
        if quota is not None and quota.hold(self):
            if quota.may_trickle and self._trickle():
                quota.may_trickle = False
            return
        node = self.node
        if node is not None and node.credit_pool is not None:
            node.give_credit(self, node.credit_pool)
        else:
            self._open()

    def _open(self) -> None:
        """Grant what is left of the window, or all credit without one; FIRST to a new link."""
        if self._is_new:
            self._is_new = False
            self._allow(min(self._usual(), FIRST))
            return
        self.window = self._window_now()
        left = self._usual() if self.window == 0 else max(i64(0), self.window - self.unsettled)
        if left > 0 or self._link.credit > 0:
            self._allow(left)

    def _allow(self, credit: i64) -> None:
        """Set the credit of the link, as far as the rates of its user allow more than it has."""
        quota, has = self._quota(), self._link.credit
        if quota is not None and credit > has:
            credit = has + min(credit - has, quota.allowance(self.mean_size))
            quota.pay(credit - has)
        self._link.grant(credit)

    def _quota(self) -> Quota | None:
        """Return the rates of the user, None without any, and for requests to the broker."""
        return None if self._policy is None else self._peer.quota

    def _window_now(self) -> i64:
        """Return the maximum messages under way by size and the node's window; 0 for no limit."""
        producer_window = UNLIMITED if self.node is None else self.node.producer_window()
        if producer_window == UNLIMITED and self.mean_size <= LARGE_FROM:
            return 0
        return min(self._usual(), producer_window)

    def narrow(self) -> None:
        """Take back credit if the link has more than twice what is left of its window."""
        if self.node is None or self.node.credit_pool is not None:
            return
        window = self._window_now()
        left = max(i64(0), window - self.unsettled)
        if window > 0 and left < (self._link.credit + 1) >> 1:
            self.window = window
            self._link.grant(left)

    def learn(self, size: i64) -> None:
        """Include a message of `size` bytes in `mean_size`; take back credit that is too much."""
        if self.mean_size == 0:
            self.mean_size = size
        else:
            self.mean_size += (size - self.mean_size) // SIZES_REMEMBERED
        self.narrow()

    def _trickle(self) -> bool:
        """Grant one credit if the client has to end work: it may have to send for that.

        Return whether it does, and has no credit.
        """
        node = self.node
        if self._link.credit > 0 or not self._has_to_end_work():
            return False
        if node is not None and node.credit_pool is not None:
            node.credit_pool.grant_one(self)
        else:
            self.grant(1)
        return True

    def _has_to_end_work(self) -> bool:
        """Return whether the client may have to send before it settles, or before it commits.

        A transaction counts only while the broker drains: else it can wait, up to its timeout.
        """
        if self._peer.holds_unsettled():
            return True
        policy = self._policy
        is_draining = policy is not None and policy.draining is not None
        return is_draining and self._peer.transactions.memory() > 0

    def take_back(self) -> None:
        """Take back unused credit: the broker drains. Requests to the broker keep theirs.

        Credit that counts as room of its node is asked for instead, so that the count stays right.
        """
        if self._policy is None:
            return
        if self.node is not None and self.node.credit_pool is not None:
            self._link.recall()
        else:
            self._link.grant(0)
        self.resume()

    def wait_for_nothing(self) -> None:
        """Grant credit despite shortages: requests to the broker may be what ends them."""
        self._policy = None

    def leave(self) -> None:
        """Stop waiting for credit, and pay back what is unused, because the link has ended."""
        self.window = 0  # receipts that come later ask for no credit
        quota = self._quota()
        if quota is not None:
            quota.waiting.leave(self)
            quota.pay(-self._link.credit)
        if self._policy is not None:
            self._policy.leave(self)

    def most(self) -> i64:
        quota, usual = self._quota(), self._usual()
        if quota is None:
            return usual
        return min(usual, self.outstanding() + quota.allowance(self.mean_size))

    def _usual(self) -> i64:
        """Return the maximum credit of this producer by the setting, and by size."""
        if self.mean_size <= LARGE_FROM:
            return self.credit
        return max(i64(1), min(self.credit, BYTES_AHEAD // self.mean_size))

    def outstanding(self) -> i64:
        return self._link.outstanding()

    def grant(self, credit: i64) -> None:
        quota = self._quota()
        if quota is not None:
            quota.pay(credit)
        self._link.grant(self._link.credit + credit)

    def recall(self) -> None:
        self._link.recall()

    def label(self) -> Label:
        """Identify this producer for an operator."""
        peer, link = self._peer, self._link
        return Label(peer.container_id, link.name, f"{peer.id}/{link.session.channel}")

    def is_over_quota(self) -> bool:
        """Return whether it waits for the rates, or the backlog, of its user."""
        quota = self._quota()
        return quota is not None and quota.waiting.has(self)

    def node_gone(self) -> None:
        self._link.detach(LinkFault(RESOURCE_DELETED, "the node was deleted"))

    def go_on_beyond_room(self, node: Node) -> None:
        """Grant one credit beyond the room of `node` if open transactions alone fill it.

        Else a transaction that is larger than the limit would wait for itself until it times out.
        With the credit, its next message is refused, so that it can only be rolled back, unless
        the message takes no room. If the client ends the transaction instead, the credit stays with
        the link, and one message may exceed the limit.
        """
        if self.outstanding() > 0:
            return
        self.is_beyond_room = is_filled(node) or self._peer.transactions.make_room_in(node)
        if self.is_beyond_room:
            self.grant(1)

    def go_on_in_transaction(self, node: Node) -> None:
        if self.outstanding() == 0 and self._peer.transactions.make_room_in(node):
            self.is_beyond_room = True
            self.grant(1)

    def use_credit_beyond_room(self, message: Message, node: Node) -> bool:
        """Use up the credit beyond the room of `node` if `message` needs it; return whether it did.

        False if `node` has room for `message`, and if open transactions alone fill `node`: then
        `message` is to be refused.
        """
        if is_filled(node):
            return False
        try:
            check_room(node, message)
        except QueueFull:
            self.is_beyond_room = False
            return True
        return False
