"""Subscriptions by pattern, and the topics that each of them is bound to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.routing.entries.filter import ConsumerFilter
from broker.routing.queues.queue import Queue
from broker.routing.topics.binding import Binding
from broker.routing.topics.wildcards import Wildcard, Wildcards
from tests.support.routing import Routing
from tests.support.topics import KEYS, PATTERNS, stands_for

pytestmark = pytest.mark.requirement("DST-06")


@pytest.fixture(scope="module")
def queues() -> list[Queue]:
    routing = Routing()
    return [routing.queue(name) for name in "abcd"]


def test_a_topic_is_bound_as_the_subscriber_said(queues: list[Queue]) -> None:
    wildcards = Wildcards()
    wildcards.add(Wildcard(Binding(queues[0], "news.*"), "k.#", ConsumerFilter(None, "me")))
    (binding,) = wildcards.bindings_of("news.eu")
    assert binding.is_like(Binding(queues[0], "k.#", ConsumerFilter(None, "me")))
    assert wildcards.bindings_of("olds.eu") == []


def test_a_queue_that_has_gone_is_bound_no_more(queues: list[Queue]) -> None:
    wildcards = Wildcards()
    wildcards.add(Wildcard(Binding(queues[0], "#"), "", None))
    assert (wildcards.has(queues[0]), wildcards.count()) == (True, 1)
    assert wildcards.remove(queues[0])
    assert not wildcards.remove(queues[0])
    assert (wildcards.has(queues[0]), wildcards.count()) == (False, 0)
    assert wildcards.bindings_of("a") == []


@given(patterns=st.lists(PATTERNS.filter(bool), max_size=4), name=KEYS)
def test_topics_there_and_topics_to_come_are_judged_alike(
    queues: list[Queue], patterns: list[str], name: str
) -> None:
    wildcards = Wildcards()
    expected = []
    for queue, text in zip(queues, patterns, strict=False):
        wildcard = Wildcard(Binding(queue, text), "", None)
        wildcards.add(wildcard)
        assert wildcard.takes(name) is stands_for(text, name)
        if stands_for(text, name):
            expected.append(queue)
    found = [binding.queue for binding in wildcards.bindings_of(name)]
    assert sorted(queue.address for queue in found) == sorted(queue.address for queue in expected)
