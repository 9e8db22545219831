"""A consumer's priority and exclusive use, as requested in its attach."""

import pytest

from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.amqp.types import Int, UByte
from broker.links.precedence import precedence_of
from tests.support.broker import Broker
from tests.support.frames import attach_receiver

READ = {
    # name: properties, priority, exclusive
    "nothing": ({}, 0, False),
    "an int": ({"priority": Int(7)}, 7, False),
    "a ubyte": ({"priority": UByte(255)}, 255, False),
    "a negative long": ({"priority": -1}, -1, False),
    "the highest": ({"priority": 2**31 - 1}, 2**31 - 1, False),
    "nulls": ({"priority": None, "exclusive": None}, 0, False),
    "both": ({"priority": Int(1), "exclusive": True}, 1, True),
    "something else": ({"color": "blue"}, 0, False),
}


@pytest.mark.parametrize(("properties", "priority", "exclusive"), READ.values(), ids=READ.keys())
def test_a_consumer_asks_for(properties: dict[str, object], priority: int, exclusive: bool) -> None:
    asked = precedence_of(properties)
    assert (asked.priority, asked.exclusive) == (priority, exclusive)


REFUSED = {
    "a text for a priority": {"priority": "high"},
    "a fraction": {"priority": 1.5},
    "a flag for a priority": {"priority": True},
    "more than 32 bits": {"priority": 2**31},
    "less than 32 bits": {"priority": -(2**31) - 1},
    "a text for exclusive": {"exclusive": "true"},
    "a number for exclusive": {"exclusive": Int(1)},
}


@pytest.mark.parametrize("properties", REFUSED.values(), ids=REFUSED.keys())
def test_what_makes_no_sense_is_refused(properties: dict[str, object]) -> None:
    with pytest.raises(LinkFault) as caught:
        precedence_of(properties)
    assert caught.value.condition == INVALID_FIELD


def test_a_link_of_higher_priority_is_served_first() -> None:
    broker = Broker()
    low, high = broker.session("low"), broker.session("high")
    low.attach(attach_receiver())
    low.flow(handle=0, credit=9)
    high.attach(attach_receiver(properties={"priority": Int(1)}))
    high.flow(handle=0, credit=2)
    broker.fill(count=3)
    high.expect_deliveries(b"0", b"1")
    low.expect_deliveries(b"2")


def test_a_link_with_a_priority_that_makes_no_sense_is_refused() -> None:
    client = Broker().session()
    client.send(attach_receiver(properties={"priority": "high"}))
    client.expect_refusal(INVALID_FIELD)
