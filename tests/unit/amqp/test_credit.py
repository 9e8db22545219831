"""Link credit: what a flow leaves to a sender, also if the delivery-count wraps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp import credit, serial
from broker.amqp.errors import INVALID_FIELD, LinkFault

COUNTS = st.integers(0, 2**32 - 1) | st.integers(2**32 - 300, 2**32 - 1)
FEW = st.integers(0, 600)
CREDITS = st.integers(0, 2**32 - 1) | FEW


@pytest.mark.parametrize(
    ("seen", "link_credit", "delivery_count", "expected"),
    [
        pytest.param(0, 10, 0, 10, id="nothing was sent yet"),
        pytest.param(7, 10, 7, 10, id="everything sent has come"),
        pytest.param(5, 10, 7, 8, id="two are under way"),
        pytest.param(0, 10, 10, 0, id="all of it is under way"),
        pytest.param(0, 1, 3, 0, id="more is under way than is granted now"),
        pytest.param(7, 0, 7, 0, id="the credit is taken back"),
        pytest.param(-1, 10, 3, 7, id="the receiver has not seen our attach, and counts from 0"),
        pytest.param(2**32 - 2, 10, 1, 7, id="under way across the wrap"),
        pytest.param(0, 2**32 - 1, 1, 2**32 - 2, id="as much credit as can be"),
        pytest.param(0, 2**32 - 1, 2**32 - 1, 0, id="as much as can be, drained before"),
        pytest.param(7, 2**31, 2**31 + 7, 0, id="half of that, drained before"),
    ],
)
def test_credit_that_is_left(
    seen: int, link_credit: int, delivery_count: int, expected: int
) -> None:
    assert (
        credit.left(
            peer_delivery_count=seen, link_credit=link_credit, delivery_count=delivery_count
        )
        == expected
    )


@pytest.mark.parametrize(
    ("seen", "delivery_count"),
    [
        pytest.param(1, 0, id="one that was not sent"),
        pytest.param(0, 2**32 - 1, id="one that was not sent, across the wrap"),
        pytest.param(2**31, 0, id="half the ring away, either way"),
    ],
)
def test_a_receiver_cannot_have_seen(seen: int, delivery_count: int) -> None:
    with pytest.raises(LinkFault) as caught:
        credit.left(peer_delivery_count=seen, link_credit=9, delivery_count=delivery_count)
    assert caught.value.condition == INVALID_FIELD


@given(seen=COUNTS, link_credit=CREDITS, under_way=FEW)
def test_a_sender_never_passes_what_the_receiver_granted(
    seen: int, link_credit: int, under_way: int
) -> None:
    """The limit is delivery-count(rcv) + link-credit(rcv), for all values of the counts (2.6.7)."""
    left = credit.left(
        peer_delivery_count=seen,
        link_credit=link_credit,
        delivery_count=serial.add(seen, under_way),
    )
    assert left >= 0
    assert under_way + left == max(link_credit, under_way)


@given(count=COUNTS, granted=FEW, sent=FEW)
def test_a_drain_ends_where_the_credit_would_have(count: int, granted: int, sent: int) -> None:
    """A drain leaves the delivery-count at the granted limit, however many messages came first."""
    delivery_count = serial.add(count, min(sent, granted))
    left = credit.left(
        peer_delivery_count=count, link_credit=granted, delivery_count=delivery_count
    )
    drained = credit.drained(delivery_count, left)
    assert drained == (count + granted) % 2**32
    assert credit.left(peer_delivery_count=count, link_credit=granted, delivery_count=drained) == 0
