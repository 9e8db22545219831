"""The resource that an operator means, by the prefixes that the broker understands."""

from __future__ import annotations

import pytest

from broker.management.asked_resource import asked_resource
from broker.routing.addresses.prefixes import Prefixes
from broker.security.resources import ResourceError

SPELLINGS = [
    pytest.param("queue:queue://a", ("queue://",), "queue:a", id="a prefix that is understood"),
    pytest.param("queue:queue://a", (), "queue:queue://a", id="a prefix that is none"),
    pytest.param("queue:/queue/durable/a", (), "queue:a", id="a class"),
    pytest.param("queue:$management", (), "management:*", id="the node of management"),
]


@pytest.mark.parametrize(("text", "understood", "expected"), SPELLINGS)
def test_spellings(text: str, understood: tuple[str, ...], expected: str) -> None:
    assert asked_resource(text, "view", Prefixes(understood)).text() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("queue:topic://a", "is a topic", id="another kind"),
        pytest.param("orders", "is no resource: write KIND:NAME", id="no kind"),
        pytest.param("subscription:c", "is written subscription:CLIENT/NAME", id="no name"),
    ],
)
def test_no_resource(text: str, expected: str) -> None:
    with pytest.raises(ResourceError, match=expected):
        asked_resource(text, "view", Prefixes())
