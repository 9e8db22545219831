"""Messages in segments: 64 of them in two rows, their records apart from their bytes.

Damaged messages stay damaged: they get a checksum that does not match.
"""

import struct
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from google_crc32c import extend

revision = "0007"
down_revision = "0006"

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")

BYTES_MAX = 256 * 1024

ROWS = (
    "SELECT m.number, m.position, m.ttl_ms, m.arrived_ms, m.expires_at_ms, m.deliver_at_ms,"
    " m.queue, m.delivery_count, m.priority, m.durable, m.checksum, m.body, m.encoded, b.encoded"
    " FROM message m LEFT JOIN body b ON b.number = m.body"
    " WHERE m.number > {} ORDER BY m.number LIMIT 64"
)

RECORD = struct.Struct("<qqqqqqIIIIII")


def upgrade() -> None:
    make_tables()
    connection = op.get_bind()
    behind = -(2**63)
    while rows := connection.exec_driver_sql(ROWS.format(behind)).all():
        behind = rows[-1][0]
        for group in groups(rows):
            write(connection, group)
    op.drop_table("message")
    op.drop_table("body")
    op.rename_table("new_body", "body")
    if connection.dialect.name == "postgresql":
        op.execute("ALTER INDEX new_body_pkey RENAME TO body_pkey")
        # to compress bytes without gaps takes time, and saves nothing
        op.execute("ALTER TABLE segment ALTER COLUMN facts SET STORAGE EXTERNAL")
        op.execute("ALTER TABLE body ALTER COLUMN encoded SET STORAGE EXTERNAL")


def make_tables() -> None:
    op.create_table(
        "segment",
        sa.Column("number", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("facts", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "new_body",
        sa.Column("number", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("encoded", sa.LargeBinary, nullable=False),
    )


def groups(rows: Sequence[Sequence[Any]]) -> list[list[Sequence[Any]]]:
    """Return the rows in their order, in groups that each become a segment."""
    found: list[list[Sequence[Any]]] = []
    size = BYTES_MAX
    for row in rows:
        length = len(encoded_of(row))
        if size + length > BYTES_MAX:
            found.append([])
            size = 0
        found[-1].append(row)
        size += length
    return found


def encoded_of(row: Sequence[Any]) -> bytes:
    encoded = row[13] if row[12] is None else row[12]
    return encoded if isinstance(encoded, bytes) else b""


def write(connection: sa.Connection, rows: list[Sequence[Any]]) -> None:
    records: list[bytes] = []
    parts: list[bytes] = []
    size = 0
    shared: object = None
    for row in rows:
        encoded = encoded_of(row)
        if row[11] is None or row[11] != shared:
            parts.append(encoded)
            size += len(encoded)
        shared = row[11]
        records.append(record_of(row, encoded, size - len(encoded)))
    number = rows[0][0]
    for table, values in (
        (
            sa.table("segment", *map(sa.column, ("number", "size", "facts"))),
            (size, b"".join(records)),
        ),
        (sa.table("new_body", *map(sa.column, ("number", "encoded"))), (b"".join(parts),)),
    ):
        names = [column.name for column in table.columns]
        connection.execute(sa.insert(table), dict(zip(names, (number, *values), strict=True)))


def record_of(row: Sequence[Any], encoded: bytes, offset: int) -> bytes:
    number, checked = row[0], row[10]
    fits = checked == extend(extend(0, number.to_bytes(8, signed=True)), encoded)
    content_sum = extend(0, encoded) ^ (0 if fits else 0xFFFFFFFF)
    try:
        flags = row[8] | (256 if row[9] else 0)
        record = RECORD.pack(*row[:8], offset, len(encoded), content_sum, flags)
    except (struct.error, TypeError):
        return struct.pack("<q", number) + b"\xff" * (RECORD.size - 4)
    sound = min(row[1:9]) >= -1 and row[8] <= 9
    record_sum = int(extend(0, record)) ^ (0 if sound else 0xFFFFFFFF)
    return record + record_sum.to_bytes(4, "little")
