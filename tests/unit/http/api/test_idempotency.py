"""A request with a key is carried out once, whoever sends it again."""

import asyncio

import pytest

from broker.http.api import idempotency
from broker.http.api.endpoint import CallResult
from broker.http.api.idempotency import KEPT_MS, Idempotency, purpose_of
from broker.http.api.problems import Failure

pytestmark = pytest.mark.requirement("OPS-01")

PURPOSE = purpose_of("ada", "/x", "k")


class Work:
    """Counts how often it is done."""

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self.done = 0
        self.keys = Idempotency(lambda: self.now_ms)

    async def do(self) -> CallResult:
        self.done += 1
        return CallResult(status=202, body=self.done)

    async def ask(self, purpose: idempotency.Purpose = PURPOSE, body: bytes = b"{}") -> object:
        return (await self.keys.answer(purpose, body, self.do)).body


async def test_the_same_request_has_the_same_answer() -> None:
    work = Work()
    assert [await work.ask(), await work.ask()] == [1, 1]


@pytest.mark.parametrize(
    "purpose",
    [purpose_of("bob", "/x", "k"), purpose_of("ada", "/y", "k"), purpose_of("ada", "/x", "l")],
)
async def test_another_user_path_or_key_is_another_request(purpose: idempotency.Purpose) -> None:
    work = Work()
    assert [await work.ask(), await work.ask(purpose)] == [1, 2]


async def test_another_body_is_refused() -> None:
    work = Work()
    await work.ask()
    with pytest.raises(Failure, match="another body") as caught:
        await work.ask(body=b"[]")
    assert caught.value.status == 422


async def test_a_request_that_is_carried_out_is_not_begun_again() -> None:
    work, gate = Work(), asyncio.Event()

    async def slow() -> CallResult:
        await gate.wait()
        return CallResult(body="slow")

    first = asyncio.ensure_future(work.keys.answer(PURPOSE, b"", slow))
    await asyncio.sleep(0)
    with pytest.raises(Failure, match="is carried out now") as caught:
        await work.ask(body=b"")
    gate.set()
    assert ((await first).body, caught.value.status) == ("slow", 409)


async def test_a_failure_is_not_remembered() -> None:
    work = Work()

    async def fail() -> CallResult:
        raise Failure(503, "later")

    with pytest.raises(Failure):
        await work.keys.answer(PURPOSE, b"{}", fail)
    assert await work.ask() == 1


async def test_a_response_is_forgotten_in_time() -> None:
    work = Work()
    await work.ask()
    work.now_ms = KEPT_MS
    assert await work.ask() == 2


async def test_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "KEPT_MAX", 2)
    work = Work()
    for key in "abc":
        await work.ask(purpose_of("ada", "/x", key))
    assert [await work.ask(purpose_of("ada", "/x", key)) for key in "ca"] == [3, 4]


@pytest.mark.parametrize("key", ["", "x" * 256, "\u00e4", "a\tb"])
def test_a_key_is_short_and_printable(key: str) -> None:
    with pytest.raises(Failure, match="Idempotency-Key must have"):
        purpose_of("ada", "/x", key)
