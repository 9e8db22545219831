"""Link credit (core 2.6.7): a sender's credit after a flow of its receiver, and after a drain."""

from mypy_extensions import i64

from broker.amqp import serial
from broker.amqp.errors import INVALID_FIELD, LinkFault


def left(*, peer_delivery_count: i64, link_credit: i64, delivery_count: i64) -> i64:
    """Return the credit of a sender at `delivery_count`, after a flow of its receiver.

    Counts are serial numbers: `peer_delivery_count` may lag behind by the deliveries that
    are in transit. Absent (-1) means that the receiver has not seen the broker's
    attach; it then counts from the broker's initial 0. Raise LinkFault if it is ahead. After a
    drain of 2^31 or more it seems to be, until the receiver knows: not if it grants as much again.
    """
    seen = i64(0) if peer_delivery_count < 0 else peer_delivery_count
    under_way = (delivery_count - seen) & serial.MASK
    if under_way >= serial.HALF and under_way > link_credit:
        raise LinkFault(INVALID_FIELD, f"delivery-count {seen} is ahead of {delivery_count}")
    return max(i64(0), link_credit - under_way)


def drained(delivery_count: i64, credit: i64) -> i64:
    """Return the delivery-count of a sender that gives up its credit (2.6.7, drain)."""
    return serial.add(delivery_count, credit)
