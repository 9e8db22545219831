"""Leases in SQL: one row each, and one for each batch that is not settled, with packed columns.

A lease that the source of a link owns has one more row, about that source.

Numbers of messages ascend, mostly by one, so a batch of 10,000 takes some hundreds of bytes.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select
from sqlalchemy.sql.expression import ClauseElement

from storage.leases import (
    LeaseChanges,
    StoredLease,
    StoredLeaseBatch,
    StoredLeases,
    StoredTerminus,
)
from storage.sql.statements import SET_MARK
from storage.sql.tables import LEASE, LEASE_BATCH, LEASE_TERMINUS, MARK

FENCING_TOKENS: Final = "generations"
"""Mark with the highest fencing token given: no token is reused, even if its lease is gone."""

HEAD: Final = 6
"""Bytes before the columns: the number of slices (2) and the number of messages (4)."""

DELETE: Final = delete(LEASE).where(LEASE.c.name == bindparam("which"))
"""Parameters: name."""

INSERT: Final = insert(LEASE)
"""Parameters: the columns of LEASE, in their order."""

DELETE_LEASE_BATCHES: Final = delete(LEASE_BATCH).where(LEASE_BATCH.c.lease == bindparam("which"))
"""Parameters: lease."""

DELETE_LEASE_BATCH: Final = delete(LEASE_BATCH).where(
    LEASE_BATCH.c.lease == bindparam("which"), LEASE_BATCH.c.epoch == bindparam("at")
)
"""Parameters: lease, batch."""

INSERT_LEASE_BATCH: Final = insert(LEASE_BATCH)
"""Parameters: lease, batch, members."""

DELETE_TERMINUS: Final = delete(LEASE_TERMINUS).where(LEASE_TERMINUS.c.lease == bindparam("which"))
"""Parameters: lease."""

INSERT_TERMINUS: Final = insert(LEASE_TERMINUS)
"""Parameters: the columns of LEASE_TERMINUS, in their order."""

Statements = list[tuple[ClauseElement, Sequence[tuple[object, ...]]]]


def statements_of(changes: LeaseChanges) -> Statements:
    """Return the statements that write `changes`, each with its rows of parameters."""
    leases = [_row_of(each) for each in changes.leases.values() if each is not None]
    termini = [
        _terminus_row_of(each.name, each.terminus)
        for each in changes.leases.values()
        if each is not None and each.terminus is not None
    ]
    batches = [
        (each.lease, int(each.batch_number), packed(each))
        for each in changes.batches.values()
        if each is not None
    ]
    written: Statements = [
        (DELETE_LEASE_BATCHES, [(name,) for name in changes.ended]),
        (DELETE, [(name,) for name in changes.leases]),
        (DELETE_TERMINUS, [(name,) for name in changes.ended] + [(row[0],) for row in termini]),
        (DELETE_LEASE_BATCH, list(changes.batches)),
        (INSERT, leases),
        (INSERT_TERMINUS, termini),
        (INSERT_LEASE_BATCH, batches),
    ]
    if changes.fencing_token > 0:
        written.append((SET_MARK, [(int(changes.fencing_token), FENCING_TOKENS)]))
    return [(statement, rows) for statement, rows in written if rows]


def _row_of(lease: StoredLease) -> tuple[object, ...]:
    return (
        lease.name,
        lease.queue,
        lease.selector.encode(),
        int(lease.fencing_token),
        int(lease.ttl_ms),
        int(lease.batch_number),
        int(lease.settled),
    )


def _terminus_row_of(lease: str, terminus: StoredTerminus) -> tuple[object, ...]:
    return (
        lease,
        terminus.container_id,
        terminus.link,
        terminus.owner,
        terminus.address,
        terminus.expiry_policy,
        int(terminus.timeout_s),
        terminus.default_outcome,
    )


def packed(lease_batch: StoredLeaseBatch) -> bytes:
    """Return the messages of `lease_batch`, packed so that `unpacked` detects damage."""
    previous = 0
    steps = array("q")
    for number in lease_batch.numbers:
        steps.append(number - previous)
        previous = number
    head = int(lease_batch.slice_count).to_bytes(2, "little") + len(steps).to_bytes(4, "little")
    columns = (
        _little(steps).tobytes(),
        lease_batch.slices,
        _little(array("q", lease_batch.counts)).tobytes(),
    )
    return zlib.compress(head + b"".join(columns), 1)


def unpacked(lease: str, number: int, members: bytes) -> StoredLeaseBatch | None:
    """Return the lease's batch of that number; None if its row is damaged."""
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
    return StoredLeaseBatch(
        lease=lease,
        batch_number=number,
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
    """Return `column` in little-endian order on every machine, since a file may be moved."""
    if sys.byteorder == "big":
        column.byteswap()
    return column


def load(connection: Connection) -> StoredLeases:
    """Return all leases with their batches, and the highest fencing token."""
    termini = {row.lease: _terminus_of(row) for row in connection.execute(select(LEASE_TERMINUS))}
    leases = [
        StoredLease(
            name=row.name,
            queue=row.queue,
            selector=row.selector.decode(),
            fencing_token=row.generation,
            ttl_ms=row.ttl_ms,
            batch_number=row.epoch,
            settled=row.settled,
            terminus=termini.get(row.name),
        )
        for row in connection.execute(select(LEASE).order_by(LEASE.c.name))
    ]
    batches: list[StoredLeaseBatch] = []
    damaged: list[str] = []
    order = (LEASE_BATCH.c.lease, LEASE_BATCH.c.epoch)
    for row in connection.execute(select(LEASE_BATCH).order_by(*order)):
        lease_batch = unpacked(row.lease, row.epoch, row.members)
        if lease_batch is None:
            damaged.append(row.lease)
        else:
            batches.append(lease_batch)
    given = highest_token(connection)
    return StoredLeases(leases, batches, fencing_token=given, damaged=damaged)


def highest_token(connection: Connection) -> int:
    """Return the highest fencing token that was given, as far as the store knows.

    The mark has it; if a salvage has lost the mark, the leases that have not ended have theirs.
    """
    marked = connection.execute(select(MARK.c.value).where(MARK.c.name == FENCING_TOKENS)).scalar()
    leased = connection.execute(select(func.max(LEASE.c.generation))).scalar()
    return max(marked or 0, leased or 0)


def _terminus_of(row: Row[Any]) -> StoredTerminus:
    return StoredTerminus(
        container_id=row.container_id,
        link=row.link,
        owner=row.owner,
        address=row.address,
        expiry_policy=row.expiry_policy,
        timeout_s=row.timeout_s,
        default_outcome=bytes(row.default_outcome),
    )
