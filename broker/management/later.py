"""Answers that have to be waited for: what the store must be asked about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Final

from broker.management.response import Response

LATER_MAX: Final = 64
"""Requests that may wait for the store at a time; one connection answers them all."""

Spawn = Callable[[Coroutine[None, None, None]], None]
"""Lets something run beside everything else; whoever stops the broker waits for it."""


@dataclass(frozen=True)
class Later:
    """A response that somebody has to wait for."""

    answer: Callable[[], Awaitable[Response]]


class Told:
    """The response comes some time after this, by `Caller.tell`."""
