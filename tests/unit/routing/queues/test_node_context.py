"""The services that all nodes of a broker share."""

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.participants import QueueObserver
from tests.support.routing import Routing


def test_numbers_of_the_store_ascend_from_the_first_that_is_free() -> None:
    context = Routing().router.context
    context.number_from(7)
    assert [int(context.next_stored_number()) for _ in range(3)] == [7, 8, 9]


def test_messages_that_the_store_has_at_a_start_may_have_been_delivered() -> None:
    context = Routing().router.context
    context.number_from(7)
    context.suspect()
    assert context.paging.suspected_below == 7


@pytest.mark.parametrize("has_log", [False, True])
def test_a_queue_has_the_event_log_only_if_its_policy_asks_for_one(has_log: bool) -> None:
    observer = QueueObserver()
    context = Routing(observer=observer).router.context
    found = context.observer_of(AddressPolicy(event_log=has_log))
    assert found is (context.event_log if has_log else observer)
