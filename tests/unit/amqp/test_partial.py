"""A delivery of which not all frames have arrived."""

from broker.amqp.partial import Partial


def test_frames_are_counted_and_one_settled_frame_settles_all() -> None:
    partial = Partial(7, settles_second=False, resumed=False)
    partial.count(10, settled=False)
    partial.count(5, settled=True)
    partial.count(0, settled=False)
    assert (partial.delivery_id, partial.size, partial.transfers) == (7, 15, 3)
    assert partial.settled
