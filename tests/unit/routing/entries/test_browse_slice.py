"""The messages that belong to a part of a queue."""

import pytest

from broker.routing.entries.browse_slice import BrowseSlice
from broker.routing.entries.entry import QueueEntry
from tests.support.routing import Routing, new_message

pytestmark = pytest.mark.requirement("PIP-18")

CASES = [
    pytest.param(BrowseSlice(), 7, 1000, True, id="everything"),
    pytest.param(BrowseSlice(index=1, slices=3), 7, 1000, True, id="its place"),
    pytest.param(BrowseSlice(index=0, slices=3), 7, 1000, False, id="another's place"),
    pytest.param(BrowseSlice(arrived_until_ms=1000), 7, 1000, True, id="just in time"),
    pytest.param(BrowseSlice(arrived_until_ms=999), 7, 1000, False, id="too late"),
    pytest.param(BrowseSlice(arrived_until_ms=999), 7, 0, True, id="nobody knows when"),
    pytest.param(
        BrowseSlice(index=1, slices=3, arrived_until_ms=999), 7, 1000, False, id="both count"
    ),
]


@pytest.mark.parametrize(("part", "position", "arrived_ms", "expected"), CASES)
def test_a_message_is_of_a_part(
    part: BrowseSlice, position: int, arrived_ms: int, expected: bool
) -> None:
    entry = QueueEntry(Routing().queue(), new_message(arrived_ms=arrived_ms), position)
    assert part.has(entry) is expected
