"""Faults: a broken rule or a request that is refused, and how much ends with it.

The scope of a fault is its class: a `LinkFault` is answered with detach, a
`SessionFault` with end, a `ConnectionFault` with close. The condition is one of
the specification's names (core spec 2.8.15 to 2.8.18, 3.2.16, 3.5.10, 4.5.8).
"""

from __future__ import annotations

from typing import Final

from broker.amqp.types import Symbol

# amqp-error, core spec 2.8.15
INTERNAL_ERROR: Final = "amqp:internal-error"
NOT_FOUND: Final = "amqp:not-found"
UNAUTHORIZED_ACCESS: Final = "amqp:unauthorized-access"
DECODE_ERROR: Final = "amqp:decode-error"
RESOURCE_LIMIT_EXCEEDED: Final = "amqp:resource-limit-exceeded"
NOT_ALLOWED: Final = "amqp:not-allowed"
INVALID_FIELD: Final = "amqp:invalid-field"
NOT_IMPLEMENTED: Final = "amqp:not-implemented"
RESOURCE_LOCKED: Final = "amqp:resource-locked"
PRECONDITION_FAILED: Final = "amqp:precondition-failed"
RESOURCE_DELETED: Final = "amqp:resource-deleted"
ILLEGAL_STATE: Final = "amqp:illegal-state"
FRAME_SIZE_TOO_SMALL: Final = "amqp:frame-size-too-small"

# connection-error, core spec 2.8.16
CONNECTION_FORCED: Final = "amqp:connection:forced"
FRAMING_ERROR: Final = "amqp:connection:framing-error"
CONNECTION_REDIRECT: Final = "amqp:connection:redirect"

# session-error, core spec 2.8.17
WINDOW_VIOLATION: Final = "amqp:session:window-violation"
ERRANT_LINK: Final = "amqp:session:errant-link"
HANDLE_IN_USE: Final = "amqp:session:handle-in-use"
UNATTACHED_HANDLE: Final = "amqp:session:unattached-handle"

# link-error, core spec 2.8.18
DETACH_FORCED: Final = "amqp:link:detach-forced"
TRANSFER_LIMIT_EXCEEDED: Final = "amqp:link:transfer-limit-exceeded"
MESSAGE_SIZE_EXCEEDED: Final = "amqp:link:message-size-exceeded"
LINK_REDIRECT: Final = "amqp:link:redirect"
STOLEN: Final = "amqp:link:stolen"

# transaction-error, core spec 4.5.8
UNKNOWN_ID: Final = "amqp:transaction:unknown-id"
TRANSACTION_ROLLBACK: Final = "amqp:transaction:rollback"
TRANSACTION_TIMEOUT: Final = "amqp:transaction:timeout"


class Fault(Exception):  # noqa: N818 - the word that the whole engine uses
    """A broken rule of the protocol, or a request that cannot be granted."""

    def __init__(
        self, condition: str, description: str = "", info: dict[Symbol, object] | None = None
    ) -> None:
        super().__init__(condition, description)
        self.condition: Final = condition
        self.description: Final = description
        self.info: Final = info

    def __str__(self) -> str:
        return f"{self.condition}: {self.description}" if self.description else self.condition


class LinkFault(Fault):
    """A fault that is answered with detach(closed=true); the session continues."""


class ReattachFault(LinkFault):
    """A fault that is answered with detach(closed=false): the peer may attach the link again."""


class SessionFault(Fault):
    """A fault that is answered with end; the connection continues."""


class ConnectionFault(Fault):
    """A fault that is answered with close."""
