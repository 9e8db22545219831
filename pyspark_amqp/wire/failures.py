"""The class of a failure: whether another attempt could end differently, and for whom it is."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from http.client import BadStatusLine
from typing import Final

from proton import Condition, ProtonException

from pyspark_amqp.errors import (
    BrokerError,
    DeniedError,
    FencedError,
    GoneError,
    LoginError,
    TransientError,
    UnreachableError,
    WrongUrlError,
)
from pyspark_amqp.wire.refusals import UNTRUSTED

REACHED: Final[set[str | None]] = set()
"""The hosts that this process has reached. In some networks, the name of a host is unknown while
the host restarts, so an unknown name is only wrong if it has never been reached."""

UNKNOWN: Final = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
"""The resolver's codes for a name that does not exist, or has no address."""

OTHER_PROTOCOL: Final = ("header mismatch", "wrong version number", "unknown protocol")
"""Words of Proton and OpenSSL for a server that answers, and speaks another protocol."""

CLASSES: Final[dict[str, type[BrokerError]]] = {
    "amqp:not-found": GoneError,
    "amqp:resource-locked": FencedError,
    "amqp:unauthorized-access": DeniedError,
    # a broker that stops or drains
    "amqp:connection:forced": TransientError,
    "amqp:connection:redirect": TransientError,
    "amqp:link:detach-forced": TransientError,
    "amqp:internal-error": TransientError,
}
"""The errors for conditions with which a broker ends a connection or a link."""


def connection_ended(condition: Condition | None) -> BrokerError:
    """Return the error for a broker that has closed the connection.

    Unless it says otherwise it accepts another: it also closes connections that are silent.
    """
    return _ended("the connection", condition, TransientError)


def link_ended(name: str, condition: Condition | None) -> BrokerError:
    """Return the error for a broker that has detached the link `name`."""
    return _ended(name, condition, BrokerError)


def _ended(what: str, condition: Condition | None, usually: type[BrokerError]) -> BrokerError:
    if condition is None:
        return TransientError(f"the broker has ended {what}")
    found = CLASSES.get(condition.name, usually)
    return found(f"the broker has ended {what}: {words(condition)}")


def words(condition: Condition) -> str:
    """Return a condition as text for people."""
    return f"{condition.name}: {condition.description or 'it does not say why'}"


def class_of_dial(error: Exception, host: str | None) -> type[BrokerError]:
    """Return the class of an error that `connect` meets at one URL."""
    if isinstance(error, (LoginError, DeniedError)):
        return type(error)
    text = str(error).lower()
    is_wrong = isinstance(error, (GoneError, ValueError, ProtonException)) or UNTRUSTED in text
    # a response that is no HTTP; it is an OSError, too, if the server only closed the connection
    is_wrong |= isinstance(error, BadStatusLine) and not isinstance(error, OSError)
    if is_wrong or is_unknown(error, host) or any(each in text for each in OTHER_PROTOCOL):
        return WrongUrlError
    return UnreachableError


def is_unknown(error: Exception, host: str | None) -> bool:
    """Return whether `error` says that the name `host`, never reached before, does not exist."""
    return isinstance(error, socket.gaierror) and error.errno in UNKNOWN and host not in REACHED


def class_of_all(classes: Sequence[type[BrokerError]]) -> type[BrokerError]:
    """Return the class of the failures at all URLs of a query.

    The users of all brokers are the same, so one refusal is enough. A wrong URL matters only if no
    other URL could be right.
    """
    for refusal in (LoginError, DeniedError):
        if refusal in classes:
            return refusal
    return WrongUrlError if all(each is WrongUrlError for each in classes) else UnreachableError
