"""Parts of a queue's backlog: by place, so that several readers share it, and by arrival time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

if TYPE_CHECKING:
    from broker.routing.entries.entry import QueueEntry

WHENEVER: Final[i64] = 0
"""No limit on the time of arrival."""


@final
class BrowseSlice:
    """Messages whose place modulo `slices` is `index` and that arrived by `arrived_until_ms`.

    Places are counted within a priority. The number that an operator sees has the priority as its
    last digit, which would leave some slices empty.
    """

    def __init__(
        self, *, index: i64 = 0, slices: i64 = 1, arrived_until_ms: i64 = WHENEVER
    ) -> None:
        self.index: Final[i64] = index
        self.slices: Final[i64] = slices
        self.arrived_until_ms: Final[i64] = arrived_until_ms

    def has(self, entry: QueueEntry) -> bool:
        """Return whether `entry` belongs to this part."""
        if self.slices > 1 and entry.position % self.slices != self.index:
            return False
        until = self.arrived_until_ms
        return until == WHENEVER or entry.message.arrived_ms <= until
