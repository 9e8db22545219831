"""The head of the audit's chain, as the log gets it."""

from __future__ import annotations

import asyncio

import pytest

from broker.audit import heads
from broker.audit.audit import Audit
from broker.audit.heads import HeadLog
from broker.audit.record import ChainLink

pytestmark = pytest.mark.requirement("OPS-11")


class Chain(Audit):
    """An audit with a chain that a test makes longer."""

    is_on = True

    def __init__(self) -> None:
        self.last: ChainLink | None = None

    def head(self) -> ChainLink | None:
        return self.last


def test_a_head_is_reported_once() -> None:
    chain, told = Chain(), list[str]()
    log = HeadLog(chain, told.append)
    log.report()
    assert told == [], "there is no record yet"
    chain.last = ChainLink(1, "ab")
    log.report()
    log.report()
    chain.last = ChainLink(2, "cd")
    log.report()
    assert told == ["1:ab", "2:cd"]


async def test_heads_are_reported_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "EVERY_S", 0.001)
    chain, told = Chain(), asyncio.Queue[str]()
    log = HeadLog(chain, told.put_nowait)
    log.start()
    async with asyncio.timeout(5):
        for number in (1, 2):
            chain.last = ChainLink(number, "ab")
            assert await told.get() == f"{number}:ab"
    log.stop()


async def test_an_audit_that_is_off_has_no_head() -> None:
    told = list[str]()
    log = HeadLog(Audit(), told.append)
    log.start()
    log.report()
    log.stop()
    assert told == []
