"""Headers that a producer sets, and the rules of WD10 6.1 on ttl."""

from __future__ import annotations

from typing import Final

import pytest

from broker.amqp.types import UInt
from broker.jms import NON_PERSISTENT, Destination, JmsMessage, TextBody, decode, encode, stamp
from broker.jms.sending import header_ttl
from tests.support.jms import VALUE, encoded, header_of

UINT_MAX: Final = 2**32 - 1
NOT_SET: Final = -1


@pytest.mark.requirement("MAP-08")
@pytest.mark.parametrize(
    ("amqp_ttl", "time_to_live", "ttl"),
    [
        pytest.param(None, 0, NOT_SET, id="no time to live: omitted"),
        pytest.param(None, 1, 1, id="the time to live"),
        pytest.param(None, UINT_MAX, UINT_MAX, id="the largest"),
        pytest.param(None, UINT_MAX + 1, NOT_SET, id="more than fits: omitted, not shortened"),
        pytest.param(5, 0, 5, id="JMS_AMQP_TTL without a time to live"),
        pytest.param(5, 7, 5, id="JMS_AMQP_TTL before the time to live"),
        pytest.param(5, UINT_MAX + 1, 5, id="JMS_AMQP_TTL before one that does not fit"),
        pytest.param(UINT_MAX, 7, UINT_MAX, id="the largest JMS_AMQP_TTL"),
        pytest.param(0, 7, NOT_SET, id="JMS_AMQP_TTL of zero: omitted"),
    ],
)
def test_the_ttl_of_the_header(amqp_ttl: int | None, time_to_live: int, ttl: int) -> None:
    assert header_ttl(amqp_ttl, time_to_live) == ttl


@pytest.mark.requirement("MAP-04", "MAP-08")
def test_a_producer_sets_its_headers() -> None:
    message = JmsMessage(TextBody("text"))
    message.delivery_mode = NON_PERSISTENT
    message.priority = 7
    message.time_to_live = 60
    destination = Destination("a")
    stamp(message, now_ms=1000, message_id="ID:1", destination=destination, delivery_delay=100)
    assert message.message_id == "ID:1"
    assert message.timestamp == 1000
    assert message.destination == Destination("a")
    assert message.delivery_mode == NON_PERSISTENT
    assert message.priority == 7
    assert message.expiration == 1060
    assert message.delivery_time == 1100
    assert message.time_to_live == 60


@pytest.mark.requirement("MAP-04")
def test_what_was_set_before_does_not_count() -> None:
    message = JmsMessage(TextBody("text"))
    message.message_id = "ID:0"
    message.expiration = message.delivery_time = 5
    stamp(message, now_ms=1000, message_id=None, destination=Destination("a"))
    assert not message.message_id
    assert (message.expiration, message.delivery_time) == (0, 1000)


@pytest.mark.requirement("MAP-04", "MAP-05", "MAP-06")
@pytest.mark.parametrize(
    "header",
    [
        pytest.param({"first-acquirer": True}, id="a first delivery"),
        pytest.param({"delivery-count": UInt(2)}, id="a third delivery"),
        pytest.param({"first-acquirer": True, "delivery-count": UInt(1)}, id="both marks"),
    ],
)
def test_a_received_message_that_is_sent_anew_was_never_delivered(
    header: dict[str, object],
) -> None:
    message = decode(encoded((VALUE, "text"), header=header), now_ms=1000)
    stamp(message, now_ms=2000, message_id="ID:2", destination=Destination("b"))
    assert (message.delivery_count, message.redelivered, message.first_acquirer) == (
        1,
        False,
        False,
    )
    assert header_of(encode(message)) == {}
