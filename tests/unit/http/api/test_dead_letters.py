"""Dead letters by their source and reason."""

from __future__ import annotations

import pytest

from broker.http.api.dead_letters import UNKNOWN, DeadLetterOrigin, dead_letter_queues
from tests.support.broker import Broker

pytestmark = pytest.mark.requirement("OPS-06")


async def test_a_queue_is_a_dead_letter_queue_if_another_names_it() -> None:
    broker = Broker()
    broker.fill("orders")
    assert await dead_letter_queues(broker.container) == []
    name = broker.router.queues["orders"].policy.dead_letter
    broker.fill(name)
    (found,) = await dead_letter_queues(broker.container)
    assert (found.name, found.messages, found.examined) == (name, 1, 1)
    assert [(each.source, each.reason, each.messages) for each in found.origins] == [
        (UNKNOWN, UNKNOWN, 1)
    ]


def test_times_are_the_first_and_the_last() -> None:
    origin = DeadLetterOrigin(source="q", reason="rejected")
    for moved_at in (5, 0, 3, 9):
        origin.add(moved_at)
    assert (origin.messages, origin.first_at, origin.last_at) == (4, 3, 9)
