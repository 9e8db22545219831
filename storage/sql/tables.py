"""The tables of a store. `migrations` makes them; a test holds both to one shape.

Messages lie in segments in the order of their numbers, which is the order of commits, and
have no other index: a commit then writes next to what the last one wrote,
however many queues there are (`storage.md` 3.2). The order within a queue is
put together in memory, once, at the start.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

METADATA: Final = MetaData()

# SQLite's rowid is an INTEGER and nothing else
_SERIAL: Final = BigInteger().with_variant(Integer, "sqlite")

QUEUE: Final = Table(
    "queue",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    # ids are never given twice: messages of a queue that has gone may still lie about
    sqlite_autoincrement=True,
)
"""Whatever holds messages: a queue by its address, a subscription by a name of its own."""

NODE: Final = Table(
    "node",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("kind", String, nullable=False),
    Column("address", String, nullable=False),
    UniqueConstraint("kind", "address"),
    sqlite_autoincrement=True,
)

SUBSCRIPTION: Final = Table(
    "subscription",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("queue", String, nullable=False, unique=True),
    Column("container_id", String, nullable=True),
    Column("name", String, nullable=False),
    Column("is_shared", Boolean, nullable=False),
    Column("address", String, nullable=False),
    Column("filters", LargeBinary, nullable=False),
    Column("excluded_publisher", String, nullable=False),
    Column("durability", Integer, nullable=False),
    Column("expiry_policy", String, nullable=False),
    Column("timeout_s", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

SEGMENT: Final = Table(
    "segment",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("size", BigInteger, nullable=False),
    Column("facts", LargeBinary, nullable=False),
)
"""Messages that came together, under the lowest of their numbers: `segments/segment.py`."""

BODY: Final = Table(
    "body",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("encoded", LargeBinary, nullable=False),
    Column("labels", LargeBinary, nullable=True),
)
"""The bytes of all messages of the segment of that number, `size` of them, and what those have
besides their records: `storage.sql.segments.labels`, null where none of them has anything."""

QUARANTINE: Final = Table(
    "quarantine",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("found_ms", BigInteger, nullable=False),
    Column("reason", String, nullable=False),
)
"""Messages that must not be delivered, for they are damaged. Their rows stay where they are."""

REMEMBERED_ID: Final = Table(
    "remembered_id",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("address", String, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)
"""Digests of the ids of messages that came to a node, in the order in which they came: what a
repeat is known by. Bounded by the windows of the nodes."""

LARGE: Final = Table(
    "large",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("content", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("beginning", LargeBinary, nullable=False),
    Column("checksum", BigInteger, nullable=False),
)
"""What a large message has besides its own row: a content, whose chunks make up its body."""

CHUNK: Final = Table(
    "chunk",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("checksum", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""`number` is the content's times CHUNKS_MAX, and the place of the chunk in it."""

DELIVERED: Final = Table(
    "delivered",
    METADATA,
    Column("queue", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
)
"""By queue, the position up to which its messages may have been delivered."""

LEASE: Final = Table(
    "lease",
    METADATA,
    Column("name", String, primary_key=True),
    Column("queue", String, nullable=False),
    # bytes: there may be anything in a text between quotes, and not all stores take that
    Column("selector", LargeBinary, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("ttl_ms", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("settled", BigInteger, nullable=False),
)

LEASE_BATCH: Final = Table(
    "lease_epoch",
    METADATA,
    Column("lease", String, primary_key=True),
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("members", LargeBinary, nullable=False),
)
"""The messages of a batch of a lease that is not settled, packed: `storage.sql.leases`."""

EVENT: Final = Table(
    "event",
    METADATA,
    Column("id", _SERIAL, primary_key=True, autoincrement=False),
    Column("at_us", BigInteger, nullable=False),
    Column("kind", String, nullable=False),
    Column("vhost", String, nullable=False),
    Column("address", String, nullable=False),
    Column("subscription", String, nullable=False),
    Column("message_id", String, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("consumer", String, nullable=False),
    Column("link", String, nullable=False),
    Column("session", String, nullable=False),
    Column("delivery_count", BigInteger, nullable=False),
    Column("deliver_at_us", BigInteger, nullable=False),
    Column("txn", String, nullable=False),
    Column("reason", String, nullable=False),
    Column("boot", String, nullable=False),
)
"""The event log: `storage.events.EVENT_COLUMNS`."""

STAGE: Final = Table(
    "stage",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("query", String, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("partition", BigInteger, nullable=False),
    Column("attempt", BigInteger, nullable=False),
    Column("kind", String, nullable=False),
    Column("address", String, nullable=False),
    Column("publisher", String, nullable=False),
    Column("begun_ms", BigInteger, nullable=False),
)
"""What waits for the commit of a sink: `storage.stages.StoredStage`."""

SINK: Final = Table(
    "sink",
    METADATA,
    Column("query", String, primary_key=True),
    Column("batch", BigInteger, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)
"""Which batch of a query was committed last, and when."""

MARK: Final = Table(
    "mark",
    METADATA,
    Column("name", String, primary_key=True),
    Column("value", BigInteger, nullable=False),
)
"""Numbers by name, such as up to where message numbers are spoken for."""
