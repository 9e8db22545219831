"""The error that sends a client to another broker, `amqp:connection:redirect`."""

from __future__ import annotations

from mypy_extensions import i64

from broker.amqp.errors import CONNECTION_REDIRECT, ConnectionFault
from broker.amqp.types import Symbol, UInt


def redirect(text: str, host: str, port: i64) -> ConnectionFault:
    """Return the error with the host and port of the other broker; `text` says why."""
    return ConnectionFault(
        CONNECTION_REDIRECT,
        text,
        {
            Symbol("hostname"): host,
            Symbol("network-host"): host,
            Symbol("port"): UInt(port),
        },
    )
