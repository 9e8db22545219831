"""What a receiver's filter lets pass, and which filters are the same."""

import pytest

from broker.message import NEVER, Message, Origin
from broker.routing.entries.filter import Filter
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
    pytest.param(Filter(URGENT), sent_by("me", 5), True, id="a selector that takes it"),
    pytest.param(Filter(URGENT), sent_by("me"), False, id="a selector that does not"),
    pytest.param(Filter(None, "me"), sent_by("you"), True, id="somebody else's"),
    pytest.param(Filter(None, "me"), sent_by("me"), False, id="one's own"),
    pytest.param(Filter(None, "me"), sent_by(""), True, id="nobody's"),
    pytest.param(Filter(None, "me"), sent_by("ME"), True, id="another spelling of the name"),
    pytest.param(Filter(URGENT, "me"), sent_by("you", 5), True, id="both let it pass"),
    pytest.param(Filter(URGENT, "me"), sent_by("me", 5), False, id="one's own, though selected"),
    pytest.param(Filter(URGENT, "me"), sent_by("you"), False, id="somebody else's, not selected"),
]


@pytest.mark.parametrize(("filter", "message", "passes"), CASES)
def test_a_filter_lets_pass(filter: Filter, message: Message, passes: bool) -> None:  # noqa: A002
    assert filter.passes(message) is passes
    assert filter.admits(Facts(message)) is passes


def test_filters_that_say_the_same_are_equal() -> None:
    again = Filter(parse_selector("JMSPriority > 4"), "me")
    assert Filter(URGENT, "me") == again
    assert hash(Filter(URGENT, "me")) == hash(again)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Filter(URGENT), id="without the publisher"),
        pytest.param(Filter(None, "me"), id="without the selector"),
        pytest.param(Filter(URGENT, "you"), id="another publisher"),
        pytest.param(Filter(parse_selector("JMSPriority>4"), "me"), id="another text"),
        pytest.param("JMSPriority > 4", id="something else"),
    ],
)
def test_others_are_not(other: object) -> None:
    assert Filter(URGENT, "me") != other
