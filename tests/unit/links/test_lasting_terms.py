"""Terms of termini: those that are granted, and those under which deliveries outlive a link."""

import pytest

from broker.amqp.terminus import (
    CONFIGURATION,
    CONNECTION_CLOSE,
    LINK_DETACH,
    NEVER,
    SESSION_END,
    UNSETTLED_STATE,
)
from broker.links.lasting_terms import (
    granted_terms,
    outlives_broker,
    outlives_link,
    subscription_terms,
)
from broker.routing.topics.lifetime import ExpiryPolicy


@pytest.mark.parametrize(
    ("asked", "timeout", "most", "granted"),
    [
        (SESSION_END, 9, 300, (LINK_DETACH, 0)),
        (LINK_DETACH, 9, 300, (LINK_DETACH, 9)),
        (LINK_DETACH, 301, 300, (LINK_DETACH, 300)),
        (CONNECTION_CLOSE, 0, 300, (CONNECTION_CLOSE, 0)),
        (CONNECTION_CLOSE, 301, 300, (CONNECTION_CLOSE, 300)),
        (NEVER, 0, 300, (CONNECTION_CLOSE, 300)),
        (NEVER, 0, 0, (LINK_DETACH, 0)),
        (CONNECTION_CLOSE, 9, 0, (LINK_DETACH, 0)),
    ],
)
def test_terms_are_granted_for_a_bounded_time(
    asked: str, timeout: int, most: int, granted: tuple[str, int]
) -> None:
    terms = granted_terms(asked, timeout, most_s=most)
    assert (terms.policy, terms.timeout_s) == granted


@pytest.mark.parametrize(
    ("policy", "timeout", "outlives"),
    [
        (LINK_DETACH, 0, False),
        (LINK_DETACH, 1, True),
        (SESSION_END, 0, False),
        (SESSION_END, 9, False),
        (CONNECTION_CLOSE, 0, True),
        (NEVER, 0, True),
    ],
)
def test_terms_say_what_outlives_a_link(policy: str, timeout: int, outlives: bool) -> None:
    assert outlives_link(ExpiryPolicy(policy, timeout_s=timeout)) is outlives


@pytest.mark.parametrize(
    ("policy", "timeout", "has_map", "most", "kept"),
    [
        (NEVER, 0, False, 300, None),
        (NEVER, 0, True, 300, (NEVER, 0)),
        (NEVER, 0, True, 0, None),
        (CONNECTION_CLOSE, 4000, False, 300, (CONNECTION_CLOSE, 300)),
        (LINK_DETACH, 0, True, 300, None),
        (SESSION_END, 9, True, 300, None),
    ],
)
def test_a_subscription_without_an_end_keeps_deliveries_for_those_that_resume(
    policy: str, timeout: int, has_map: bool, most: int, kept: tuple[str, int] | None
) -> None:
    terms = subscription_terms(policy, timeout, most_s=most, has_map=has_map)
    assert (None if terms is None else (terms.policy, terms.timeout_s)) == kept


@pytest.mark.parametrize(
    ("policy", "timeout", "durable", "has_map", "link", "outlives"),
    [
        (CONNECTION_CLOSE, 60, UNSETTLED_STATE, True, "link", True),
        (NEVER, 0, UNSETTLED_STATE, True, "link", True),
        (CONNECTION_CLOSE, 0, UNSETTLED_STATE, True, "link", False),
        (CONNECTION_CLOSE, 60, CONFIGURATION, True, "link", False),
        (CONNECTION_CLOSE, 60, UNSETTLED_STATE, False, "link", False),
        (CONNECTION_CLOSE, 60, UNSETTLED_STATE, True, "n" * 256, False),
        (CONNECTION_CLOSE, 60, UNSETTLED_STATE, True, "a\0", False),
    ],
)
def test_deliveries_outlive_the_broker_for_those_that_ask_and_may_resume(
    policy: str, timeout: int, durable: int, has_map: bool, link: str, outlives: bool
) -> None:
    terms = ExpiryPolicy(policy, timeout_s=timeout)
    names = ("client", link)
    assert outlives_broker(terms, durable, has_map=has_map, names=names) is outlives
