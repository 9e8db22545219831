"""Deliberate bugs of single rules, each with the clauses whose cases must find it."""

from __future__ import annotations

from typing import Final

from tests.harness_mutants.mutant import Mutant
from tests.scenario.mutations import Mutation

OUTGOING: Final = "broker/links/outgoing.py"
OUTCOME: Final = "broker/links/outcome.py"
CREDITED: Final = "broker/links/credited_consumer.py"
MESSAGE: Final = "broker/message.py"
TRANSACTION: Final = "broker/routing/transaction.py"
SUBSCRIPTION: Final = "broker/routing/topics/subscription.py"

CREDIT: Final = (
    Mutant(
        Mutation(
            "a drain leaves the delivery-count as it is",
            "broker/amqp/outgoing_link.py",
            "self.delivery_count = credits.drained(self.delivery_count, self.credit)",
            "pass",
        ),
        ("2.6.7",),
    ),
    Mutant(
        Mutation(
            "a drain is answered before the messages that wait",
            OUTGOING,
            "queue.consumer_ready(self._feed, drain=drain)",
            "self._link.drained(); queue.consumer_ready(self._feed, drain=drain)",
        ),
        ("2.6.7",),
    ),
)

OUTCOMES: Final = (
    Mutant(
        Mutation(
            "a released message has a raised delivery-count",
            "broker/routing/queues/queue.py",
            "if disposal is Disposal.RELEASE:\n",
            "if disposal is Disposal.RELEASE:\n            entry.delivery_count += 1\n",
        ),
        ("3.4.4",),
    ),
    Mutant(
        Mutation(
            "a message modified without delivery-failed has a raised delivery-count",
            OUTCOME,
            "return Disposal.FAIL if modified.delivery_failed else Disposal.RELEASE",
            "return Disposal.FAIL if modified.delivery_failed else Disposal.COUNT",
        ),
        ("3.4.5",),
    ),
    Mutant(
        Mutation(
            "a rejected message is available again, as if it had been released",
            OUTCOME,
            "case Rejected():\n            return Disposal.DEAD_LETTER",
            "case Rejected():\n            return Disposal.RELEASE",
        ),
        ("3.4.3",),
    ),
    Mutant(
        Mutation(
            "a message that is undeliverable here comes here again",
            "broker/routing/entries/redelivery.py",
            "return disposal is Disposal.ELSEWHERE or disposal is Disposal.FAIL_ELSEWHERE",
            "return False",
        ),
        ("3.4.5",),
    ),
)

HEADERS: Final = (
    Mutant(
        Mutation(
            "a message that was acquired before is first-acquirer again",
            MESSAGE,
            "first_acquirer=delivery_count == 0 and not acquired_before",
            "first_acquirer=delivery_count == 0",
        ),
        ("3.2.1",),
    ),
    Mutant(
        Mutation(
            "the ttl of a message is passed on as it came, however long it has waited",
            MESSAGE,
            "return max(1, ttl_ms - max(0, now_ms - arrived_ms))",
            "return ttl_ms",
        ),
        ("3.2.1",),
    ),
    Mutant(
        Mutation(
            "the absolute-expiry-time of a message is ignored",
            MESSAGE,
            "by_clock = absolute_ms if absolute_ms > 0 else NEVER",
            "by_clock = NEVER",
        ),
        ("jms:11.2",),
    ),
    Mutant(
        Mutation(
            "every message is delivered with the default priority",
            MESSAGE,
            """\
                return DURABLE_HEADERS[self.priority]
            return PLAIN_HEADERS[self.priority]
""",
            """\
                return DURABLE_HEADERS[PRIORITY_DEFAULT]
            return PLAIN_HEADERS[PRIORITY_DEFAULT]
""",
        ),
        ("3.2.1",),
    ),
    Mutant(
        Mutation(
            "the lowest priority is delivered first",
            "broker/routing/queues/queue_delivery.py",
            """\
        priority = self._backlogs.top
        while priority >= 0:
            backlog = self._backlogs.by_priority[priority]
            if backlog is None or backlog.waiting == 0:
                if priority == self._backlogs.top and priority > 0:
                    self._backlogs.top -= 1
""",
            """\
        priority: i64 = 9
        while priority >= 0:
            backlog = self._backlogs.by_priority[9 - priority]
            if backlog is None or backlog.waiting == 0:
""",
        ),
        ("3.2.1",),
    ),
)

