"""The messages that a receiver's filter accepts, and the equality of filters."""

import pytest

from broker.message import NEVER, Message, Origin
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.selector import Facts, parse_selector
from tests.support.selected import selectable

pytestmark = pytest.mark.requirement("RCV-05")


def sent_by(publisher: str, priority: int = 4) -> Message:
    return Message(
        encoded=selectable().encoded,
        durable=False,
        priority=priority,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=NEVER,
        origin=Origin(publisher),
    )


URGENT = parse_selector("JMSPriority > 4")

CASES = [
    pytest.param(ConsumerFilter(URGENT), sent_by("me", 5), True, id="a selector that takes it"),
    pytest.param(ConsumerFilter(URGENT), sent_by("me"), False, id="a selector that does not"),
    pytest.param(ConsumerFilter(None, "me"), sent_by("you"), True, id="somebody else's"),
    pytest.param(ConsumerFilter(None, "me"), sent_by("me"), False, id="one's own"),
    pytest.param(ConsumerFilter(None, "me"), sent_by(""), True, id="nobody's"),
    pytest.param(
        ConsumerFilter(None, "me"), sent_by("ME"), True, id="another spelling of the name"
    ),
    pytest.param(ConsumerFilter(URGENT, "me"), sent_by("you", 5), True, id="both let it pass"),
    pytest.param(
        ConsumerFilter(URGENT, "me"), sent_by("me", 5), False, id="one's own, though selected"
    ),
    pytest.param(
        ConsumerFilter(URGENT, "me"), sent_by("you"), False, id="somebody else's, not selected"
    ),
]


@pytest.mark.parametrize(("filter", "message", "passes"), CASES)
def test_a_filter_lets_pass(filter: ConsumerFilter, message: Message, passes: bool) -> None:  # noqa: A002
    assert filter.passes(message) is passes
    assert filter.admits(Facts(message)) is passes


def test_filters_that_say_the_same_are_equal() -> None:
    again = ConsumerFilter(parse_selector("JMSPriority > 4"), "me")
    assert ConsumerFilter(URGENT, "me") == again
    assert hash(ConsumerFilter(URGENT, "me")) == hash(again)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(ConsumerFilter(URGENT), id="without the publisher"),
        pytest.param(ConsumerFilter(None, "me"), id="without the selector"),
        pytest.param(ConsumerFilter(URGENT, "you"), id="another publisher"),
        pytest.param(ConsumerFilter(parse_selector("JMSPriority>4"), "me"), id="another text"),
        pytest.param("JMSPriority > 4", id="something else"),
    ],
)
def test_others_are_not(other: object) -> None:
    assert ConsumerFilter(URGENT, "me") != other
