"""`jms-broker embed`: a broker as long as a command runs, such as tests in another language."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Annotated, Final

import typer

URL_VARIABLE: Final = "JMS_BROKER_URL"

NOT_FOUND: Final = 127
"""What a shell says of a command that is not there."""


def embed(
    command: Annotated[list[str], typer.Argument(help="What to run; after -- if it has options.")],
) -> None:
    """Run COMMAND beside a broker of its own, with the address in JMS_BROKER_URL."""
    sys.exit(run(command))


def run(command: list[str]) -> int:
    """The status of `command`, as a shell would give it, once the broker has gone too."""
    from broker.embedding import Broker

    with Broker() as broker:
        variables = {**os.environ, URL_VARIABLE: broker.url}
        try:
            process = subprocess.Popen(command, env=variables)  # noqa: S603 - the user's own
        except OSError as error:
            print(f"jms-broker: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
            return NOT_FOUND
        # the terminal's ^C reaches the command by itself, and it is the command that decides
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        status = process.wait()
        return status if status >= 0 else 128 - status
