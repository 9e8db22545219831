"""How a command ends that talks to a broker: quietly, or with one line and a status."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import typer

EXIT_FAILURE: Final = 1
EXIT_NOT_FOUND: Final = 3
EXIT_FORBIDDEN: Final = 4
EXIT_INTERRUPTED: Final = 130

EXIT_STATUSES: Final = (
    "Exit status: 0 done, 1 failed, 2 wrong usage, 3 there is no such thing, 4 not permitted,"
    " 130 interrupted."
)


@contextmanager
def errors_told() -> Iterator[None]:
    """End the command in one line where something goes wrong, and quietly at ^C."""
    try:
        from broker.cli.client import ClientError
    except ImportError as error:
        fail(f"{error.name} is missing: pip install 'jms-broker[client]' (it needs a C compiler)")
    try:
        yield
    except ClientError as error:
        fail(str(error), error.exit_status)
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read our output has enough; what was not printed goes back to the broker.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(EXIT_FAILURE) from None


def fail(text: str, status: int = EXIT_FAILURE) -> NoReturn:
    """End the command with one line on standard error."""
    typer.echo(f"jms-broker: {text}", err=True)
    raise typer.Exit(status)
