"""Runs of the harness' cases, several at once: each has connections and addresses of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from tests.conformance.conftest import ADDRESSES
from tests.conformance.harness import Case, Result, judge
from tests.conformance.verdict import Options
from tests.interop.broker_process import PASSWORD, USER

AT_ONCE: Final = 8
"""Cases that run at a time: most of their time is spent in waiting for what does not come."""


def options(port: int, *, timeout_s: float, restart: str | None = None) -> Options:
    """Return options with which every case has something to try on a broker of this machine.

    The addresses are those of the settings in `tests/conformance/conftest.py`.
    """
    return Options(
        "127.0.0.1",
        port,
        user=USER,
        password=PASSWORD,
        **ADDRESSES,
        timeout_s=timeout_s,
        strict_jms=True,
        restart=restart,
    )


async def judge_together(cases: Sequence[Case], options: Options) -> list[Result]:
    """Run cases, AT_ONCE at a time; return their results in the order of the cases."""
    places = asyncio.Semaphore(AT_ONCE)

    async def judged(each: Case) -> Result:
        async with places:
            return await judge(each, options)

    return await asyncio.gather(*(judged(each) for each in cases))
