"""Outcomes that a target keeps until the sender has settled them."""

import pytest

from broker.amqp.errors import NOT_ALLOWED, RESOURCE_LIMIT_EXCEEDED, LinkFault
from broker.amqp.limits import UNSETTLED_MAP_MAX
from broker.amqp.outcomes import ACCEPTED
from broker.amqp.received_outcomes import ReceivedOutcomes


def test_an_outcome_is_kept_until_it_is_settled() -> None:
    kept = ReceivedOutcomes()
    kept.arrived(b"one")
    assert kept.states() == [(b"one", None)]
    kept.decided(b"one", ACCEPTED)
    assert kept.states() == [(b"one", ACCEPTED)]
    kept.settled(b"one")
    kept.settled(b"one")
    assert (kept.count(), kept.knows(b"one")) == (0, False)


def test_an_outcome_that_comes_after_the_settlement_is_nothing() -> None:
    kept = ReceivedOutcomes()
    kept.arrived(b"one")
    kept.settled(b"one")
    kept.decided(b"one", ACCEPTED)
    assert kept.count() == 0


def test_a_tag_is_used_once_until_it_is_settled() -> None:
    kept = ReceivedOutcomes()
    kept.arrived(b"one")
    with pytest.raises(LinkFault) as caught:
        kept.arrived(b"one")
    assert caught.value.condition == NOT_ALLOWED
    kept.settled(b"one")
    kept.arrived(b"one")


def test_a_target_keeps_only_so_many() -> None:
    kept = ReceivedOutcomes()
    for number in range(UNSETTLED_MAP_MAX):
        kept.arrived(number.to_bytes(4, "big"))
    with pytest.raises(LinkFault) as caught:
        kept.arrived(b"more")
    assert caught.value.condition == RESOURCE_LIMIT_EXCEEDED
