"""The drain of a broker that is a process of its own: its listeners, its log, its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
from mypy_extensions import i64

from broker.app import App
from broker.links.drain import DrainOwner
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
        self._app.listeners.stop_accepting()
        self._notifier.stopping("draining")
        self._log.info(
            "broker draining: it accepts no connections",
            connections=self._app.container.peer_count(),
        )

    def finishing(self) -> None:
        self._log.info(
            "broker draining: it takes no new messages, and delivers none",
            connections=self._app.container.peer_count(),
            timeout_ms=int(self.finish_ms()),
        )

    def over(self, unfinished: int) -> None:
        if unfinished:
            self._log.warning(
                "broker drained, but clients have not finished: unsettled messages return to"
                " their queues, and open transactions are rolled back",
                connections=unfinished,
            )
        else:
            self._log.info("broker drained: no client has unfinished work")
        self._end()
