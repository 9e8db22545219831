"""Ports of this machine for programs that tests start."""

from __future__ import annotations

import os
import socket
from itertools import count
from typing import Final

# Linux takes the port of a connection, and of a listener that asks for port 0, from 32768 on.
_FIRST: Final = 10_000
_END: Final = 32_768
# Test processes that run side by side have neighbouring pids: each searches from another place.
_STRIDE: Final = 256

_numbers: Final = count()


def free_port() -> int:
    """Return a port on which no process listens, and that the system gives to no other socket.

    The port is below those that the system chooses by itself, and no process gets the same one
    twice before it has had all, so it is still free when the program that is to listen on it
    has started.

    Raises:
        OSError: each port of the range is taken.
    """
    place = os.getpid() * _STRIDE
    for _ in range(_END - _FIRST):
        port = _FIRST + (place + next(_numbers)) % (_END - _FIRST)
        if _is_free(port):
            return port
    raise OSError(f"no port from {_FIRST} to {_END - 1} is free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
