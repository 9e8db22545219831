"""Reasons why the router refuses a request; `links.refusal` translates them to AMQP."""


class RoutingError(Exception):
    """A request is refused. Nothing has changed, unless the raising method says otherwise."""


class NoSuchNode(RoutingError):
    """No node or subscription has this address or name, and none may be created."""


class InvalidAddress(RoutingError):
    """The address, key or name can never be valid for this request."""


class NotPermitted(RoutingError):
    """The user lacks the right for the request."""


class HeldExclusively(RoutingError):
    """The node, subscription, link name or lease is in use, and that use excludes the request."""


class QueueFull(RoutingError):
    """The node has reached the limit configured for its address."""


class NeverFits(RoutingError):
    """The message alone is larger than the node may ever hold: to send it again has no use."""


class LimitReached(RoutingError):
    """A limit of the whole broker, or of this connection, allows no more of these."""


class NoSuchLeaseBatch(RoutingError):
    """The lease has no such batch, or the batch no such slice."""


class LeaseGone(RoutingError):
    """The lease does not exist, or no longer does; or its batch is settled already."""


class LeaseFenced(RoutingError):
    """The lease was opened again, so the fencing token is not the latest one."""


class NotAsSent(RoutingError):
    """The number of messages staged for a task is not the number that the task sent."""


class InvalidSelector(RoutingError):
    """The selector is not valid. `position` is the character at fault, counted from 1."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(f"selector, character {at + 1}: {reason}")
        self.position = at + 1
