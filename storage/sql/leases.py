"""Leases in SQL: a row each, and one for each epoch that is not settled, in columns packed small.

Numbers of messages ascend, mostly by one, so an epoch of 10,000 takes some hundreds of bytes.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlalchemy.sql.expression import ClauseElement

from storage.leases import LeaseChanges, StoredEpoch, StoredLease, StoredLeases
from storage.sql.statements import SET_MARK
from storage.sql.tables import LEASE, LEASE_EPOCH, MARK

GENERATIONS: Final = "generations"
"""The mark up to which generations have been given: none comes again, its lease may be gone."""

HEAD: Final = 6
"""Bytes before the columns: how many slices there are, and how many messages."""

DELETE: Final = delete(LEASE).where(LEASE.c.name == bindparam("which"))
"""name"""

INSERT: Final = insert(LEASE)
"""The columns of LEASE, in their order."""

DELETE_EPOCHS: Final = delete(LEASE_EPOCH).where(LEASE_EPOCH.c.lease == bindparam("which"))
"""lease"""

DELETE_EPOCH: Final = delete(LEASE_EPOCH).where(
    LEASE_EPOCH.c.lease == bindparam("which"), LEASE_EPOCH.c.epoch == bindparam("at")
)
"""lease, epoch"""

INSERT_EPOCH: Final = insert(LEASE_EPOCH)
"""lease, epoch, members"""

Statements = list[tuple[ClauseElement, Sequence[tuple[object, ...]]]]


def statements_of(changes: LeaseChanges) -> Statements:
    """What is to be written for `changes`."""
    leases = [_row_of(each) for each in changes.leases.values() if each is not None]
    epochs = [
        (each.lease, int(each.epoch), packed(each))
        for each in changes.epochs.values()
        if each is not None
    ]
    written: Statements = [
        (DELETE_EPOCHS, [(name,) for name in changes.ended]),
        (DELETE, [(name,) for name in changes.leases]),
        (DELETE_EPOCH, list(changes.epochs)),
        (INSERT, leases),
        (INSERT_EPOCH, epochs),
    ]
    if changes.generation > 0:
        written.append((SET_MARK, [(int(changes.generation), GENERATIONS)]))
    return [(statement, rows) for statement, rows in written if rows]


def _row_of(lease: StoredLease) -> tuple[object, ...]:
    return (
        lease.name,
        lease.queue,
        lease.selector.encode(),
        int(lease.generation),
        int(lease.ttl_ms),
        int(lease.epoch),
        int(lease.settled),
    )


def packed(epoch: StoredEpoch) -> bytes:
    """The messages of `epoch`. Whoever unpacks it notices damage."""
    previous = 0
    steps = array("q")
    for number in epoch.numbers:
        steps.append(number - previous)
        previous = number
    head = int(epoch.slice_count).to_bytes(2, "little") + len(steps).to_bytes(4, "little")
    columns = (_little(steps).tobytes(), epoch.slices, _little(array("q", epoch.counts)).tobytes())
    return zlib.compress(head + b"".join(columns), 1)


def unpacked(lease: str, number: int, members: bytes) -> StoredEpoch | None:
    """The epoch of that number; None where its row is damaged."""
    try:
        data = zlib.decompress(members)
    except zlib.error:
        return None
    count = int.from_bytes(data[2:HEAD], "little")
    steps, behind = HEAD + 8 * count, HEAD + 9 * count
    if len(data) != behind + 8 * count:
        return None
    numbers = []
    previous = 0
    for step in _column(data[HEAD:steps]):
        previous += step
        numbers.append(previous)
    return StoredEpoch(
        lease=lease,
        epoch=number,
        slice_count=int.from_bytes(data[:2], "little"),
        numbers=numbers,
        slices=data[steps:behind],
        counts=_column(data[behind:]).tolist(),
    )


def _column(data: bytes) -> array[int]:
    column = array("q")
    column.frombytes(data)
    return _little(column)


def _little(column: array[int]) -> array[int]:
    """The same bytes on every machine: a file may be carried to another."""
    if sys.byteorder == "big":
        column.byteswap()
    return column


def load(connection: Connection) -> StoredLeases:
    """All that are there."""
    leases = [
        StoredLease(
            name=row.name,
            queue=row.queue,
            selector=row.selector.decode(),
            generation=row.generation,
            ttl_ms=row.ttl_ms,
            epoch=row.epoch,
            settled=row.settled,
        )
        for row in connection.execute(select(LEASE).order_by(LEASE.c.name))
    ]
    epochs: list[StoredEpoch] = []
    damaged: list[str] = []
    order = (LEASE_EPOCH.c.lease, LEASE_EPOCH.c.epoch)
    for row in connection.execute(select(LEASE_EPOCH).order_by(*order)):
        epoch = unpacked(row.lease, row.epoch, row.members)
        if epoch is None:
            damaged.append(row.lease)
        else:
            epochs.append(epoch)
    given = connection.execute(select(MARK.c.value).where(MARK.c.name == GENERATIONS)).scalar() or 0
    return StoredLeases(leases, epochs, generation=given, damaged=damaged)