BROWSERS: Final = (
    Mutant(
        Mutation(
            "a copy for a browser counts as a delivery",
            CREDITED,
            "def browsed(self, entry: QueueEntry) -> None:\n",
            "def browsed(self, entry: QueueEntry) -> None:\n        entry.delivery_count += 1\n",
        ),
        ("jms:9",),
    ),
    Mutant(
        Mutation(
            "a browser takes the messages that it asks for",
            "broker/links/attach.py",
            "return mode == COPY",
            "return False",
        ),
        ("3.5.7", "jms:9"),
    ),
)

TRANSACTIONS: Final = (
    Mutant(
        Mutation(
            "a rollback sends what was sent within its transaction",
            TRANSACTION,
            "self._router.stats.rolled_back += 1\n",
            "for node, message in self._posted:\n            node.publish(message, batch)\n",
        ),
        ("jms:10.3",),
    ),
    Mutant(
        Mutation(
            "an acknowledgement that is rolled back leaves the delivery-count as it was",
            "broker/routing/entries/redelivery.py",
            "Disposal.REMOVE: Disposal.FAIL,",
            "Disposal.REMOVE: Disposal.RELEASE,",
        ),
        ("jms:13.21",),
    ),
    Mutant(
        Mutation(
            "the end of its coordinator's link commits a transaction",
            "broker/links/coordinator.py",
            "self.forget(each)\n            each.work.roll_back(batch)",
            "self.forget(each)\n            each.work.commit(batch)",
        ),
        ("4.3", "jms:10.3"),
    ),
    Mutant(
        Mutation(
            "a message within a transaction that is not open is sent without one",
            "broker/links/incoming.py",
            "        within = self._peer.transactions.join(txn_id)\n        if within is None:\n",
            "        within = self._peer.transactions.join(txn_id)\n        if within is None:\n"
            "            return self.delivered(delivery_id, data, at, end, settled)\n",
        ),
        ("4.5.8",),
    ),
)

SUBSCRIPTIONS: Final = (
    Mutant(
        Mutation(
            "a durable subscription ends with its link",
            "broker/routing/topics/lifetime.py",
            "return ExpiryDecision.EXPIRES\n    return ExpiryDecision.STAYS",
            "return ExpiryDecision.EXPIRES\n    return ExpiryDecision.EXPIRES",
        ),
        ("jms:7.1",),
    ),
    Mutant(
        Mutation(
            "what follows the bar is part of a shared subscription's name",
            SUBSCRIPTION,
            "name = link_name.split(BAR, 1)[0] if shared else link_name",
            "name = link_name",
        ),
        ("jms:7.2",),
    ),
    Mutant(
        Mutation(
            "another selector leaves a subscription as it is, with its backlog",
            SUBSCRIPTION,
            "if self.filter != other.filter:\n            return False",
            "if False:\n            return False",
        ),
        ("jms:7.4",),
    ),
    Mutant(
        Mutation(
            "a durable subscription that others use can be ended by a lookup",
            "broker/routing/topics/subscriptions.py",
            "            return False\n        if subscription.queue.consumers.attached:",
            "            return False\n        if False:",
        ),
        ("jms:7.5",),
    ),
)

FILTERS: Final = (
    Mutant(
        Mutation(
            "a subscriber gets its own messages, though it asked for no-local",
            "broker/links/filters.py",
            'excluded = container_id if self.no_local else ""',
            'excluded = ""',
        ),
        ("jms:5.2",),
    ),
    Mutant(
        Mutation(
            "to a selector, NOT of what is unknown is true",
            "broker/routing/selector/expression.py",
            "    if value is False:\n        return True\n    return None\n",
            "    return True\n",
        ),
        ("jms:5.2",),
    ),
)

TEMPORARY_NODES: Final = (
    Mutant(
        Mutation(
            "other connections consume from a temporary queue",
            "broker/routing/router.py",
            "if node.is_exclusive and node.owner != owner:",
            "if False:",
        ),
        ("jms:8",),
    ),
    Mutant(
        Mutation(
            "a node that is deleted without messages is deleted while it holds some",
            "broker/routing/topics/dynamic.py",
            "if policy is DeletePolicy.ON_NO_MESSAGES:\n        return messages == 0",
            "if policy is DeletePolicy.ON_NO_MESSAGES:\n        return links == 0",
        ),
        ("3.5.12",),
    ),
)

MUTANTS: Final = (
    *CREDIT,
    *OUTCOMES,
    *HEADERS,
    *BROWSERS,
    *TRANSACTIONS,
    *SUBSCRIPTIONS,
    *FILTERS,
    *TEMPORARY_NODES,
)
