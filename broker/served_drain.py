"""The drain of a broker that is a process of its own: its listeners, its log, its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
from mypy_extensions import i64

from broker.app import App
from broker.links.drain import DrainOwner
from broker.log_events import DRAIN_ANNOUNCED, DRAIN_FINISHING, DRAINED, DRAINED_TOO_SOON
from broker.log_lines import write_line
from broker.service_notifier import ServiceNotifier


class ServedDrain(DrainOwner):
    """Closes the listeners of `app` when its drain is announced, and calls `end` when it is over.

    HTTP goes on until the stop: its `/readyz` is how a load balancer hears of the drain.
    """

    def __init__(self, app: App, end: Callable[[], None], notifier: ServiceNotifier) -> None:
        self._app: Final = app
        self._notifier: Final = notifier
        self._end: Final = end
        self._log: Final = structlog.get_logger("broker")

    def begin(self) -> None:
        """Drain the broker. Idempotent."""
        self._app.container.drain.begin(self)

    def announce_ms(self) -> i64:
        return self._app.settings.drain.announce_ms

    def finish_ms(self) -> i64:
        return self._app.settings.drain.timeout_ms

    def announced(self) -> None:
        if self._app.group is not None:
            self._app.group.hand_over = None  # the process is to end, and not to stand by
        self._app.listeners.stop_accepting()
        self._notifier.stopping("draining")
        write_line(self._log, DRAIN_ANNOUNCED, connections=self._app.container.peer_count())

    def finishing(self) -> None:
        write_line(
            self._log,
            DRAIN_FINISHING,
            connections=self._app.container.peer_count(),
            timeout_ms=int(self.finish_ms()),
        )

    def over(self, unfinished: int) -> None:
        if unfinished:
            write_line(self._log, DRAINED_TOO_SOON, connections=unfinished)
        else:
            write_line(self._log, DRAINED)
        self._end()
