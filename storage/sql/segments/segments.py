"""Segments that a batch makes, changes and removes. Those that were used last are remembered.

Messages that consumers settle were loaded, or written, not long ago: so a commit seldom has to
read the segments of removed messages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final, final

from mypy_extensions import i64

from storage.batch import Batch
from storage.sql.segments.packing import segments_of
from storage.sql.segments.ranges import Range, ascending, index_of
from storage.sql.segments.segment import Segment
from storage.sql.yielding import YIELD_EVERY, yield_interpreter

REMEMBERED_MAX: Final = 1024
"""Maximum segments remembered: 5 MiB if they are full, 20 MiB if all messages are copies."""

SPARSE_AT_ONCE: Final = 4
"""Maximum sparse segments that one commit rebuilds: 256 KiB at most are read for each."""

PATIENCE: Final[i64] = 1000
"""Commits for which a segment is left as it is after most of its messages are gone: the others may
be removed soon."""

SegmentRow = tuple[int, int, bytes]
"""number, size, facts"""

BodyRow = tuple[int, bytes, bytes | None]
"""number, encoded, labels"""


@final
class SegmentChanges:
    """Rows to write for segments. No segment is in two of `segments`, `changed`, `removed`."""

    def __init__(self) -> None:
        self.segments: Final[list[SegmentRow]] = []
        self.bodies: Final[list[BodyRow]] = []
        self.changed: Final[list[tuple[int, bytes, int]]] = []
        """size, facts, number"""
        self.rebuilt: Final[list[tuple[bytes, int]]] = []
        """encoded, number"""
        self.removed: Final[list[Range]] = []
        """number of the segment, and the last number in it"""


@final
class Wanted:
    """Messages whose segments must be learned before a batch can be written, by their numbers.

    The segments of those in `with_bytes` must be learned with their bytes.
    """

    def __init__(self) -> None:
        self.numbers: Final[list[int]] = []
        self.with_bytes: Final[list[int]] = []

    def any(self) -> bool:
        """Return whether any segment has to be read."""
        return bool(self.numbers or self.with_bytes)


@final
class Segments:
    """The segments that are remembered, by their numbers."""

    def __init__(self) -> None:
        self._known: Final[dict[int, Segment]] = {}
        self._numbers: Final[list[int]] = []
        # sparse segments, and the number of the commit since which each has been sparse
        self._sparse: Final[dict[int, int]] = {}
        self._due: Final[list[int]] = []
        self._commits: i64 = 0

    def find(self, number: i64) -> Segment | None:
        """Return the segment that may have a message; None if it is not remembered."""
        index = bisect_right(self._numbers, int(number)) - 1
        if index < 0:
            return None
        segment = self._known[self._numbers[index]]
        return segment if number <= segment.last else None

    def learn(self, segment: Segment) -> None:
        """Remember a segment as it is in the store."""
        number = int(segment.number)
        if number not in self._known:
            index = bisect_left(self._numbers, number)
            self._numbers.insert(index, number)
        else:
            del self._known[number]  # added again below, it is the last to be forgotten
        self._known[number] = segment

    def _forget(self, number: int) -> None:
        del self._known[number]
        del self._numbers[bisect_left(self._numbers, number)]

    def notice(self, segment: Segment) -> None:
        """Have a segment that was read or changed rebuilt later if it is sparse."""
        if segment.is_sparse():
            self._sparse.setdefault(int(segment.number), int(self._commits))

    def wanted(self, batch: Batch) -> Wanted:
        """Return which segments `apply` needs for `batch` that are not remembered."""
        wanted = Wanted()
        if batch.removed or batch.fallen_due or batch.counted:
            self._want_segments(batch, wanted.numbers)
        self._due.clear()
        for number, since in self._sparse.items():
            if len(self._due) == SPARSE_AT_ONCE or self._commits - since < PATIENCE:
                break
            self._due.append(number)
        if self._due or batch.rewritten:
            coming = _first_of(batch)
            rewritten = [number for number, _ in batch.rewritten if number < coming]
            wanted.with_bytes.extend(sorted({*self._due, *rewritten}))
        return wanted

    def _want_segments(self, batch: Batch, wanted: list[int]) -> None:
        coming = _first_of(batch)
        numbers = ascending(batch.removed) + [number for number, _ in batch.fallen_due]
        numbers += [number for number, _ in batch.counted]
        segment: Segment | None = None
        left: i64 = YIELD_EVERY
        for number in numbers:
            left -= 1
            if left == 0:
                left = YIELD_EVERY
                yield_interpreter()
            if segment is None or not segment.number <= number <= segment.last:
                segment = self.find(number)
                if segment is None and number < coming:
                    wanted.append(number)

    def apply(self, batch: Batch, queue_ids: dict[str, int]) -> SegmentChanges:
        """Apply `batch` to the segments and return the changes to write. Call once per batch."""
        added = segments_of(batch.appended, queue_ids)
        for segment in added:
            self.learn(segment)
        touched: dict[int, Segment] = {}
        for number, position in batch.fallen_due:
            at = self._touch(number, touched)
            if at >= 0:
                self._at(number).move(at, position)
        for number, delivery_count in batch.counted:
            at = self._touch(number, touched)
            if at >= 0:
                self._at(number).count(at, delivery_count)
        rebuilt: dict[int, Segment] = {}
        if self._due or batch.rewritten:
            self._rebuild(dict(batch.rewritten), rebuilt)
            touched.update(rebuilt)
        if batch.removed:
            self._remove(batch.removed, touched)
        return self._written(added, touched, rebuilt)

    def _touch(self, number: i64, touched: dict[int, Segment]) -> i64:
        """Return where a message's record is in its segment, which is added to `touched`; or -1."""
        segment = self.find(number)
        at: i64 = -1 if segment is None else segment.find(number)
        if segment is not None and at >= 0:
            touched[int(segment.number)] = segment
        return at

    def _at(self, number: i64) -> Segment:
        segment = self.find(number)
        assert segment is not None
        return segment

    def _rebuild(self, rewritten: dict[int, bytes], rebuilt: dict[int, Segment]) -> None:
        """Rebuild segments with rewritten messages, and the sparse ones that are due."""
        for number in rewritten:
            segment = self.find(number)
            if segment is not None and segment.body is not None:
                rebuilt[int(segment.number)] = segment
        for number in self._due:
            known = self._known.get(number)
            if known is not None and known.body is not None:
                rebuilt[number] = known
            self._sparse.pop(number, None)
        for segment in rebuilt.values():
            segment.rebuild(rewritten)

    def _remove(self, removed: list[int], touched: dict[int, Segment]) -> None:
        numbers = ascending(removed)
        index: i64 = 0
        while index < i64(len(numbers)):
            segment = self.find(numbers[index])
            if segment is None:
                index += 1
                continue
            before = segment.facts
            segment.remove(numbers)
            if segment.facts is not before:
                touched[int(segment.number)] = segment
                self.notice(segment)
            yield_interpreter()
            index = index_of(numbers, segment.last + 1, index)

    def _written(
        self, added: list[Segment], touched: dict[int, Segment], rebuilt: dict[int, Segment]
    ) -> SegmentChanges:
        changes = SegmentChanges()
        for segment in added:
            number = int(segment.number)
            touched.pop(number, None)
            assert segment.body is not None
            changes.segments.append((number, int(segment.size), segment.facts))
            changes.bodies.append((number, segment.body, segment.labels or None))
            segment.body = None
            segment.labels = b""
        for number, segment in touched.items():
            if segment.facts:
                changes.changed.append((int(segment.size), segment.facts, number))
                if number in rebuilt and segment.body is not None:
                    changes.rebuilt.append((segment.body, number))
            else:
                changes.removed.append((number, int(segment.last)))
                self._sparse.pop(number, None)
                self._forget(number)
            segment.body = None
            segment.labels = b""
        self._commits += 1
        self._forget_oldest()
        return changes

    def _forget_oldest(self) -> None:
        while len(self._known) > REMEMBERED_MAX:
            self._forget(next(iter(self._known)))


def _first_of(batch: Batch) -> i64:
    """Return the lowest number of a message added in `batch`; more than any if there is none."""
    if not batch.appended:
        return 2**62
    return batch.last_number() - i64(len(batch.appended)) + 1
