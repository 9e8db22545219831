"""Why the router refuses, in the words of messaging; `links.refusal` translates to AMQP."""


class RoutingError(Exception):
    """A request that routing does not carry out. Nothing has changed."""


class NoSuchNode(RoutingError):
    """The address names nothing, and may not be created."""


class InvalidAddress(RoutingError):
    """The address can never name anything."""


class NotPermitted(RoutingError):
    """The user lacks the right."""


class HeldExclusively(RoutingError):
    """Somebody else has the sole use of this node."""


class QueueFull(RoutingError):
    """The node has reached the limit configured for its address."""


class LimitReached(RoutingError):
    """The broker as a whole, or this connection, may not have more of these."""


class NoSuchLeaseBatch(RoutingError):
    """A lease has no such batch, or a batch no such slice."""


class LeaseGone(RoutingError):
    """There is no such lease, or not any more; or a batch of it is settled."""


class LeaseFenced(RoutingError):
    """Somebody has opened the lease anew."""


class NotAsSent(RoutingError):
    """What a task has staged is not what it sent."""


class InvalidSelector(RoutingError):
    """A selector that means nothing. `position` is the character at fault, counted from 1."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(f"selector, character {at + 1}: {reason}")
        self.position = at + 1
