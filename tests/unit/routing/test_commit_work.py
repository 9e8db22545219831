"""The work of one commit is limited: copies for subscriptions, and selectors."""

from __future__ import annotations

from typing import Final

import pytest

from broker.message import Message
from broker.routing.commit_work import COPIES_MAX, EVALUATIONS_MAX, check_work
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.errors import LimitReached
from broker.routing.queues.node import Node
from broker.routing.selector import parse_selector
from broker.routing.topics.binding import Binding
from broker.routing.topics.topic import Topic
from broker.routing.transaction import Transaction
from tests.support.routing import Routing, new_message

pytestmark = pytest.mark.requirement("RCV-06")

SUBSCRIPTIONS: Final = 500


def sent(node: Node, *, messages: int, key: str = "") -> list[tuple[Node, Message]]:
    """Return what a transaction has posted: one message, again and again."""
    return [(node, new_message(key=key))] * messages


def topic_of(routing: Routing, *, key: str = "", selector: str = "") -> Topic:
    """Return a topic with SUBSCRIPTIONS; `{}` in `key` and `selector` is the number of each."""
    topic = routing.topic()
    for number in range(SUBSCRIPTIONS):
        wanted = None
        if selector:
            wanted = ConsumerFilter(parse_selector(selector.format(number)))
        topic.bind(Binding(routing.queue(f"s{number}"), key.format(number), wanted))
    return topic


@pytest.mark.parametrize(
    ("messages", "fits"), [(COPIES_MAX // SUBSCRIPTIONS, True), (COPIES_MAX // 10, False)]
)
def test_each_message_counts_for_each_subscription(messages: int, fits: bool) -> None:
    posted = sent(topic_of(Routing()), messages=messages)
    if fits:
        check_work(posted)
        return
    with pytest.raises(LimitReached, match="at most 500000 messages for subscriptions"):
        check_work(posted)


def test_subscriptions_to_other_keys_do_not_count() -> None:
    topic = topic_of(Routing(), key="k{}")
    check_work(sent(topic, messages=2 * COPIES_MAX // SUBSCRIPTIONS, key="k7"))


def test_messages_for_queues_are_not_limited() -> None:
    check_work(sent(Routing().queue(), messages=2 * COPIES_MAX))


@pytest.mark.parametrize("number", [1, 2], ids=["as many as may be", "more"])
def test_each_selector_counts_for_each_message(number: int) -> None:
    topic = topic_of(Routing(), selector="n = {}")
    posted = sent(topic, messages=EVALUATIONS_MAX // SUBSCRIPTIONS * number)
    if number == 1:
        check_work(posted)
        return
    with pytest.raises(LimitReached, match="compared with at most 100000 selectors"):
        check_work(posted)


def test_a_commit_beyond_the_limit_is_rolled_back() -> None:
    routing = Routing()
    topic = topic_of(routing)
    transaction = Transaction(routing.router, operations_max=0, bytes_max=0)
    message = new_message()
    for _ in range(COPIES_MAX // SUBSCRIPTIONS + 1):
        transaction.post(topic, message, 1)
    with pytest.raises(LimitReached, match="commit fewer messages at a time"):
        transaction.commit(routing.batch)
    assert (routing.stats.rolled_back, routing.stats.published, topic.posted) == (1, 0, 0)
    assert routing.queue("s0").backlogs.waiting == 0
