"""Threads that wait for the interpreter."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Event, Thread
from typing import Final

CALLS_MAX: Final = 100_000


def lets_another_thread_run(call: Callable[[], object]) -> bool:
    """Return whether a thread that waits for the interpreter gets it while `call` is repeated.

    Nothing else gives the interpreter up meanwhile.
    """
    asked, seen = Event(), list[int]()

    def run() -> None:
        asked.wait()
        seen.append(1)

    thread = Thread(target=run)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    try:
        asked.set()
        for _ in range(CALLS_MAX):
            call()
            if seen:
                break
        in_time = bool(seen)
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    return in_time
