"""Conversion of records to rows and back, and checksums of rows."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from google_crc32c import extend
from sqlalchemy import Row

from storage.records import StoredSubscription


class UnreadableError(Exception):
    """Data that the broker cannot do without is damaged."""


def checksum(number: int, data: bytes) -> int:
    """Return the CRC-32C of number and data: a row in the place of another is detected, too."""
    return int(extend(extend(0, number.to_bytes(8)), data))


def subscription_row(subscription: StoredSubscription) -> tuple[object, ...]:
    """Return the columns of the table `subscription` behind its id."""
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
        subscription.owner,
    )


def subscription_of(row: Row[Any]) -> StoredSubscription:
    """Return the record of a row. Raise UnreadableError if its filters are damaged.

    Without its filters a subscription would receive messages that they exclude.
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
        owner=row.owner,
    )


def _packed(filters: list[tuple[str, bytes]]) -> bytes:
    return json.dumps([[name, b64encode(value).decode()] for name, value in filters]).encode()


def _unpacked(queue: str, packed: bytes) -> list[tuple[str, bytes]]:
    try:
        return [(name, b64decode(value)) for name, value in json.loads(packed)]
    except (ValueError, TypeError):
        raise UnreadableError(f"the filters of the subscription {queue} are damaged") from None
