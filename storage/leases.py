"""Records of message leases, and changes to them.

A lease is a consumer's claim that outlives its connection and the broker: the messages that it has
acquired are grouped in *batches*, numbered from 1, each cut into slices that never change. A batch
refers to messages by their numbers; the messages stay where they are stored.
"""

from typing import Final, final

from mypy_extensions import i64


@final
class StoredTerminus:
    """The source of a link, by container-id and name, whose unsettled deliveries a lease has.

    `owner` is the user whose link it is. `expiry_policy` and `timeout_s` say how long the source
    lasts (core 3.5.6). `default_outcome` is encoded, empty if the source names none.
    """

    def __init__(
        self,
        *,
        container_id: str,
        link: str,
        owner: str,
        address: str,
        expiry_policy: str,
        timeout_s: i64,
        default_outcome: bytes,
    ) -> None:
        self.container_id: Final = container_id
        self.link: Final = link
        self.owner: Final = owner
        self.address: Final = address
        self.expiry_policy: Final = expiry_policy
        self.timeout_s: Final[i64] = timeout_s
        self.default_outcome: Final = default_outcome


@final
class StoredLease:
    """A lease. `queue` is the store's name of the queue or subscription with its messages.

    `batch_number` is that of the last acquired batch, all batches up to `settled` are settled; 0 is
    before the first. `fencing_token` was given to the client that opened the lease last.
    `selector` is empty if there is none. `ttl_ms` 0 is no limit. A lease that a `terminus` owns
    uses none of these: it has the batches that are stored of it.
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
        terminus: StoredTerminus | None = None,
    ) -> None:
        self.name: Final = name
        self.queue: Final = queue
        self.selector: Final = selector
        self.fencing_token: Final[i64] = fencing_token
        self.ttl_ms: Final[i64] = ttl_ms
        self.batch_number: Final[i64] = batch_number
        self.settled: Final[i64] = settled
        self.terminus: Final = terminus


@final
class StoredLeaseBatch:
    """A batch that is not settled: its messages in the order in which they were acquired.

    The message of number `numbers[i]` is in slice `slices[i]`, and had the delivery-count
    `counts[i] >> 1`; the lowest bit of `counts[i]` is set if a consumer had received it before.
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
    """All leases, their unsettled batches, and the highest fencing token that was ever given.

    `damaged` names the leases with an unreadable batch, whose messages are unknown.
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
    """Lease changes of one `Batch`. The last change of a lease or a lease batch counts.

    Leases in `ended` are removed first, with all of their batches. A value of None removes.
    """

    def __init__(self) -> None:
        self.ended: Final[dict[str, None]] = {}
        self.leases: Final[dict[str, StoredLease | None]] = {}
        self.batches: Final[dict[tuple[str, int], StoredLeaseBatch | None]] = {}
        self.fencing_token: i64 = 0

    def keep(self, lease: StoredLease) -> None:
        """Add a lease, or replace its record."""
        self.leases[lease.name] = lease
        self.fencing_token = max(self.fencing_token, lease.fencing_token)

    def end(self, name: str) -> None:
        """Remove a lease with all of its batches. No effect if it is gone."""
        self.ended[name] = None
        self.leases[name] = None
        for key in list(self.batches):
            if key[0] == name:
                del self.batches[key]

    def acquire(self, lease_batch: StoredLeaseBatch) -> None:
        """Add a batch to its lease."""
        self.batches[lease_batch.lease, int(lease_batch.batch_number)] = lease_batch

    def settle(self, name: str, batch_number: i64) -> None:
        """Remove a settled batch. No effect if it is gone."""
        self.batches[name, int(batch_number)] = None
