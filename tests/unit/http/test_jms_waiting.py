"""Waiting in requests, within limits: of the number of requests, of bodies, of times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack

import pytest
from starlette.requests import Request

from broker.amqp.limits import Limits
from broker.http import jms_waiting
from broker.http.jms_problems import JmsProblem
from broker.http.jms_waiting import (
    Committed,
    Disconnected,
    Waiting,
    arrival,
    body_of,
    preferred_wait,
    watched,
)
from broker.http.limits import (
    JMS_BODY_BYTES_MAX,
    JMS_BODY_MAX_MS,
    JMS_WAIT_MAX_S,
    JMS_WAITING_MAX,
    JMS_WAITING_PER_USER_MAX,
)
from tests.support.broker import Broker
from tests.support.stores import GatedStore

pytestmark = pytest.mark.requirement("MAP-09")


def request_of(pieces: Iterable[bytes], *, length: str | None = None, ends: bool = True) -> Request:
    """Return a request whose body arrives in `pieces`, and which then stays silent, or `ends`."""
    events = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    if ends:
        events.append({"type": "http.request", "body": b"", "more_body": False})

    async def arriving() -> AsyncIterator[dict[str, object]]:
        for event in events:
            yield event
        if not ends:
            await asyncio.Event().wait()
        yield {"type": "http.disconnect"}

    coming = arriving()
    headers = [] if length is None else [(b"content-length", length.encode())]
    return Request({"type": "http", "headers": headers, "method": "POST"}, coming.__anext__)


async def test_a_body_in_pieces() -> None:
    broker = Broker()
    assert await body_of(request_of([b"a", b"b"]), broker.container) == b"ab"
    assert broker.router.memory.unfinished == 0


@pytest.mark.attack("S9")
@pytest.mark.parametrize(
    ("pieces", "length"),
    [
        pytest.param([bytes(JMS_BODY_BYTES_MAX), b"x"], None, id="in pieces, JMS_BODY_BYTES_MAX"),
        pytest.param([], str(JMS_BODY_BYTES_MAX + 1), id="announced"),
        pytest.param([], "9" * 5000, id="with an endless number"),
        pytest.param([], "x", id="of no number"),
    ],
)
async def test_a_body_has_a_largest_size(pieces: list[bytes], length: str | None) -> None:
    broker = Broker()
    with pytest.raises(JmsProblem) as refused:
        await body_of(request_of(pieces, length=length), broker.container)
    assert (refused.value.status, refused.value.slug) == (413, "message-too-large")
    assert broker.router.memory.unfinished == 0


async def test_a_body_is_no_larger_than_a_message() -> None:
    broker = Broker(limits=Limits(max_message_size=10))
    with pytest.raises(JmsProblem, match="at most 10 bytes"):
        await body_of(request_of([bytes(11)]), broker.container)


@pytest.mark.attack("S9")
async def test_a_body_must_arrive_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert JMS_BODY_MAX_MS == 30_000
    monkeypatch.setattr(jms_waiting, "JMS_BODY_MAX_MS", 10)
    broker = Broker()
    with pytest.raises(JmsProblem) as refused:
        await body_of(request_of([b"a"], ends=False), broker.container)
    assert (refused.value.status, refused.value.slug) == (408, "body-too-slow")
    assert refused.value.headers == {"connection": "close"}


async def test_bodies_wait_for_memory() -> None:
    broker = Broker(memory_max=400)
    broker.router.memory.unfinished = 101
    with pytest.raises(JmsProblem) as refused:
        await body_of(request_of([b"a"]), broker.container)
    assert refused.value.status == 503


def test_a_user_has_only_so_many_waiting_requests() -> None:
    waiting = Waiting()
    with ExitStack() as entered:
        for _ in range(JMS_WAITING_PER_USER_MAX):
            entered.enter_context(waiting.one("ada"))
        with pytest.raises(JmsProblem, match="of this user wait") as refused, waiting.one("ada"):
            pass
        assert refused.value.status == 429
        with waiting.one("bob"):
            pass
    with waiting.one("ada"):
        pass


def test_all_users_have_only_so_many_waiting_requests() -> None:
    waiting = Waiting()
    with ExitStack() as entered:
        for number in range(JMS_WAITING_MAX):
            entered.enter_context(waiting.one(f"user {number}"))
        with pytest.raises(JmsProblem), waiting.one("another"):
            pass


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [
        (None, None),
        ("respond-async", None),
        ("wait=0", 0),
        ("respond-async, Wait = 10", 10),
        ('wait="5"; x=1', 5),
        (f"wait={JMS_WAIT_MAX_S}", JMS_WAIT_MAX_S),
    ],
)
def test_the_preferred_time(prefer: str | None, seconds: int | None) -> None:
    assert preferred_wait(prefer, JMS_WAIT_MAX_S) == seconds


@pytest.mark.parametrize("text", ["61", "-1", "", "x", "9" * 5000, "1.5"])
def test_a_time_that_is_not_allowed(text: str) -> None:
    with pytest.raises(JmsProblem, match="is 0 to 60 seconds"):
        preferred_wait(f"wait={text}", JMS_WAIT_MAX_S)


async def test_an_event_ends_the_waiting() -> None:
    happened = asyncio.Event()
    async with watched(request_of([], ends=False)) as gone:
        asyncio.get_running_loop().call_soon(happened.set)
        await arrival(happened, gone, 10)
        assert happened.is_set()
        await arrival(asyncio.Event(), gone, 0)


async def test_the_end_of_a_connection_ends_the_waiting() -> None:
    async with watched(request_of([])) as gone:
        with pytest.raises(Disconnected):
            await arrival(asyncio.Event(), gone, 10)


async def test_a_commit_is_awaited() -> None:
    store = GatedStore()
    broker = Broker(store=store)
    running = asyncio.get_running_loop().create_task(broker.journal.run(broker.container.run_round))
    committed = asyncio.get_running_loop().create_task(Committed(broker.journal).wait())
    broker.fill()
    broker.container.run_round()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not committed.done()
    for _ in range(20):
        store.let_all_through()
        await asyncio.sleep(0)
    assert committed.done()
    running.cancel()
