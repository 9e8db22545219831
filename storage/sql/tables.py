"""The tables of a store. `migrations` creates them; a test checks that both have the same shape.

Messages are stored in segments in the order of their numbers, which is the order of commits, and
have no other index: a commit then writes next to the rows of the last one,
however many queues there are (`docs/design/data-path.md` 3.2). The order within a queue is
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
    false,
)

METADATA: Final = MetaData()

# in SQLite only an INTEGER column can be the rowid
_SERIAL: Final = BigInteger().with_variant(Integer, "sqlite")

QUEUE: Final = Table(
    "queue",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    # ids are never reused: messages of a removed queue may still be stored
    sqlite_autoincrement=True,
)
"""Holders of messages: a queue by its address, a subscription by a name of its own."""

NODE: Final = Table(
    "node",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("kind", String, nullable=False),
    Column("address", String, nullable=False),
    Column("creator", String, nullable=True),
    Column("auto_created", Boolean, nullable=False, server_default=false()),
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
    Column("owner", String, nullable=False, server_default=""),
    sqlite_autoincrement=True,
)

SEGMENT: Final = Table(
    "segment",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("size", BigInteger, nullable=False),
    Column("facts", LargeBinary, nullable=False),
)
"""Messages committed together, under the lowest of their numbers: `segments/segment.py`."""

BODY: Final = Table(
    "body",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("encoded", LargeBinary, nullable=False),
    Column("labels", LargeBinary, nullable=True),
)
"""The bytes of all messages of the segment of that number (as many as its `size`), and the labels
of these messages (`storage.sql.segments.labels`), null if none of them has a label."""

QUARANTINE: Final = Table(
    "quarantine",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("found_ms", BigInteger, nullable=False),
    Column("reason", String, nullable=False),
)
"""Damaged messages, which must not be delivered. Their other rows stay where they are."""

REMEMBERED_ID: Final = Table(
    "remembered_id",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("address", String, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)
"""Digests of the ids of messages that a node received, in the order of arrival, to detect
duplicates. Bounded by the windows of the nodes."""

LARGE: Final = Table(
    "large",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("content", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("beginning", LargeBinary, nullable=False),
    Column("checksum", BigInteger, nullable=False),
)
"""The content of a large message, besides the message's own record; its chunks are the body."""

CHUNK: Final = Table(
    "chunk",
    METADATA,
    Column("number", _SERIAL, primary_key=True, autoincrement=False),
    Column("checksum", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""Chunks of contents. `number` is that of the content times CHUNKS_MAX, plus the chunk's index."""

DELIVERED: Final = Table(
    "delivered",
    METADATA,
    Column("queue", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
)
"""For each queue the position up to which its messages may have been delivered."""

LEASE: Final = Table(
    "lease",
    METADATA,
    Column("name", String, primary_key=True),
    Column("queue", String, nullable=False),
    # bytes: a quoted text in a selector may contain characters that not all databases accept
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
"""The messages of each batch of a lease that is not settled, packed: `storage.sql.leases`."""

LEASE_TERMINUS: Final = Table(
    "lease_terminus",
    METADATA,
    Column("lease", String, primary_key=True),
    Column("container_id", String, nullable=False),
    Column("link", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("address", String, nullable=False),
    Column("expiry_policy", String, nullable=False),
    Column("timeout_s", BigInteger, nullable=False),
    Column("default_outcome", LargeBinary, nullable=False),
)
"""The source that owns a lease, if one does: its batches are what links of it hold unsettled."""

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
"""The event log, with the columns of `storage.events.EVENT_COLUMNS`."""

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
"""Stages that wait for the commit of a sink: `storage.stages.StoredStage`."""

SINK: Final = Table(
    "sink",
    METADATA,
    Column("query", String, primary_key=True),
    Column("batch", BigInteger, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)
"""The last committed batch of each query, and the time of its commit."""

USER_ACCOUNT: Final = Table(
    "user_account",
    METADATA,
    Column("name", String, primary_key=True),
    Column("completes", String, nullable=False),
    Column("roles", String, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("password", String, nullable=False),
    Column("scram_sha_256", String, nullable=False),
    Column("scram_sha_512", String, nullable=False),
    Column("credential_version", BigInteger, nullable=False),
    Column("changed_at_ms", BigInteger, nullable=False),
    Column("mechanisms", String, nullable=True),
    Column("certificates", String, nullable=False),
    Column("previous_until_ms", BigInteger, nullable=False),
    Column("previous_password", String, nullable=False),
    Column("previous_scram_sha_256", String, nullable=False),
    Column("previous_scram_sha_512", String, nullable=False),
)
"""Users that log in, with the fields of `storage.users.StoredUser`; lists are JSON."""

API_TOKEN: Final = Table(
    "api_token",
    METADATA,
    Column("id", String, primary_key=True),
    Column("digest", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("description", String, nullable=False),
    Column("roles", String, nullable=True),
    Column("credential_version", BigInteger, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
)
"""API tokens of users, with the fields of `storage.users.StoredToken`; the roles are JSON."""

MEMBER: Final = Table(
    "member",
    METADATA,
    Column("name", String, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("host", String, nullable=False),
    Column("port", BigInteger, nullable=False),
)
"""The addresses of the brokers of a group, one for each kind of listener."""

UNSETTLED: Final = Table(
    "unsettled",
    METADATA,
    Column("container_id", String, primary_key=True),
    Column("link", String, primary_key=True),
    Column("tag", LargeBinary, primary_key=True),
    Column("outcome", LargeBinary, nullable=False),
    Column("owner", String, nullable=False),
    Column("address", String, nullable=False),
    Column("expiry_policy", String, nullable=False),
    Column("timeout_s", BigInteger, nullable=False),
)
"""Outcomes of deliveries that their sender has not settled, by the link's container-id and name."""

SECRET: Final = Table(
    "secret",
    METADATA,
    Column("name", String, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)
"""Secrets of the broker by name."""

MARK: Final = Table(
    "mark",
    METADATA,
    Column("name", String, primary_key=True),
    Column("value", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=True),
)
"""Numbers by name, such as the highest reserved message number. `epoch` is used for one of them
only: `storage.sql.postgresql.epoch`."""
