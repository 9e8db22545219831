"""A request with a key is carried out once, whoever sends it again."""

import asyncio
import json

import pytest

from broker.http.api import idempotency
from broker.http.api.endpoint import CallResult
from broker.http.api.idempotency import KEPT_MS, REPLAYED, Idempotency, Purpose, purpose_of
from broker.http.api.problems import Failure
from broker.security.identity import ADMIN, MONITOR, Identity

pytestmark = pytest.mark.requirement("OPS-01")


def of(user: str = "ada", path: str = "/x", key: str = "k", **login: object) -> Purpose:
    """Return the purpose of a request of a user, with what is special of its login."""
    identity = Identity(user, roles=frozenset({ADMIN}), **login)  # type: ignore[arg-type]
    return purpose_of(identity, path, key)


PURPOSE = of()


class Work:
    """Counts how often it is done."""

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self.done = 0
        self.keys = Idempotency(lambda: self.now_ms)

    async def do(self) -> CallResult:
        self.done += 1
        return CallResult(status=202, body=self.done)

    async def ask(self, purpose: Purpose = PURPOSE, body: bytes = b"{}") -> object:
        found = (await self.keys.answer(purpose, body, self.do)).body
        assert isinstance(found, bytes)
        return json.loads(found)


async def test_the_same_request_has_the_same_answer() -> None:
    work = Work()
    assert [await work.ask(), await work.ask()] == [1, 1]


@pytest.mark.parametrize(
    "purpose",
    [
        pytest.param(of("bob"), id="another user"),
        pytest.param(of(path="/y"), id="another path"),
        pytest.param(of(key="l"), id="another key"),
        pytest.param(of(limited_to=frozenset({MONITOR})), id="a token limited to a role"),
        pytest.param(of(scopes=("view:queue:a",)), id="a token with scopes"),
    ],
)
async def test_a_request_that_differs_is_another_one(purpose: Purpose) -> None:
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
        return CallResult(body=b"slow")

    first = asyncio.ensure_future(work.keys.answer(PURPOSE, b"", slow))
    await asyncio.sleep(0)
    with pytest.raises(Failure, match="is carried out now") as caught:
        await work.ask(body=b"")
    gate.set()
    assert ((await first).body, caught.value.status) == (b"slow", 409)


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
        await work.ask(of(key=key))
    assert [await work.ask(of(key=key)) for key in "ca"] == [3, 4]


@pytest.mark.attack("R9")
@pytest.mark.parametrize("body", [b"x" * 300, ["x" * 300]], ids=["encoded", "not yet encoded"])
async def test_so_many_bytes_are_remembered(monkeypatch: pytest.MonkeyPatch, body: object) -> None:
    monkeypatch.setattr(idempotency, "KEPT_BYTES_MAX", 1000)
    work = Work()

    async def large() -> CallResult:
        work.done += 1
        return CallResult(body=body)

    for key in "abcda":
        await work.keys.answer(of(key=key), b"", large)
    assert work.done == 5  # `a` was forgotten for `d`
    for key in "cda":
        assert REPLAYED in (await work.keys.answer(of(key=key), b"", large)).headers
    assert work.done == 5


@pytest.mark.parametrize("key", ["", "x" * 256, "\u00e4", "a\tb"])
def test_a_key_is_short_and_printable(key: str) -> None:
    with pytest.raises(Failure, match="Idempotency-Key must have"):
        of(key=key)
