"""Responses that are sent later, such as those that need an answer of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Final

from broker.management.response import Response

LATER_MAX: Final = 64
"""Maximum requests that wait for the store at a time; one connection to it serves them all."""

Spawn = Callable[[Coroutine[None, None, None]], None]
"""Runs a coroutine as a task of its own. A stopping broker waits for the task to end."""


@dataclass(frozen=True)
class Later:
    """A response to be awaited. `answer` starts the work; StoreError becomes status 500."""

    answer: Callable[[], Awaitable[Response]]


class Told:
    """Result of an operation that sends its response itself, through `Caller.tell`."""
