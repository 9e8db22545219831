"""What ends a query, in words for whoever runs it."""

from __future__ import annotations

from typing import Final

CONFLICT: Final = 409
GONE: Final = frozenset({404, 410})


class BrokerError(Exception):
    """The broker refused, or did what nobody expects of it."""


class UnreachableError(BrokerError):
    """No broker answers: it may be there again in a moment."""


class GoneError(BrokerError):
    """What is meant is not there: 404, 410, `amqp:not-found`."""


class FencedError(BrokerError):
    """Somebody else has it now: 409, `amqp:resource-locked`."""


class DataLossError(Exception):
    """Something was removed before it was read."""


def error_of(status: int, text: str) -> BrokerError:
    """The error for an answer with that status, the same by AMQP and by HTTP."""
    if status == CONFLICT:
        return FencedError(text)
    return GoneError(text) if status in GONE else BrokerError(text)
