"""Limits that are computed; the others are hit where they are enforced."""

import pytest

from broker.amqp.limits import TRANSFERS_PER_DELIVERY_MIN, Limits


@pytest.mark.parametrize(
    ("max_message_size", "transfers"),
    [
        pytest.param(1000, TRANSFERS_PER_DELIVERY_MIN, id="small messages get the least number"),
        pytest.param(256 * 1024, 1024, id="the border"),
        pytest.param(128 * 1024 * 1024, 512 * 1024, id="one for 256 bytes of the largest message"),
    ],
)
def test_how_many_frames_a_delivery_may_take(max_message_size: int, transfers: int) -> None:
    assert Limits(max_message_size=max_message_size).transfers_per_delivery() == transfers


def test_the_defaults_are_those_of_the_configuration() -> None:
    limits = Limits()
    assert limits.max_frame_size == 1024 * 1024
    assert limits.channel_max == 1023
    assert limits.handle_max == 4095
    assert limits.incoming_window == 2048
