"""The rest of a client whose messages to topics take many steps of selectors."""

import pytest

from broker.routing.entries.filter import ConsumerFilter
from broker.routing.queues.queue import Queue
from broker.routing.selector import parse_selector
from broker.routing.selector.facts import STEPS_MAX
from broker.routing.topics.binding import Binding
from broker.routing.topics.topic import Topic
from tests.support.broker import Broker
from tests.support.frames import Transfer, frame, message


@pytest.mark.attack("S1")
def test_messages_to_slow_selectors_leave_turns_to_other_clients() -> None:
    broker = Broker()
    router, batch = broker.router, broker.container.journal.batch
    topic = router.resolve(router.parse("t", "topic"), batch)
    assert isinstance(topic, Topic)
    for number in range(10):
        queue = router.resolve(router.parse(f"s{number}", "queue"), batch)
        assert isinstance(queue, Queue)
        wanted = ConsumerFilter(parse_selector(f"p LIKE '%a_b%' OR q = {number}"))
        topic.bind(Binding(queue, "", wanted))
    client = broker.session()
    client.attach_sender("t", kind="topic")
    long = message(b"x", properties={"p": "ab" * (STEPS_MAX // 4)})
    transfers = [
        frame(Transfer(handle=0, delivery_id=number, settled=True, payload=long))
        for number in range(20)
    ]
    client.peer.receive(b"".join(transfers))
    turns = 0
    while client.transport.paused:
        turns += 1
        assert topic.published <= 2 * turns
        other = broker.session("other")
        other.attach_sender()
        other.hang_up()
        broker.advance(0)
    assert topic.published == 20
    assert turns >= 9
