"""Immutable records of a store's contents. They hold encoded messages, never decoded ones."""

from typing import Final, final

from mypy_extensions import i64, mypyc_attr


@mypyc_attr(acyclic=True)
@final
class StoredContent:
    """The body of a large message, which a store keeps in chunks, apart from the message.

    `number` is unique, `size` is that of the whole body in bytes; `beginning` holds
    the first of them, which management shows as a preview.
    """

    def __init__(self, *, number: i64, size: i64, beginning: bytes) -> None:
        self.number: Final[i64] = number
        self.size: Final[i64] = size
        self.beginning: Final = beginning


@mypyc_attr(acyclic=True)
@final
class StoredMessage:
    """One message in one queue: `number` is never reused, `position` is its place in the queue.

    Copies of one message in several queues share the object `encoded`.

    `encoded` holds the sections from message-annotations on, as received, without body and
    footer if those are in a `content` of their own. The header's fields are separate because the
    broker rewrites the header; `durable` is the sender's value, since some queues also store
    messages that are not durable. Times are wall time in ms: `expires_at_ms` 0 is never,
    `deliver_at_ms` 0 at once.

    `message_format` is that of its transfer (core 2.7.5). An `opaque` message has no sections
    that the broker can read: `encoded` is its payload, header included if there is one.
    `publisher` is the container-id of the client that sent it, empty if unknown. A `volatile`
    message is deleted the next time the store is opened.
    """

    def __init__(
        self,
        *,
        number: i64,
        queue: str,
        position: i64,
        encoded: bytes,
        priority: i64,
        ttl_ms: i64,
        arrived_ms: i64,
        expires_at_ms: i64,
        deliver_at_ms: i64,
        delivery_count: i64,
        durable: bool = True,
        content: StoredContent | None = None,
        message_format: i64 = 0,
        opaque: bool = False,
        publisher: str = "",
        volatile: bool = False,
    ) -> None:
        self.number: Final[i64] = number
        self.queue: Final = queue
        self.position: Final[i64] = position
        self.encoded: Final = encoded
        self.priority: Final[i64] = priority
        self.ttl_ms: Final[i64] = ttl_ms
        self.arrived_ms: Final[i64] = arrived_ms
        self.expires_at_ms: Final[i64] = expires_at_ms
        self.deliver_at_ms: Final[i64] = deliver_at_ms
        self.delivery_count: Final[i64] = delivery_count
        self.durable: Final = durable
        self.content: Final = content
        self.message_format: Final[i64] = message_format
        self.opaque: Final = opaque
        self.publisher: Final = publisher
        self.volatile: Final = volatile

    def size(self) -> int:
        """Return the size of the message in bytes, its content included."""
        size = len(self.encoded)
        return size if self.content is None else size + int(self.content.size)

    def with_count(self, delivery_count: i64) -> "StoredMessage":
        """Return a copy with another delivery-count."""
        return self._changed(delivery_count=delivery_count)

    def with_bytes(self, encoded: bytes) -> "StoredMessage":
        """Return a copy with other encoded sections."""
        return self._changed(encoded=encoded)

    def with_content(self, content: StoredContent | None) -> "StoredMessage":
        """Return a copy with `content`, or this message if that is None."""
        return self if content is None else self._changed(content=content)

    def fallen_due(self, position: i64) -> "StoredMessage":
        """Return a copy at `position` that has no delivery time any more."""
        return self._changed(position=position, deliver_at_ms=0)

    def moved(
        self, number: i64, queue: str, position: i64, *, delivery_count: i64
    ) -> "StoredMessage":
        """Return a copy in another queue, under another number."""
        return self._changed(
            number=number, queue=queue, position=position, delivery_count=delivery_count
        )

    def _changed(
        self,
        *,
        number: i64 = -1,
        queue: str | None = None,
        position: i64 = -1,
        encoded: bytes | None = None,
        deliver_at_ms: i64 = -1,
        delivery_count: i64 = -1,
        content: StoredContent | None = None,
    ) -> "StoredMessage":
        """Return a copy with the given fields changed; -1 and None leave a field as it is."""
        return StoredMessage(
            number=self.number if number < 0 else number,
            queue=self.queue if queue is None else queue,
            position=self.position if position < 0 else position,
            encoded=self.encoded if encoded is None else encoded,
            priority=self.priority,
            ttl_ms=self.ttl_ms,
            arrived_ms=self.arrived_ms,
            expires_at_ms=self.expires_at_ms,
            deliver_at_ms=self.deliver_at_ms if deliver_at_ms < 0 else deliver_at_ms,
            delivery_count=self.delivery_count if delivery_count < 0 else delivery_count,
            durable=self.durable,
            content=self.content if content is None else content,
            message_format=self.message_format,
            opaque=self.opaque,
            publisher=self.publisher,
            volatile=self.volatile,
        )


@final
class StoredPlaces:
    """Positions, sizes and times of messages, in columns since there may be millions.

    A row has the number of a message, the name of its queue, its position there, its size in
    bytes, and the two times as in `StoredMessage`.
    """

    def __init__(self) -> None:
        self.numbers: Final[list[int]] = []
        self.queues: Final[list[str]] = []
        self.positions: Final[list[int]] = []
        self.sizes: Final[list[int]] = []
        self.expires_at_ms: Final[list[int]] = []
        self.deliver_at_ms: Final[list[int]] = []


@final
class StoredNode:
    """A queue or topic that a restart restores (DST-02).

    `auto_created`: it was created because a client named it. `creator` is the user of that client,
    empty without a login; None if no client created the node, or an earlier broker did.
    """

    def __init__(
        self, *, address: str, kind: str, auto_created: bool = False, creator: str | None = None
    ) -> None:
        self.address: Final = address
        self.kind: Final = kind
        self.auto_created: Final = auto_created
        self.creator: Final = creator


@final
class StoredId:
    """The digest of the id of a message that a node has received, for duplicate detection.

    `number` is unique and ascends in the order of arrival; `at_ms` is wall time in ms.
    """

    def __init__(self, *, number: i64, kind: str, address: str, digest: bytes, at_ms: i64) -> None:
        self.number: Final[i64] = number
        self.kind: Final = kind
        self.address: Final = address
        self.digest: Final = digest
        self.at_ms: Final[i64] = at_ms


@final
class StoredSubscription:
    """A durable subscription that a restart restores.

    Its messages are those of `queue`, a name that no other queue has or will have;
    `container_id` is None in the global name space. `filters` are encoded as received;
    `excluded_publisher` is the container-id whose messages a no-local filter among them excludes,
    empty without such a filter: in the global name space no other field holds it. `owner` is the
    user that it belongs to, empty if a client without a login began it.
    """

    def __init__(
        self,
        *,
        queue: str,
        container_id: str | None,
        name: str,
        is_shared: bool,
        address: str,
        filters: list[tuple[str, bytes]],
        excluded_publisher: str,
        durability: i64,
        expiry_policy: str,
        timeout_s: i64,
        owner: str = "",
    ) -> None:
        self.queue: Final = queue
        self.owner = owner
        self.container_id: Final = container_id
        self.name: Final = name
        self.is_shared: Final = is_shared
        self.address: Final = address
        self.filters: Final = filters
        self.excluded_publisher: Final = excluded_publisher
        self.durability: Final[i64] = durability
        self.expiry_policy: Final = expiry_policy
        self.timeout_s: Final[i64] = timeout_s
