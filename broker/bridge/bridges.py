"""All bridges of a broker: they run from the moment at which it serves clients until it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from broker.bridge.bridge import Bridge
from broker.bridge_settings import BridgeSettings
from broker.links.container import Container


class Bridges:
    """The bridges of `settings`."""

    def __init__(self, settings: Sequence[BridgeSettings], container: Container) -> None:
        self._bridges: Final = [Bridge(each, container) for each in settings]
        self._tasks: Final[list[asyncio.Task[None]]] = []
        for bridge in self._bridges:
            container.bridges[bridge.status.name] = bridge.status

    def start(self) -> None:
        """Begin to move messages."""
        for bridge in self._bridges:
            task = asyncio.get_running_loop().create_task(bridge.run())
            self._tasks.append(task)

    async def stop(self) -> None:
        """End the bridges: what they hold stays leased, and they go on after the next start."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()
