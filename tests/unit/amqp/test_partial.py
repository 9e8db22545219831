"""A delivery of which not all frames have arrived."""

import time

import pytest

from broker.amqp.body import ENOUGH
from broker.amqp.events import Intake
from broker.amqp.partial import Partial


class Taken(Intake):
    """An intake that records the sizes and the bytes of what it takes."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.data = bytearray()

    def take(self, data: bytes, at: int, end: int) -> None:
        self.sizes.append(int(end - at))
        self.data += data[at:end]

    def complete(self, delivery_id: int, *, settled: bool, txn_id: bytes | None) -> None: ...

    def abandon(self) -> None: ...


def test_frames_are_counted_and_one_settled_frame_settles_all() -> None:
    partial = Partial(7, settles_second=False, resumed=False)
    partial.count(10, settled=False)
    partial.count(5, settled=True)
    partial.count(0, settled=False)
    assert (partial.delivery_id, partial.size, partial.transfers) == (7, 15, 3)
    assert partial.settled


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        pytest.param([ENOUGH], [ENOUGH], id="just enough"),
        pytest.param([ENOUGH - 1, 2, 3, 4], [ENOUGH + 1, 3, 4], id="enough in two pieces"),
        pytest.param([ENOUGH + 9, 0, 1], [ENOUGH + 9, 0, 1], id="more than enough in one"),
    ],
)
def test_the_first_part_that_is_streamed_suffices_to_find_the_body(
    sizes: list[int], taken: list[int]
) -> None:
    partial, intake = Partial(7, settles_second=False, resumed=False), Taken()
    for number, size in enumerate(sizes):
        partial.pieces.append(bytes([number]) * size)
        partial.held += size
    whole = b"".join(partial.pieces)
    partial.stream_to(intake)
    assert intake.sizes == taken
    assert intake.data == whole
    assert (partial.intake, partial.held, partial.pieces) == (intake, 0, [])


@pytest.mark.attack("C7")
def test_a_delivery_of_tiny_pieces_is_streamed_in_linear_time() -> None:
    """262,000 frames of one byte, then a large one: eleven seconds, if each piece moved all."""
    partial, intake = Partial(7, settles_second=False, resumed=False), Taken()
    partial.pieces.extend(b"x" for _ in range(60_000))
    partial.pieces.append(bytes(ENOUGH))
    partial.pieces.extend(b"y" for _ in range(60_000))
    began_s = time.process_time()
    partial.stream_to(intake)
    assert time.process_time() - began_s < 1
    assert len(intake.data) == 120_000 + ENOUGH
