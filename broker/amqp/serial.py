"""Serial number arithmetic of 32 bits, RFC 1982 (core spec 2.8.10).

Delivery numbers, transfer numbers and delivery-counts wrap. They are compared with
these functions; code on the data path increments them itself, with a mask.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

MASK: Final = 0xFFFF_FFFF
HALF: Final = 0x8000_0000


def add(start: i64, step: i64) -> i64:
    """Return `start` moved by `step`, which may be negative."""
    return (start + step) & MASK


def ahead(one: i64, other: i64) -> i64:
    """Return how far `one` is ahead of `other`; negative if it is behind.

    RFC 1982 leaves a distance of exactly 2^31 undefined: here it is -2^31.
    """
    return ((one - other + HALF) & MASK) - HALF


def compare(one: i64, other: i64) -> i64:
    """Return -1, 0 or 1 if `one` is before, at or after `other`."""
    difference = ahead(one, other)
    if difference == 0:
        return 0
    return 1 if difference > 0 else -1
