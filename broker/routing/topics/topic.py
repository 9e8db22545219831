"""Topics: one shared message, and an entry for it in the queue of each matching subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.log_events import SELECTOR_GIVEN_UP
from broker.message import Message
from broker.routing.addresses.policy import BLOCK, AddressPolicy
from broker.routing.credit.credit_pool import UNLIMITED, CreditPool
from broker.routing.queues.judging import COPIES_PER_EVALUATION
from broker.routing.queues.node import TOPIC, Node
from broker.routing.queues.queue import Queue
from broker.routing.queues.queue_limits import room_beside
from broker.routing.topics.binding import Binding, Bindings
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.router import Router


@final
class Topic(Node):
    """A node that passes each message to the subscriptions of the moment.

    All or nothing: if one of the queues that a message is for has reached its limit, none
    gets it, and its sender is told. A sender could do nothing about a partial delivery.
    """

    def __init__(
        self, *, address: str, policy: AddressPolicy, router: Router, owner: i64 = -1
    ) -> None:
        super().__init__(
            address=address, kind=TOPIC, policy=policy, context=router.context, owner=owner
        )
        self.router: Final = router
        self.bindings: Final = Bindings()
        self.subscriptions: Final = self.bindings.queues
        self._limited: i64 = 0
        if policy.full == BLOCK and policy.is_limited:
            context = router.context
            self.credit_pool = CreditPool(self, context.routing, context.credit_policy)

    def put(self, message: Message, batch: Batch) -> None:
        queues = self.destinations(message)
        if self._limited > 0:
            for queue in queues:
                queue.check_room(message)
        self._fan_out(queues, message, batch)
        copies = i64(len(queues))
        if copies >= COPIES_PER_EVALUATION:
            self.router.context.judging.publish(copies // COPIES_PER_EVALUATION)

    def publish(self, message: Message, batch: Batch) -> None:
        self._fan_out(self.destinations(message), message, batch)

    def _fan_out(self, queues: list[Queue], message: Message, batch: Batch) -> None:
        self.published += 1
        for queue in queues:
            queue.publish(message, batch)
        if self.bindings.given_up:
            self._report_given_up()

    def _report_given_up(self) -> None:
        """Count and report the filters that took too many steps on the message just published."""
        context = self.router.context
        for each in self.bindings.given_up:
            context.stats.selectors_given_up += 1
            text = "" if each.selector is None else each.selector.text
            context.reports.tell(
                SELECTOR_GIVEN_UP,
                f"subscriptions of {self.address} did not get a message: their selector takes too"
                f" many steps on it: {text:.60}",
            )
        self.bindings.given_up = []

    def may_be_full(self) -> bool:
        return self._limited > 0

    def destinations(self, message: Message) -> list[Queue]:
        """Return the queues that `message` is for, each once."""
        bindings = self.bindings
        if bindings.are_selective:
            found = bindings.matching(message)
            if bindings.price > 0:
                self.router.context.judging.publish(bindings.price)
            return found
        return self.subscriptions

    def bind(self, binding: Binding) -> None:
        """Bind a queue: it gets messages published from now on. Idempotent. Raises LimitReached."""
        if self.bindings.has(binding):
            return
        self.router.check_bindings(1)
        self.router.bindings += 1
        queue = binding.queue
        self.bindings.add(binding)
        if self not in queue.topics:
            queue.topics[self] = None
            self._limited += 1 if queue.policy.is_limited else 0

    def unbind(self, queue: Queue) -> None:
        """Unbind `queue`: it gets no more messages of this topic. Idempotent."""
        if self not in queue.topics:
            return
        del queue.topics[self]
        self.uses_ended += 1
        self._limited -= 1 if queue.policy.is_limited else 0
        self.router.bindings -= self.bindings.count(queue)
        self.bindings.remove(queue)
        if self.credit_pool is not None:
            self.credit_pool.serve()

    def producer_window(self) -> i64:
        """Return the smallest producer window of all subscriptions, in messages."""
        least = UNLIMITED
        for queue in self.subscriptions:
            least = min(least, queue.producer_window())
        return least

    def room_for_more(self) -> i64:
        """Return the room of the fullest subscription; those that drop or reject limit nothing."""
        left = UNLIMITED
        if self.credit_pool is not None:
            for queue in self.subscriptions:
                left = min(left, room_beside(queue, self.credit_pool.granted))
        return left

    def call_when_less(self) -> None:
        for queue in self.subscriptions:
            queue.call_when_less()

    def backlog(self) -> i64:
        """Return the sum of the backlogs of all subscriptions.

        Messages from other topics count, too: the processor's cache has to hold all of them.
        """
        waiting: i64 = 0
        for queue in self.subscriptions:
            waiting += queue.backlog()
        return waiting

    def due(self, now_ms: i64) -> None:
        """Let waiting producers go on if the patience with slow subscribers is over."""
        self.pace(now_ms)

    def links(self) -> i64:
        return i64(len(self.producers)) + i64(len(self.subscriptions))

    def delete(self, batch: Batch) -> None:  # noqa: ARG002 - a topic has no messages itself
        """Unbind the subscriptions that are left, and notify the producers.

        These are the ones to a pattern, which stay, since other topics may match it:
        `Router.delete` has ended all others before.
        """
        for queue in list(self.subscriptions):
            self.unbind(queue)
        self.tell_producers()
