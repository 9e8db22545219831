"""Errors that end a query, with texts for the user who runs it."""

from __future__ import annotations

from typing import Final

from pyspark_amqp.one_line import UserError


class BrokerError(UserError):
    """A refusal or unexpected reaction of the broker; another attempt would end in the same way.

    Its subclass `TransientError` is the exception.
    """


class TransientError(BrokerError):
    """A lost connection, or a broker that cannot answer now. A later attempt may succeed."""


class NoAnswerError(BrokerError):
    """An error because the broker has not done in time what was asked: it may do it yet."""


class UnreachableError(TransientError):
    """An error because no broker answers."""


class WrongUrlError(BrokerError):
    """An error because a URL leads to no broker that this client can use."""


class LoginError(BrokerError):
    """An error because a broker refuses the login: 401, or the outcome of SASL."""


class DeniedError(BrokerError):
    """An error because the user lacks a right: 403, `amqp:unauthorized-access`."""


class GoneError(BrokerError):
    """An error because an entity or address does not exist: 404, 410, `amqp:not-found`."""


class NoManagementError(BrokerError):
    """An error because the broker is another one than this project's, and has no `$management`."""


class FencedError(BrokerError):
    """An error because another program has the entity now: 409, `amqp:resource-locked`."""


class DataLossError(UserError):
    """An error because rows were removed before they were read."""


CLASSES: Final[dict[int, type[BrokerError]]] = {
    401: LoginError,
    403: DeniedError,
    404: GoneError,
    410: GoneError,
    409: FencedError,
    # the status codes of brokers and proxies that are busy, or have nothing behind them at present
    **dict.fromkeys((408, 429, 502, 503, 504), TransientError),
}
"""The errors of status codes, which are the same for AMQP and HTTP."""


def error_of(status: int, text: str) -> BrokerError:
    """Return the error for a response with `status`."""
    return CLASSES.get(status, BrokerError)(text)


class SelectorError(ValueError):
    """An error because a text is no selector; it says why, and at which character."""


class ReplayError(Exception):
    """An error because a replay cannot begin, or broke off; the text says why."""
