"""Deliveries per second on links, between two looks at the picture of the topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, final

BETWEEN_MIN_MS: Final = 2_000
"""Minimum ms between two looks of which a rate is made; other viewers get the rates before."""

BETWEEN_MAX_MS: Final = 600_000
"""Maximum ms: after a longer pause the rate would be that of another time."""

WRAP: Final = 1 << 32
"""A delivery-count begins again with 0 there."""


@final
class LinkRates:
    """The rates of the links that the last two looks both have, by the identities of links."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._looked_ms = -BETWEEN_MAX_MS
        self._rates: dict[str, float] = {}

    def look(self, links: Iterable[Mapping[str, object]], now_ms: int) -> Mapping[str, float]:
        """Return the deliveries per second of links as the API lists them, at a time in ms."""
        passed_ms = now_ms - self._looked_ms
        if passed_ms < BETWEEN_MIN_MS:
            return self._rates
        counts = {str(each["identity"]): _count_of(each) for each in links}
        before = self._counts if passed_ms <= BETWEEN_MAX_MS else {}
        self._rates = {
            identity: 1000 * ((count - before[identity]) % WRAP) / passed_ms
            for identity, count in counts.items()
            if identity in before
        }
        self._counts, self._looked_ms = counts, now_ms
        return self._rates


def _count_of(link: Mapping[str, object]) -> int:
    count = link["delivery_count"]
    assert isinstance(count, int)
    return count
