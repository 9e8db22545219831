"""Leases of messages on their way to a store, and as it gives them back.

A lease is a consumer's claim that outlives its connection and the broker: what it has acquired
lies in *batches*, numbered from 1, each cut into slices once and for all. A batch names messages
by their numbers; they are where they were.
"""

from typing import Final, final

from mypy_extensions import i64


@final
class StoredLease:
    """A lease. `queue` is what holds its messages, as the store knows it.

    `batch` is the last one that was acquired, all up to `settled` are settled; 0 is before the
    first. Who opened it last was given `fencing_token`. `selector` is empty for none.
    """

    def __init__(
        self,
        *,
        name: str,
        queue: str,
        selector: str,
        fencing_token: i64,
        ttl_ms: i64,
        batch_number: i64,
        settled: i64,
    ) -> None:
        self.name: Final = name
        self.queue: Final = queue
        self.selector: Final = selector
        self.fencing_token: Final[i64] = fencing_token
        self.ttl_ms: Final[i64] = ttl_ms
        self.batch_number: Final[i64] = batch_number
        self.settled: Final[i64] = settled


@final
class StoredLeaseBatch:
    """A batch that is not settled: its messages in the order in which they were acquired.

    The message of number `numbers[i]` is in slice `slices[i]`, and was sent `counts[i] >> 1`
    times before; the lowest bit says that somebody had had it already.
    """

    def __init__(
        self,
        *,
        lease: str,
        batch_number: i64,
        slice_count: i64,
        numbers: list[int],
        slices: bytes,
        counts: list[int],
    ) -> None:
        self.lease: Final = lease
        self.batch_number: Final[i64] = batch_number
        self.slice_count: Final[i64] = slice_count
        self.numbers: Final = numbers
        self.slices: Final = slices
        self.counts: Final = counts


@final
class StoredLeases:
    """All leases, their batches, and the highest fencing token that was ever given.

    `damaged` names those of which a batch cannot be read: nobody knows what they held.
    """

    def __init__(
        self,
        leases: list[StoredLease],
        batches: list[StoredLeaseBatch],
        *,
        fencing_token: i64,
        damaged: list[str] | None = None,
    ) -> None:
        self.leases: Final = leases
        self.batches: Final = batches
        self.fencing_token: Final[i64] = fencing_token
        self.damaged: Final[list[str]] = [] if damaged is None else damaged


@final
class LeaseChanges:
    """What one batch does to leases. What is noted last counts.

    `ended` come first: they take all their batches along. None removes.
    """

    def __init__(self) -> None:
        self.ended: Final[dict[str, None]] = {}
        self.leases: Final[dict[str, StoredLease | None]] = {}
        self.batches: Final[dict[tuple[str, int], StoredLeaseBatch | None]] = {}
        self.fencing_token: i64 = 0

    def keep(self, lease: StoredLease) -> None:
        """Remember a lease as it is now."""
        self.leases[lease.name] = lease
        self.fencing_token = max(self.fencing_token, lease.fencing_token)

    def end(self, name: str) -> None:
        """Forget a lease with all of its batches. One that is gone stays gone."""
        self.ended[name] = None
        self.leases[name] = None
        for key in list(self.batches):
            if key[0] == name:
                del self.batches[key]

    def acquire(self, lease_batch: StoredLeaseBatch) -> None:
        """Remember a batch."""
        self.batches[lease_batch.lease, int(lease_batch.batch_number)] = lease_batch

    def settle(self, name: str, batch_number: i64) -> None:
        """Forget a batch. One that is gone stays gone."""
        self.batches[name, int(batch_number)] = None
