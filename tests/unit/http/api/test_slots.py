"""Requests have a limit: one for all users, and one for each of them."""

from contextlib import ExitStack

import pytest

from broker.http.api.problems import Failure
from broker.http.api.slots import RequestSlots
from broker.http.limits import API_REQUESTS_MAX, API_REQUESTS_PER_USER_MAX


@pytest.mark.requirement("OPS-01")
def test_one_user_leaves_room_for_another() -> None:
    slots = RequestSlots()
    with ExitStack() as held:
        for _ in range(API_REQUESTS_PER_USER_MAX):
            held.enter_context(slots.taken("ada"))
        with pytest.raises(Failure, match="of this user") as caught, slots.taken("ada"):
            pass
        with slots.taken("bob"):
            pass
    assert caught.value.status == 429
    with slots.taken("ada"):
        pass


@pytest.mark.requirement("OPS-01")
def test_all_users_together_have_a_limit() -> None:
    slots = RequestSlots()
    with ExitStack() as held:
        for number in range(API_REQUESTS_MAX):
            held.enter_context(slots.taken(str(number)))
        with pytest.raises(Failure, match="requests are carried out") as caught, slots.taken("x"):
            pass
    assert caught.value.status == 429
