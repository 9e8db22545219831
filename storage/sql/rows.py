"""Rows made of records, and read back into them; messages with a checksum between the two."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

from google_crc32c import extend
from sqlalchemy import Row

from storage.records import StoredMessage, StoredSubscription

MessageRow = tuple[int, int, int, int, int, int, int, int, int, bool, int, int | None, bytes | None]
"""The columns of the table `message`; BODY is the index of the one that may name a body."""

BODY: Final = 11

PRIORITY: Final = 3
CHECKSUM: Final = 10
ENCODED: Final = 12

BodyRow = tuple[int, bytes]

NUMBERS: Final = range(2, 9)
"""The columns from position to delivery_count."""

PRIORITY_MAX: Final = 9

NONE: Final = -1
"""What stands where there is no time to live; nothing in a row is less."""


class UnreadableError(Exception):
    """Something that the broker cannot do without is damaged."""


def checksum(number: int, encoded: bytes) -> int:
    """CRC-32C over number and content: a row found in another's place is noticed too."""
    return int(extend(extend(0, number.to_bytes(8)), encoded))


class Rows:
    """What the messages of one batch become: a row each, and the bodies that several share."""

    def __init__(self, appended: list[StoredMessage | None], queue_ids: Mapping[str, int]) -> None:
        self.messages: Final[list[MessageRow]] = []
        self.bodies: Final[list[BodyRow]] = []
        left = [message for message in appended if message is not None]
        for index, message in enumerate(left):
            self._add(message, queue_ids[message.queue], left[index + 1 : index + 2])

    def _add(self, message: StoredMessage, queue: int, following: list[StoredMessage]) -> None:
        """Copies of one message follow each other, and share one object for their bytes."""
        encoded = message.encoded
        body: int | None = None
        if self.bodies and self.bodies[-1][1] is encoded:
            body = self.bodies[-1][0]
        elif following and following[0].encoded is encoded:
            body = int(message.number)
            self.bodies.append((body, encoded))
        self.messages.append(
            (
                int(message.number),
                queue,
                int(message.position),
                int(message.priority),
                int(message.ttl_ms),
                int(message.arrived_ms),
                int(message.expires_at_ms),
                int(message.deliver_at_ms),
                int(message.delivery_count),
                message.durable,
                checksum(int(message.number), encoded),
                body,
                encoded if body is None else None,
            )
        )


def ranges(numbers: list[int]) -> list[tuple[int, int]]:
    """The numbers as ranges, first and last, in ascending order: few statements for many rows."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(number, found[-1][1]))
        else:
            found.append((number, number))
    return found


def damage_of(row: Sequence[Any], shared: object) -> str:
    """Why the message of a row must not be delivered; empty where nothing is wrong with it.

    A flipped bit may also have made another type of a value: SQLite's rows say themselves what
    their values are.
    """
    values = (*row[NUMBERS.start : NUMBERS.stop], row[CHECKSUM])
    if set(map(type, values)) != {int} or min(values) < NONE:
        return "a number of its row cannot be"
    if row[0] < 1 or not 0 <= row[PRIORITY] <= PRIORITY_MAX:
        return "a number of its row cannot be"
    encoded = row[ENCODED] if row[BODY] is None else shared
    if encoded is None:
        return "its bytes are missing"
    if not isinstance(encoded, bytes) or checksum(row[0], encoded) != row[CHECKSUM]:
        return "its bytes are not those that were stored"
    return ""


def message_of(row: Sequence[Any], queue: str, shared: bytes | None) -> StoredMessage:
    """The record of a row without damage."""
    number, _, position, priority, ttl, arrived, expires, deliver, count, durable = row[:CHECKSUM]
    return StoredMessage(
        number=number,
        queue=queue,
        position=position,
        encoded=row[ENCODED] if shared is None else shared,
        priority=priority,
        ttl_ms=ttl,
        arrived_ms=arrived,
        expires_at_ms=expires,
        deliver_at_ms=deliver,
        delivery_count=count,
        durable=bool(durable),
    )


def subscription_row(subscription: StoredSubscription) -> tuple[object, ...]:
    """The columns of the table `subscription` behind its id."""
    return (
        subscription.queue,
        subscription.container_id,
        subscription.name,
        subscription.is_shared,
        subscription.address,
        _packed(subscription.filters),
        subscription.excluded_publisher,
        int(subscription.durability),
        subscription.expiry_policy,
        int(subscription.timeout_s),
    )


def subscription_of(row: Row[Any]) -> StoredSubscription:
    """The record of a row; UnreadableError where its filters are damaged.

    Without its filter a subscription would get what it never asked for.
    """
    return StoredSubscription(
        queue=row.queue,
        container_id=row.container_id,
        name=row.name,
        is_shared=row.is_shared,
        address=row.address,
        filters=_unpacked(row.queue, row.filters),
        excluded_publisher=row.excluded_publisher,
        durability=row.durability,
        expiry_policy=row.expiry_policy,
        timeout_s=row.timeout_s,
    )


def _packed(filters: list[tuple[str, bytes]]) -> bytes:
    return json.dumps([[name, b64encode(value).decode()] for name, value in filters]).encode()


def _unpacked(queue: str, packed: bytes) -> list[tuple[str, bytes]]:
    try:
        return [(name, b64decode(value)) for name, value in json.loads(packed)]
    except (ValueError, TypeError):
        raise UnreadableError(f"the filters of the subscription {queue} are damaged") from None
