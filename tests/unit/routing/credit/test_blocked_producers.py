"""Producers that wait for the same condition."""

from broker.routing.credit.blocked_producers import BlockedProducers
from tests.support.parties import RecordingProducer


class Insistent(RecordingProducer):
    """A producer that waits again as soon as it is resumed."""

    def __init__(self, waiting: BlockedProducers) -> None:
        super().__init__()
        self._waiting = waiting

    def resume(self) -> None:
        super().resume()
        self._waiting.wait(self)


def test_everybody_goes_on_once() -> None:
    waiting, producers = BlockedProducers(), [RecordingProducer(), RecordingProducer()]
    for producer in (*producers, *producers):
        waiting.wait(producer)
    waiting.resume()
    waiting.resume()
    assert [producer.resumed for producer in producers] == [1, 1]
    assert not waiting.any()


def test_who_has_left_is_not_resumed() -> None:
    waiting, stays, leaves = BlockedProducers(), RecordingProducer(), RecordingProducer()
    waiting.wait(leaves)
    waiting.wait(stays)
    waiting.leave(leaves)
    waiting.leave(leaves)
    waiting.resume()
    assert (stays.resumed, leaves.resumed) == (1, 0)


def test_who_waits_again_at_once_waits_for_the_next_time() -> None:
    waiting = BlockedProducers()
    insistent = Insistent(waiting)
    waiting.wait(insistent)
    waiting.resume()
    assert insistent.resumed == 1
    assert waiting.any()
