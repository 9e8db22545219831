"""`jms-broker embed`: run a broker while a command runs, such as tests in another language."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Annotated, Final

import typer

URL_VARIABLE: Final = "JMS_BROKER_URL"

NOT_FOUND: Final = 127
"""The exit status by which a shell reports that a command was not found."""


def embed(
    command: Annotated[list[str], typer.Argument(help="What to run; after -- if it has options.")],
) -> None:
    """Start a broker, run COMMAND with the broker's URL in JMS_BROKER_URL, then stop the broker."""
    sys.exit(run(command))


def run(command: list[str]) -> int:
    """Run `command` with a broker of its own; return its exit status after both have ended.

    The status is a shell's: 127 if the command cannot be run, 128 + N if signal N ended it.
    """
    from broker.embedding import Broker

    with Broker() as broker:
        variables = {**os.environ, URL_VARIABLE: broker.url}
        try:
            process = subprocess.Popen(command, env=variables)  # noqa: S603 - the user's own
        except OSError as error:
            print(f"jms-broker: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
            return NOT_FOUND
        # the terminal sends ^C to the command, too, and the command decides whether it ends
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        status = process.wait()
        return status if status >= 0 else 128 - status
