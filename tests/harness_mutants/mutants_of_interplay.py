"""Deliberate bugs where two features meet, each with the clauses whose cases must find it."""

from __future__ import annotations

from typing import Final

from tests.harness_mutants.mutant import Mutant
from tests.scenario.mutations import Mutation

TRANSACTION: Final = "broker/routing/transaction.py"
GROUPS: Final = "broker/routing/entries/groups.py"
LEASES: Final = ("own:leases",)
STAGES: Final = ("own:stages",)

BATCHES: Final = (
    Mutant(
        Mutation(
            "messages of a lease that is released count as failed",
            "broker/routing/batches/leases.py",
            'self._end(lease, Disposal.RELEASE, batch, why="was released")',
            'self._end(lease, Disposal.FAIL, batch, why="was released")',
        ),
        LEASES,
    ),
    Mutant(
        Mutation(
            "a lease with a selector takes all messages",
            "broker/routing/batches/lease.py",
            "self.filter = None if selector is None else ConsumerFilter(selector)",
            "self.filter = None",
        ),
        LEASES,
    ),
    Mutant(
        Mutation(
            "a batch that is staged and committed again is sent again",
            "broker/routing/batches/staging_area.py",
            "return sink is not None and number <= sink.batch",
            "return False",
        ),
        STAGES,
    ),
)

ACQUISITIONS: Final = (
    Mutant(
        Mutation(
            "messages acquired within a transaction stay acquired after its rollback",
            TRANSACTION,
            "entry.queue.dispose(entry, Disposal.RELEASE, batch)",
            "pass",
        ),
        ("4.4.4.3", "4.3"),
    ),
    Mutant(
        Mutation(
            "a link goes on acquiring within a transaction that is discharged",
            "broker/links/transactions.py",
            "acquirer.transaction_ended(ended)",
            "pass",
        ),
        ("4.4.3",),
    ),
    Mutant(
        Mutation(
            "a commit removes acquired messages that have no outcome",
            TRANSACTION,
            "listener.acquisition_committed(entry)\n",
            "listener.acquisition_committed(entry)\n"
            "                if entry not in self._retired:\n"
            "                    entry.sent_to = None\n"
            "                    entry.queue.accept(entry, batch)\n",
        ),
        ("4.4.3",),
    ),
)

RESUMED: Final = (
    Mutant(
        Mutation(
            "a link that is stolen leaves none of its unsettled deliveries to the other one",
            "broker/links/ending.py",
            "return closed or (fault is not None and fault.condition != STOLEN)",
            "return closed or fault is not None",
        ),
        ("2.6.13",),
    ),
)

GROUPED: Final = (
    Mutant(
        Mutation(
            "a consumer with a selector gets messages of another consumer's group",
            "broker/routing/queues/selection.py",
            "if group is not None and not group.may_go(entry, consumer.number):",
            "if False:",
        ),
        ("jms:11.1",),
    ),
    Mutant(
        Mutation(
            "a message that returns to its group is overtaken by the rest of it",
            GROUPS,
            "group.put_back(entry)",
            "pass",
        ),
        ("jms:13.21",),
    ),
)

RESTARTS: Final = (
    Mutant(
        Mutation(
            "after a restart a durable subscriber gets its own messages, despite no-local",
            "broker/routing/topics/subscriptions.py",
            'excluded_publisher="" if wanted is None else wanted.excluded_publisher,',
            'excluded_publisher="",',
        ),
        ("jms:5.2",),
    ),
    Mutant(
        Mutation(
            "after a restart a delayed message is delivered at once",
            "broker/links/recovery.py",
            "queue.entry_of(stored, stored.position // 10), stored.deliver_at_ms",
            "queue.entry_of(stored, stored.position // 10), AT_ONCE",
        ),
        ("jms:4.4",),
    ),
)

MOVED: Final = (
    Mutant(
        Mutation(
            "a dead letter is lost if its queue is full",
            "broker/routing/moves.py",
            "self._context.stats.moved_over_limit += 1",
            "return",
        ),
        ("own:dead letters",),
    ),
    Mutant(
        Mutation(
            "a message that was sent and rolled back is a duplicate when it is sent again",
            TRANSACTION,
            "        node.posted += 1\n        node.posted_bytes += message.size\n",
            "        node.posted += 1\n        node.posted_bytes += message.size\n"
            "        if node.duplicates is not None:\n"
            "            from broker.routing.queues.duplicates import digest_of\n"
            "            node.duplicates._known.add(digest_of(message))\n",
        ),
        ("own:duplicates",),
    ),
    Mutant(
        Mutation(
            "a message that expires while it is acquired comes again after its release",
            "broker/routing/queues/queue_delivery.py",
            "if entry.message.expires_at_ms != NEVER and self._state",
            "if entry.history is None and entry.message.expires_at_ms != NEVER and self._state",
        ),
        ("3.2.1",),
    ),
    Mutant(
        Mutation(
            "the drain of a browser is answered while the session's window keeps messages back",
            "broker/routing/queues/queue_delivery.py",
            "return not browsers.find_more(consumer, state.backlogs, wanted)",
            "return True",
        ),
        ("jms:9",),
    ),
)

MUTANTS: Final = (*BATCHES, *ACQUISITIONS, *RESUMED, *GROUPED, *RESTARTS, *MOVED)
