"""Deliveries with a tag of their own, which outlive their link: the sizes of their frames."""

from __future__ import annotations

import pytest

from broker.amqp.delivery import Delivery
from broker.amqp.limits import FRAME_SIZE_MIN
from tests.support.engine import Engine
from tests.support.frames import attach_receiver, flow
from tests.unit.amqp.test_outgoing_link import LAST, joined, transfers


@pytest.mark.parametrize("size", [415, 416, 417, 3000])
def test_no_frame_with_a_tag_of_its_own_is_larger_than_the_peer_takes(size: int) -> None:
    """Handle, delivery-id and message-format take as many bytes as they can."""
    engine = Engine(max_frame_size=FRAME_SIZE_MIN)
    credit = flow(handle=256, credit=9, delivery_count=0)
    outbox = engine.attach_receiver(attach_receiver(handle=256), credit)
    outbox.link.session.next_delivery_id = LAST
    delivery = Delivery()
    delivery.sent_to = outbox
    outbox.link.send_tagged(delivery, bytes(size), tag=bytes(8), message_format=LAST)
    frames = engine.frames()
    assert all(each.size <= FRAME_SIZE_MIN for each in frames)
    pieces = transfers([each.body for each in frames])
    assert (joined(pieces), pieces[0].tag) == (bytes(size), bytes(8))
