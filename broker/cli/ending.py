"""The end of a command that talks to a broker: exit statuses, errors as one line, and ^C."""

from __future__ import annotations

import os
import signal
import sys
from _thread import start_new_thread
from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING, Final, NoReturn

import typer

from broker.cli.broker_url import URLError
from broker.cli.client_tls import ClientTlsError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_FOUND: Final = 3
EXIT_FORBIDDEN: Final = 4
EXIT_UNREACHABLE: Final = 5
EXIT_INTERRUPTED: Final = 130

UNREACHABLE_STATUS: Final = "5 the broker is not reached"

EXIT_STATUSES: Final = (
    "Exit status: 0 done, 1 failed, 2 wrong usage, 3 there is no such thing, 4 not permitted,"
    f" {UNREACHABLE_STATUS}, 130 interrupted."
)

DOCTOR_STATUSES: Final = (
    f"Exit status: 0 no check failed, though some may warn; 1 a check failed, or nothing could be"
    f" done; 2 wrong usage; 4 not permitted; {UNREACHABLE_STATUS}."
)

CLIENT_LIBRARY: Final = ("proton", "cproton")
"""The modules of the client library."""

PROTON_WRAPPER: Final = "proton._wrapper"
"""The module of the base class of proton's objects."""

ANOTHER_TRY_S: Final = 0.05
"""Seconds until an interrupt that Python had to drop is raised again."""


class ClientError(Exception):
    """The failure of a command, in words for the user who typed it, and its exit status."""

    def __init__(self, text: str, exit_status: int = EXIT_FAILURE) -> None:
        super().__init__(text)
        self.exit_status: Final = exit_status


@contextmanager
def errors_told() -> Iterator[None]:
    """End the command with one line on standard error if the block fails, and silently at ^C."""
    try:
        with _interrupts_kept():
            yield
    except ModuleNotFoundError as error:
        if error.name not in CLIENT_LIBRARY:
            raise
        fail(
            f"the client library {error.name} is missing. Install it with"
            " `pip install 'jms-broker[client]'`, which needs a C compiler; or manage the broker"
            " over HTTP, without it: --url https://HOST:8161"
        )
    except ClientError as error:
        fail(str(error), error.exit_status)
    except (URLError, ClientTlsError) as error:
        fail(str(error), EXIT_USAGE)
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None


@contextmanager
def output_errors_told() -> Iterator[None]:
    """End the process with one line if standard output is closed, or cannot be written.

    Silently if its reader has closed it; messages that were not printed return to the broker.
    For the whole run of a command: other errors of files and sockets are told by what meets them.
    What was buffered is written at the end of the block, where an error can still be told.
    """
    if sys.stdout is None:  # the process was started without: nothing is done before this is told
        sys.stderr.write("jms-broker: standard output is closed\n")
        sys.exit(EXIT_FAILURE)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            raise
        # Python writes the rest of the buffer once more when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"jms-broker: standard output: {error.strerror}\n")
        sys.exit(EXIT_FAILURE)


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Raise ^C again if it came during a finalizer or a callback from C.

    Python drops an exception there. Proton's objects have both, so a receiver would not stop. An
    object of proton that ^C kept from being initialized fails once more, in its finalizer; that
    tells the user nothing.
    """
    hook = sys.unraisablehook

    def unraisable(dropped: UnraisableHookArgs) -> None:
        if dropped.exc_type is KeyboardInterrupt:
            # a Timer's start waits for its thread, on a busy machine until ^C has come and is lost
            start_new_thread(_interrupt_later, ())
        elif not _is_of_uninitialized_wrapper(dropped):
            hook(dropped)

    sys.unraisablehook = unraisable
    try:
        yield
    finally:
        sys.unraisablehook = hook


def _interrupt_later() -> None:
    """Let ^C come once more in ANOTHER_TRY_S, after the hook that calls this has returned."""
    sleep(ANOTHER_TRY_S)
    os.kill(os.getpid(), signal.SIGINT)


def _is_of_uninitialized_wrapper(dropped: UnraisableHookArgs) -> bool:
    """Return whether the finalizer of a proton object found that the object has no attributes."""
    finalizer = dropped.object
    return (
        dropped.exc_type is KeyError
        and getattr(finalizer, "__module__", "") == PROTON_WRAPPER
        and getattr(finalizer, "__name__", "") == "__del__"
    )


def fail(text: str, status: int = EXIT_FAILURE) -> NoReturn:
    """End the command with one line on standard error and the exit status `status`."""
    typer.echo(f"jms-broker: {text}", err=True)
    raise typer.Exit(status)
