"""Serial number arithmetic of 32 bits, RFC 1982 (core spec 2.8.10).

Delivery numbers, transfer numbers and delivery-counts wrap. They are added and
compared here and nowhere else.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

MASK: Final = 0xFFFF_FFFF
HALF: Final = 0x8000_0000


def add(start: i64, step: i64) -> i64:
    """`start` moved by `step`, which may be negative."""
    return (start + step) & MASK


def ahead(one: i64, other: i64) -> i64:
    """How far `one` is ahead of `other`; negative where it is behind.

    RFC 1982 leaves a distance of exactly 2^31 undefined: here it is -2^31.
    """
    return ((one - other + HALF) & MASK) - HALF


def compare(one: i64, other: i64) -> i64:
    """-1, 0 or 1: `one` is before, at or behind `other`."""
    difference = ahead(one, other)
    if difference == 0:
        return 0
    return 1 if difference > 0 else -1
