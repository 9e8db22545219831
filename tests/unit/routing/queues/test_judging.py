"""The cost of filters in a turn of the event loop: steps of selectors, in queues and topics."""

import pytest

from broker.message import Message
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.queues.judging import (
    COPIES_PER_EVALUATION,
    JUDGED_IN_TURN,
    STEPS_PER_EVALUATION,
    JudgingWatcher,
)
from broker.routing.queues.queue import Queue
from broker.routing.queues.selection import JUDGED_AT_ONCE, SHARE_MIN
from broker.routing.selector import parse_selector
from broker.routing.selector.facts import STEPS_MAX
from broker.routing.topics.binding import FREE_STEPS, SHARED_STEPS, Binding
from broker.routing.topics.topic import Topic
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, new_message
from tests.support.selected import selectable

pytestmark = [pytest.mark.requirement("RCV-05"), pytest.mark.attack("S1")]

AT_ONCE = JUDGED_AT_ONCE * STEPS_PER_EVALUATION + STEPS_MAX
"""Maximum steps of one dispatch: the last selector may take all that it has."""


def slow(number: int = 0) -> str:
    """Return a selector that takes about half of STEPS_MAX on a `long` message."""
    return f"p LIKE '%a_b%' OR q = {number} OR q = 1000"


def long(q: int = -1) -> Message:
    return selectable({"p": "ab" * (STEPS_MAX // 4), "q": q}, body=str(q))


def fill(routing: Routing, queue: Queue, count: int) -> None:
    for _ in range(count):
        queue.put(long(), routing.batch)
    queue.put(long(1000), routing.batch)


def attach(queue: Queue, text: str, *, browses: bool = False) -> RecordingConsumer:
    consumer = RecordingConsumer(10)
    consumer.filter = ConsumerFilter(parse_selector(text))
    if browses:
        queue.attach_browser(consumer)
    else:
        queue.attach_consumer(consumer)
    queue.consumer_ready(consumer, drain=False)
    return consumer


def steps_of(queue: Queue) -> int:
    selection = queue.delivery._selection
    assert selection is not None
    return int(selection.steps)


@pytest.mark.parametrize("browses", [False, True], ids=["consumer", "browser"])
def test_a_dispatch_ends_when_its_steps_are_spent_and_the_next_goes_on(browses: bool) -> None:
    routing = Routing()
    queue = routing.queue()
    fill(routing, queue, 30)
    consumer = attach(queue, slow(), browses=browses)
    got = consumer.copies if browses else consumer.taken
    routing.pump()
    turns = 1
    while not got:
        before = steps_of(queue)
        routing.advance(0)
        turns += 1
        assert 0 < steps_of(queue) - before <= AT_ONCE
        assert turns <= 31
    assert turns > 3


def test_a_queue_that_is_woken_again_and_again_judges_once_in_a_turn() -> None:
    routing = Routing()
    queue = routing.queue()
    fill(routing, queue, 30)
    consumer = attach(queue, slow())
    for _ in range(10):
        queue.consumer_ready(consumer, drain=False)
        routing.pump()
    assert steps_of(queue) <= AT_ONCE


def test_the_queues_of_a_turn_share_its_evaluations_and_each_has_its_turn() -> None:
    routing = Routing()
    queues = [routing.queue(f"q{number}") for number in range(12)]
    consumers = []
    for queue in queues:
        fill(routing, queue, 2 * JUDGED_AT_ONCE * STEPS_PER_EVALUATION // STEPS_MAX)
        consumers.append(attach(queue, slow()))
    most = JUDGED_IN_TURN * STEPS_PER_EVALUATION + AT_ONCE
    spent = 0
    routing.pump()
    for _ in range(40):
        now = sum(map(steps_of, queues))
        assert now - spent <= most
        spent = now
        if all(steps_of(queue) > 0 for queue in queues):
            break
        routing.advance(0)
    # nobody is served twice before everybody was served once
    assert max(map(steps_of, queues)) <= AT_ONCE
    for _ in range(40):
        routing.advance(0)
    assert [len(consumer.taken) for consumer in consumers] == [1] * len(queues)


def test_a_cheap_selector_keeps_its_share_beside_slow_ones() -> None:
    routing = Routing()
    queue = routing.queue()
    fill(routing, queue, 30)
    for number in range(20):
        attach(queue, slow(number))
    cheap = attach(queue, "q = 1000")
    routing.pump()
    for _ in range(20):
        routing.advance(0)
    assert cheap.passed is not None
    assert cheap.passed[4] >= SHARE_MIN - 1


# -- topics


class Counting(JudgingWatcher):
    """Counts how often a publisher has to rest."""

    def __init__(self) -> None:
        self.rests = 0

    def judged_enough(self) -> None:
        self.rests += 1


def subscribed(routing: Routing, *texts: str) -> tuple[Topic, list[Queue]]:
    topic = routing.topic("t")
    queues = [routing.queue(f"s{number}") for number in range(len(texts))]
    for queue, text in zip(queues, texts, strict=True):
        topic.bind(Binding(queue, "", ConsumerFilter(parse_selector(text))))
    return topic, queues


def test_the_filters_of_a_topic_share_the_steps_for_a_message() -> None:
    routing = Routing()
    texts = [*map(slow, range(100)), "q = 1000"]
    topic, queues = subscribed(routing, *texts)
    watcher = routing.router.context.judging.watcher = Counting()
    topic.put(long(1000), routing.batch)
    routing.pump()
    assert topic.bindings.price * STEPS_PER_EVALUATION <= FREE_STEPS + 2 * SHARED_STEPS
    found = [int(queue.backlogs.waiting) for queue in queues]
    assert found[0] == found[-1] == 1
    given_up = found.count(0)
    assert given_up > 50
    assert routing.stats.selectors_given_up == given_up
    assert watcher.rests == 0
    told = [notice.text for notice in routing.router.notices]
    assert any("subscriptions of t did not get a message" in text for text in told)


def test_who_publishes_what_takes_many_steps_rests_until_the_next_turn() -> None:
    routing = Routing()
    topic, _ = subscribed(routing, *map(slow, range(20)))
    watcher = routing.router.context.judging.watcher = Counting()
    published = 0
    while not watcher.rests:
        topic.put(long(), routing.batch)
        published += 1
        assert published < 10
    routing.advance(0)
    assert routing.router.context.judging.left == JUDGED_IN_TURN


@pytest.mark.parametrize(
    ("subscriptions", "rests"), [(COPIES_PER_EVALUATION - 1, 0), (COPIES_PER_EVALUATION, 1)]
)
def test_who_publishes_for_many_subscriptions_rests_until_the_next_turn(
    subscriptions: int, rests: int
) -> None:
    routing = Routing()
    topic = routing.topic()
    for number in range(subscriptions):
        topic.bind(Binding(routing.queue(f"s{number}")))
    watcher = routing.router.context.judging.watcher = Counting()
    for _ in range(JUDGED_IN_TURN):
        topic.put(new_message(), routing.batch)
    assert watcher.rests == rests
    routing.advance(0)
    assert routing.router.context.judging.left == JUDGED_IN_TURN


def test_simple_filters_are_not_limited_by_their_number() -> None:
    routing = Routing()
    texts = [f"q = 1000 AND q <> {number + 2000}" for number in range(2000)]
    topic, queues = subscribed(routing, *texts)
    topic.put(long(1000), routing.batch)
    assert all(queue.backlogs.waiting == 1 for queue in queues)
    assert routing.stats.selectors_given_up == 0
