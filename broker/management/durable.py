"""A wait for the store, by programs that await."""

from __future__ import annotations

import asyncio
from typing import Final

from broker.journal import Waiter


class Durable(Waiter):
    """Sets the event `happened` once all changes noted before it was submitted are durable."""

    def __init__(self) -> None:
        self.happened: Final = asyncio.Event()

    def committed(self) -> None:
        self.happened.set()
