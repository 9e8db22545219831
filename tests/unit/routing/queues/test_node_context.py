"""The services that all nodes of a broker share."""

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.participants import ObserverChoice, QueueObserver
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
    found = context.observer_of(AddressPolicy(event_log=has_log), "q", is_subscription=False)
    assert found is (context.event_log if has_log else observer)


class Choice(ObserverChoice):
    """Gives each queue an observer of its own."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, QueueObserver | None]] = []
        self.observer = QueueObserver()

    def observer_of(self, address: str, other: QueueObserver | None) -> QueueObserver | None:
        self.asked.append((address, other))
        return self.observer


def test_queues_but_not_subscriptions_may_have_a_further_observer() -> None:
    context = Routing().router.context
    choice = context.observer_choice = Choice()
    with_log = AddressPolicy(event_log=True)
    assert context.observer_of(with_log, "q", is_subscription=False) is choice.observer
    assert context.observer_of(with_log, "q", is_subscription=True) is context.event_log
    assert choice.asked == [("q", context.event_log)]
