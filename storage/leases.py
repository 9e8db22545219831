"""Leases of messages on their way to a store, and as it gives them back.

A lease is a consumer's claim that outlives its connection and the broker: what it has acquired
lies in *epochs*, numbered from 1, each cut into slices once and for all. An epoch names messages
by their numbers; they are where they were.
"""

from typing import Final, final

from mypy_extensions import i64


@final
class StoredLease:
    """A lease. `queue` is what holds its messages, as the store knows it.

    `epoch` is the last one that was acquired, all up to `settled` are settled; 0 is before the
    first. Who opened it last was given `generation`. `selector` is empty for none.
    """

    def __init__(
        self,
        *,
        name: str,
        queue: str,
        selector: str,
        generation: i64,
        ttl_ms: i64,
        epoch: i64,
        settled: i64,
    ) -> None:
        self.name: Final = name
        self.queue: Final = queue
        self.selector: Final = selector
        self.generation: Final[i64] = generation
        self.ttl_ms: Final[i64] = ttl_ms
        self.epoch: Final[i64] = epoch
        self.settled: Final[i64] = settled


@final
class StoredEpoch:
    """An epoch that is not settled: its messages in the order in which they were acquired.

    The message of number `numbers[i]` is in slice `slices[i]`, and was sent `counts[i] >> 1`
    times before; the lowest bit says that somebody had had it already.
    """

    def __init__(
        self,
        *,
        lease: str,
        epoch: i64,
        slice_count: i64,
        numbers: list[int],
        slices: bytes,
        counts: list[int],
    ) -> None:
        self.lease: Final = lease
        self.epoch: Final[i64] = epoch
        self.slice_count: Final[i64] = slice_count
        self.numbers: Final = numbers
        self.slices: Final = slices
        self.counts: Final = counts


@final
class StoredLeases:
    """All leases, their epochs, and the highest generation that was ever given.

    `damaged` names those of which an epoch cannot be read: nobody knows what they held.
    """

    def __init__(
        self,
        leases: list[StoredLease],
        epochs: list[StoredEpoch],
        *,
        generation: i64,
        damaged: list[str] | None = None,
    ) -> None:
        self.leases: Final = leases
        self.epochs: Final = epochs
        self.generation: Final[i64] = generation
        self.damaged: Final[list[str]] = [] if damaged is None else damaged


@final
class LeaseChanges:
    """What one batch does to leases. What is noted last counts.

    `ended` come first: they take all their epochs along. None removes.
    """

    def __init__(self) -> None:
        self.ended: Final[dict[str, None]] = {}
        self.leases: Final[dict[str, StoredLease | None]] = {}
        self.epochs: Final[dict[tuple[str, int], StoredEpoch | None]] = {}
        self.generation: i64 = 0

    def keep(self, lease: StoredLease) -> None:
        """Remember a lease as it is now."""
        self.leases[lease.name] = lease
        self.generation = max(self.generation, lease.generation)

    def end(self, name: str) -> None:
        """Forget a lease with all of its epochs. One that is gone stays gone."""
        self.ended[name] = None
        self.leases[name] = None
        for key in list(self.epochs):
            if key[0] == name:
                del self.epochs[key]

    def acquire(self, epoch: StoredEpoch) -> None:
        """Remember an epoch."""
        self.epochs[epoch.lease, int(epoch.epoch)] = epoch

    def settle(self, name: str, epoch: i64) -> None:
        """Forget an epoch. One that is gone stays gone."""
        self.epochs[name, int(epoch)] = None
