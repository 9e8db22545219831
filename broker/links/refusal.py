"""Refusals: the only table that translates one of the router to an AMQP fault."""

from typing import Final

from broker.amqp.errors import (
    INVALID_FIELD,
    MESSAGE_SIZE_EXCEEDED,
    NOT_FOUND,
    PRECONDITION_FAILED,
    RESOURCE_LIMIT_EXCEEDED,
    RESOURCE_LOCKED,
    UNAUTHORIZED_ACCESS,
    Fault,
    LinkFault,
)
from broker.routing.errors import (
    HeldExclusively,
    InvalidAddress,
    InvalidSelector,
    LeaseFenced,
    LeaseGone,
    LimitReached,
    NeverFits,
    NoSuchLeaseBatch,
    NoSuchNode,
    NotAsSent,
    NotPermitted,
    QueueFull,
    RoutingError,
)


class ToldFault(LinkFault):
    """A refusal of a message that its sender is told by a detach, with the delivery-tag."""


CONDITIONS: Final[dict[type[RoutingError], str]] = {
    NoSuchNode: NOT_FOUND,
    InvalidAddress: INVALID_FIELD,
    InvalidSelector: INVALID_FIELD,
    NotPermitted: UNAUTHORIZED_ACCESS,
    HeldExclusively: RESOURCE_LOCKED,
    QueueFull: RESOURCE_LIMIT_EXCEEDED,
    NeverFits: MESSAGE_SIZE_EXCEEDED,
    LimitReached: RESOURCE_LIMIT_EXCEEDED,
    NoSuchLeaseBatch: NOT_FOUND,
    LeaseGone: NOT_FOUND,
    LeaseFenced: RESOURCE_LOCKED,
    NotAsSent: PRECONDITION_FAILED,
}


def as_link_fault(refusal: RoutingError) -> LinkFault:
    """Return the fault that reports `refusal`. `tests/unit` checks that no class is missing."""
    return LinkFault(CONDITIONS[type(refusal)], str(refusal))


def as_fault(cause: Fault | RoutingError) -> Fault:
    """Return the fault that reports `cause`, which may come from AMQP or from routing."""
    return as_link_fault(cause) if isinstance(cause, RoutingError) else cause
