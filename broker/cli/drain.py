"""`jms-broker drain`: have a running broker finish the work of its clients, and stop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.ending import ClientError
from broker.cli.managing import BrokerAt, at_broker
from broker.process_identity import is_running

if TYPE_CHECKING:
    from broker.cli.requests import Requests

ASK_EVERY_S: Final = 1.0
"""Seconds between two questions whether the broker is still there."""

LOOK_EVERY_S: Final = 0.02
"""Seconds between two looks whether its process is still there."""

STOPS_WITHIN_S: Final = 10.0
"""Seconds that a broker takes at most to stop, the end of its process included."""

PROCESS_PATIENCE_S: Final = 60.0
"""Maximum seconds from the end of the connection to that of the process."""


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
            help="Return after the end of the broker, or of the connection to it if it is on"
            " another machine; with --announce-only, after drain.announce_ms.",
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
            _await_end(requests, str(told.get("process", "")))


def _await_end(requests: Requests, process: str) -> None:
    """Return once the broker has ended, and say what was waited for.

    The broker closes its connections before it closes its store. Its process, if that is on this
    machine, is what a restart must wait for. ClientError if it does not end.
    """
    is_here = is_running(process)
    while not requests.connection_has_ended():
        time.sleep(ASK_EVERY_S)
    if not is_here:
        typer.echo(
            "the broker has closed its connections; its process, which cannot be seen from here,"
            f" ends up to {STOPS_WITHIN_S:g} s later"
        )
        return
    pid = process.partition("@")[0]
    ends = time.monotonic() + PROCESS_PATIENCE_S
    while is_running(process):
        if time.monotonic() >= ends:
            raise ClientError(
                f"the broker has closed its connections, but its process {pid} still runs after"
                f" {PROCESS_PATIENCE_S:g} s: see its log"
            )
        time.sleep(LOOK_EVERY_S)
    typer.echo(f"the broker has stopped: its process {pid} has ended")
