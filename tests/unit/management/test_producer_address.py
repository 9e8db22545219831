"""The address of a request that asks about a producer: its kind is that of an attach."""

from __future__ import annotations

import pytest

from broker.management.producer_address import producer_address
from broker.management.request import Refused, Request
from tests.support.broker import Broker

pytestmark = pytest.mark.requirement("OPS-21")


def asked(**arguments: object) -> Request:
    return Request(operation="EXPLAIN", type="credit", arguments=arguments)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        pytest.param({"address": "new"}, "queue", id="an address that is not there"),
        pytest.param({"address": "news"}, "topic", id="the node that is there"),
        pytest.param({"address": "new", "kind": "topic"}, "topic", id="the capability"),
    ],
)
def test_the_kind_of_node(arguments: dict[str, object], kind: str) -> None:
    broker = Broker()
    broker.session().attach_receiver("news", kind="topic")
    found = producer_address(broker.router, asked(**arguments))
    assert (found.text, found.kind) == (arguments["address"], kind)


def test_another_word_for_the_kind_is_refused() -> None:
    with pytest.raises(Refused, match="kind must be one of queue, topic"):
        producer_address(Broker().router, asked(address="q", kind="river"))
