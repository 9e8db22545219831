"""Gives the interpreter to other threads, above all to that of the broker's event loop.

Compiled code keeps the interpreter until it returns, whatever the switch interval is. So the thread
that writes calls this while it works on a large batch.
"""

from time import sleep
from typing import Final

YIELD_EVERY: Final = 4096
"""Messages or numbers that are looked at between two calls: some 0.1 ms."""


def yield_interpreter() -> None:
    """Let another thread run that waits for the interpreter."""
    sleep(0)
