"""The lag of the event loop: how late a timer is called."""

import asyncio
import time

import pytest

from broker.http.loop_lag import EVERY_S, LoopLag

BUSY_S = 0.05


@pytest.mark.requirement("OPS-04")
async def test_work_that_keeps_the_loop_busy_is_seen() -> None:
    lag = LoopLag()
    lag.start()
    loop = asyncio.get_running_loop()

    def busy() -> None:
        until_s = time.monotonic() + BUSY_S
        while time.monotonic() < until_s:
            pass

    # the work begins just before the timer is due
    loop.call_later(EVERY_S - 0.005, busy)
    measured = asyncio.Event()
    loop.call_later(EVERY_S + BUSY_S, measured.set)
    await measured.wait()
    lag.stop()
    assert int(lag.lag_us.total) >= (BUSY_S - 0.03) * 1_000_000


async def test_a_stopped_timer_is_not_called() -> None:
    lag = LoopLag()
    lag.start()
    lag.stop()
    lag.stop()
    assert sum(lag.lag_us.counts) == 0
