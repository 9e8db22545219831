"""What an outcome means for the queue (core 3.4, RCV-02, RCV-08). Decided here, done by `Queue`."""

from typing import assert_never

from broker.amqp.errors import NOT_ALLOWED, LinkFault
from broker.amqp.outcomes import (
    Accepted,
    Declared,
    DeliveryState,
    Modified,
    Received,
    Rejected,
    Released,
    TransactionalState,
)
from broker.routing.entries.dead_letter import REJECTED, REJECTED_UNSAID, Cause
from broker.routing.entries.redelivery import Disposal


def disposal(state: DeliveryState) -> Disposal:
    """The disposal that a consumer's state asks for; LinkFault where it cannot be a last word."""
    match state:
        case Accepted():
            return Disposal.REMOVE
        case Released():
            return Disposal.RELEASE
        case Rejected():
            return Disposal.DEAD_LETTER
        case Modified():
            return _disposal_of_modified(state)
        case Received():
            # no outcome: whoever settles so gets the default-outcome, which cannot be this (3.5.3)
            return Disposal.RELEASE
        case Declared() | TransactionalState():
            # what belongs to a transaction has been told apart before (`retirement.py`)
            raise LinkFault(NOT_ALLOWED, "a delivery state that is no outcome")
        case _:
            assert_never(state)


def _disposal_of_modified(modified: Modified) -> Disposal:
    if modified.undeliverable_here:
        return Disposal.FAIL_ELSEWHERE if modified.delivery_failed else Disposal.ELSEWHERE
    return Disposal.FAIL if modified.delivery_failed else Disposal.RELEASE


def cause_of(state: DeliveryState | None) -> Cause:
    """What a consumer says of a message that it rejects (3.4.3)."""
    if not isinstance(state, Rejected) or state.error is None:
        return REJECTED_UNSAID
    error = state.error
    return Cause(REJECTED, error.condition, error.description or "")


def abandonment(default_outcome: DeliveryState | None) -> Disposal:
    """The disposal of a delivery that ended with its link, with no outcome (RCV-08).

    The source's default-outcome, `released` where it names none. What counts is
    counted, but not held against the redelivery limit: nobody has said that the
    message is bad. And a link that is gone needs no "not here".
    """
    if default_outcome is None:
        return Disposal.RELEASE
    wanted = disposal(default_outcome)
    if wanted is Disposal.FAIL or wanted is Disposal.FAIL_ELSEWHERE:
        return Disposal.COUNT
    if wanted is Disposal.ELSEWHERE:
        return Disposal.RELEASE
    return wanted
