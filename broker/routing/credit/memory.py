"""Counts the bytes that the broker holds for its peers, by kind, for one budget (`memory_max`).

Every part of the broker that holds such bytes counts them here as it takes and frees them. Three
shares of the budget decide what happens: above a half, messages that are not durable are written
to the store; above three quarters, producers get no more credit; above the whole, a connection is
closed (`broker/links/memory_guard.py`). Each of three kinds may take a quarter of the budget at
most: transactions, unfinished deliveries, and deliveries that consumers hold.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.message import Message
from broker.routing.credit.blocked_producers import BlockedProducers
from broker.routing.entries.participants import Consumer

UNBOUNDED: Final[i64] = 2**62

ENTRY_BYTES: Final[i64] = 256
"""Bytes of memory that an entry and its message take beside the message's encoded sections."""

OPERATION_BYTES: Final[i64] = 256
"""Bytes that an operation of a transaction takes beside the message that it sends."""

RECORD_BYTES: Final[i64] = 24
"""Bytes that a stage or a lease takes for each of its messages, of which it keeps the number."""

UNSETTLED_MAX: Final[i64] = 100_000
"""Maximum unsettled deliveries on one link; more are sent once its consumer settles some."""


@final
class MemoryBudget:
    """Bytes in memory by kind, and the producers and consumers that wait for memory.

    `volatile` and `durable` are messages in queues with their entries: a message that several
    queues hold counts once. `held` are deliveries that consumers have not settled, each with its
    whole message; they are part of `volatile` and `durable`. `termini` are suspended ones, without
    the messages. `output`, `staged` and `leased` are sampled from time to time; the others are
    exact.
    """

    def __init__(self, limit: i64 = UNBOUNDED) -> None:
        self.limit: Final[i64] = limit
        self.volatile: i64 = 0
        self.durable: i64 = 0
        self.held: i64 = 0
        self.transactions: i64 = 0
        self.unfinished: i64 = 0
        self.output: i64 = 0
        self.staged: i64 = 0
        self.leased: i64 = 0
        self.termini: i64 = 0
        # producers get no more credit
        self.is_short = False
        # messages that are not durable are written to the store
        self.spills = False
        self.producers: Final = BlockedProducers()
        self.consumers: Final[dict[Consumer, None]] = {}

    def total(self) -> i64:
        """Return the bytes of all kinds together."""
        return (
            self.volatile
            + self.durable
            + self.transactions
            + self.unfinished
            + self.output
            + self.staged
            + self.leased
            + self.termini
        )

    def is_stressed(self) -> bool:
        """Return whether peers wait, or messages are written to the store, for lack of memory."""
        return self.is_short or self.spills or bool(self.consumers)

    def held_is_full(self) -> bool:
        """Return whether consumers that hold deliveries get no more until some are settled."""
        return self.held > self.quarter()

    def quarter(self) -> i64:
        """Return the maximum bytes of transactions, of unfinished and of held deliveries, each."""
        return self.limit >> 2

    # -- messages in queues

    def enters(self, message: Message) -> None:
        """Count an entry of `message` that a queue takes into memory."""
        size = ENTRY_BYTES
        if message.holders == 0:
            size += message.encoded_size
        message.holders += 1
        if message.durable:
            self.durable += size
        else:
            self.volatile += size

    def leaves(self, message: Message) -> None:
        """Stop counting an entry of `message`: it is removed, or is in the store alone."""
        size = ENTRY_BYTES
        message.holders -= 1
        if message.holders == 0:
            size += message.encoded_size
        if message.durable:
            self.durable -= size
        else:
            self.volatile -= size

    def delivered(self, size: i64) -> None:
        """Count a delivery that its consumer has not settled, of `size` encoded bytes."""
        self.held += ENTRY_BYTES + size

    def settled(self, size: i64) -> None:
        """Stop counting a delivery of that size: it is settled, or has returned to its queue."""
        self.held -= ENTRY_BYTES + size

    def dropped(self, message: Message) -> None:
        """Stop counting a delivery of `message` and its entry: it is consumed, or deleted."""
        size = message.encoded_size
        self.held -= ENTRY_BYTES + size
        message.holders -= 1
        freed = ENTRY_BYTES + size if message.holders == 0 else ENTRY_BYTES
        if message.durable:
            self.durable -= freed
        else:
            self.volatile -= freed

    def replaced(self, old: Message, new: Message) -> None:
        """Count `new` in place of `old` in an entry that a consumer holds."""
        self.dropped(old)
        self.enters(new)
        self.delivered(new.encoded_size)
