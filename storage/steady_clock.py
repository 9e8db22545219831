"""A clock that never jumps, and goes on while the machine sleeps or is moved by its host."""

from __future__ import annotations

import time
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux: a monotonic clock would stand still while a virtual machine is suspended."""


def steady_us() -> int:
    """Return µs since an arbitrary moment, the same for all processes of the machine."""
    return time.clock_gettime_ns(_CLOCK) // 1000
