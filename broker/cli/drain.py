"""`jms-broker drain`: have a running broker finish the work of its clients, and stop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.managing import BrokerAt, at_broker

if TYPE_CHECKING:
    from broker.cli.requests import Requests

ASK_EVERY_S: Final = 1.0
"""Seconds between two questions whether the broker is still there."""


@at_broker
def drain(
    at: BrokerAt,
    announce_only: Annotated[
        bool,
        typer.Option(
            "--announce-only",
            help="Only accept no more connections, and be not ready; SIGTERM goes on.",
        ),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Return after the stop; with --announce-only, after drain.announce_ms.",
        ),
    ] = False,
) -> None:
    """Let clients finish their work, then stop the broker.

    It accepts no more connections. After drain.announce_ms it takes no more messages and delivers
    none. It stops once no client has unsettled messages or an open transaction, at the latest after
    drain.timeout_ms.
    """
    with at.opened() as requests:
        told = requests.ask("DRAIN", "drain", "drain", announce_only=announce_only)
        announce_ms = told["announce_ms"]
        assert isinstance(announce_ms, int)
        if wait and announce_only:
            time.sleep(announce_ms / 1000)
        elif wait:
            _await_end(requests)


def _await_end(requests: Requests) -> None:
    """Return once the broker has closed the connection."""
    while not requests.connection_has_ended():
        time.sleep(ASK_EVERY_S)
