"""Tells a service manager such as systemd the state of the process (sd_notify)."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from typing import Final

import structlog

from broker.log_events import MANAGER_NOT_TOLD
from broker.log_lines import write_line

VARIABLE: Final = "NOTIFY_SOCKET"
"""The variable with the socket of the service manager; unset if it waits for no messages."""

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


class ServiceNotifier:
    """Tells the service manager at the socket that the environment names; without one, none.

    A name that begins with @ is an abstract one, which is no file.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        name = environment.get(VARIABLE, "")
        self._address: Final = f"\0{name[1:]}" if name.startswith("@") else name

    def ready(self, status: str) -> None:
        """Report that the service is ready, or ready again after a reload."""
        self._tell(READY, f"STATUS={status}")

    def reloading(self) -> None:
        """Report that a reload begins; `ready` reports its end."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str) -> None:
        """Report that the service stops, or drains before it stops."""
        self._tell(STOPPING, f"STATUS={status}")

    def _tell(self, *lines: str) -> None:
        """Send one message. A failure is logged: the service goes on without its manager."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            log = structlog.get_logger("broker")
            write_line(log, MANAGER_NOT_TOLD, message=lines[0], reason=error.strerror)
