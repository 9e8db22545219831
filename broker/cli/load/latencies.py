"""A histogram of latencies that needs little memory however many there are."""

from __future__ import annotations

from typing import Final, final

PRECISION_BITS: Final = 7
"""The bits of a value that are stored: a percentile differs from the true one by less than 1 %."""


@final
class Latencies:
    """Latencies in nanoseconds, and how often each was measured."""

    def __init__(self) -> None:
        self._counts: Final[dict[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    @property
    def buckets(self) -> int:
        """Return how many different values are stored."""
        return len(self._counts)

    def add(self, latency_ns: int) -> None:
        """Count a latency; one below 0 is counted as 0."""
        shift = max(0, latency_ns.bit_length() - PRECISION_BITS)
        # the middle of all values with these highest bits
        bucket = ((latency_ns >> shift) << shift) + ((1 << shift) >> 1) if latency_ns > 0 else 0
        self._counts[bucket] = self._counts.get(bucket, 0) + 1

    def merge(self, other: Latencies) -> None:
        """Count all latencies of `other` here, too."""
        for bucket, count in other._counts.items():
            self._counts[bucket] = self._counts.get(bucket, 0) + count

    def percentile_ns(self, percent: float) -> int | None:
        """Return the latency that `percent` of all do not exceed; None if there is none."""
        wanted = sum(self._counts.values()) * percent / 100
        passed = 0
        for bucket in sorted(self._counts):
            passed += self._counts[bucket]
            if passed >= wanted:
                return bucket
        return None
