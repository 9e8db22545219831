"""The refusals of routing have one base class, which links translate."""

import pytest

from broker.routing import errors

REFUSALS = [
    errors.NoSuchNode,
    errors.InvalidAddress,
    errors.NotPermitted,
    errors.HeldExclusively,
    errors.QueueFull,
    errors.NeverFits,
    errors.LimitReached,
]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_every_refusal_can_be_caught_as_one(refusal: type[errors.RoutingError]) -> None:
    with pytest.raises(errors.RoutingError, match="why"):
        raise refusal("why")
