"""Errors that end a query, with texts for the user who runs it."""

from __future__ import annotations

from typing import Final

CONFLICT: Final = 409
GONE: Final = frozenset({404, 410})


class BrokerError(Exception):
    """A refusal or unexpected reaction of the broker, or a lost connection."""


class UnreachableError(BrokerError):
    """An error because no broker answers. A later attempt may succeed."""


class LoginError(UnreachableError):
    """An error because every broker that answers refuses the login. The same login fails again."""


class GoneError(BrokerError):
    """An error because an entity or address does not exist: 404, 410, `amqp:not-found`."""


class FencedError(BrokerError):
    """An error because another program has the entity now: 409, `amqp:resource-locked`."""


class DataLossError(Exception):
    """An error because rows were removed before they were read."""


def error_of(status: int, text: str) -> BrokerError:
    """Return the error for a response with `status`; AMQP and HTTP have the same codes."""
    if status == CONFLICT:
        return FencedError(text)
    return GoneError(text) if status in GONE else BrokerError(text)
