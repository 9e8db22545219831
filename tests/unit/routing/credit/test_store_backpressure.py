"""Stores that count as behind, and the producers that wait for them."""

import pytest

from broker.routing.credit.store_backpressure import UNWRITTEN_MAX, StoreBackpressure
from tests.support.parties import RecordingProducer

SHARES = {
    # name: bytes that are not yet written, whether the store is behind
    "nothing is to be written": (0, False),
    "as much as may be": (UNWRITTEN_MAX, False),
    "more than that": (UNWRITTEN_MAX + 1, True),
}


@pytest.mark.parametrize(("unwritten", "behind"), SHARES.values(), ids=SHARES.keys())
def test_the_store_is_behind_by_what_is_not_written(unwritten: int, behind: bool) -> None:
    store_backpressure = StoreBackpressure()
    store_backpressure.look(unwritten)
    assert store_backpressure.is_behind is behind


def test_who_waits_goes_on_once_when_the_store_has_caught_up() -> None:
    store_backpressure = StoreBackpressure()
    store_backpressure.look(UNWRITTEN_MAX + 1)
    staying, leaving = RecordingProducer(), RecordingProducer()
    store_backpressure.waiting.wait(staying)
    store_backpressure.waiting.wait(leaving)
    store_backpressure.waiting.leave(leaving)
    store_backpressure.look(UNWRITTEN_MAX + 1)
    assert (staying.resumed, leaving.resumed) == (0, 0)
    store_backpressure.look(0)
    store_backpressure.look(0)
    assert (staying.resumed, leaving.resumed) == (1, 0)
