"""Transfers without a message, which end deliveries of an earlier link (core 2.6.13, 2.7.5)."""

from __future__ import annotations

from mypy_extensions import i64

from broker.amqp.encode import BytesWriter
from broker.amqp.frames import AMQP_FRAME, begin_frame, end_frame
from broker.amqp.outcomes import Outcome
from broker.amqp.outgoing_link import OutgoingLink
from broker.amqp.transfer import put_aborted, put_transfer


def settle_resumed(link: OutgoingLink, tag: bytes, outcome: Outcome) -> None:
    """Settle the delivery of that tag with its outcome; `link.has_room` must be true."""
    session = link.session
    delivery_id = link.begin_delivery(None)
    out = link.output.writer()
    start = _put_settled(out, link, delivery_id, tag=tag, outcome=outcome)
    if i64(len(out)) - start > link.output.frame_size_max:
        # the peer's own outcome does not fit its frame size: leave it out, the peer knows it
        out.truncate(int(start))
        start = _put_settled(out, link, delivery_id, tag=tag, outcome=None)
    end_frame(out, start)
    session.outgoing_window.send()


def _put_settled(
    out: BytesWriter, link: OutgoingLink, delivery_id: i64, *, tag: bytes, outcome: Outcome | None
) -> i64:
    """Write a transfer that settles, and return where its frame starts."""
    start = begin_frame(out, AMQP_FRAME, link.session.our_channel)
    put_transfer(
        out,
        handle=link.our_handle,
        delivery_id=delivery_id,
        settled=True,
        message_format=0,
        more=False,
        state=outcome,
        tag=tag,
        resume=True,
    )
    return start


def abort_resumed(link: OutgoingLink, tag: bytes) -> None:
    """Give the delivery of that tag up, of which a part has arrived; `has_room` must be true."""
    session = link.session
    delivery_id = link.begin_delivery(None)
    out = link.output.writer()
    start = begin_frame(out, AMQP_FRAME, session.our_channel)
    put_aborted(
        out,
        handle=link.our_handle,
        delivery_id=delivery_id,
        settled=True,
        message_format=0,
        tag=tag,
        resume=True,
    )
    end_frame(out, start)
    session.outgoing_window.send()
