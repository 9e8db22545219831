"""Batches on their way: what becomes of messages that the other broker refuses, and of a COMMIT."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.encode import BytesWriter
from broker.amqp.errors import MESSAGE_SIZE_EXCEEDED
from broker.amqp.frames import put_frame
from broker.amqp.outcomes import Error
from broker.amqp.performatives import Close, End, Performative
from broker.bridge import moving
from broker.embedding import Broker
from broker.links.bridge_status import RUNNING, WAITING
from tests.support.bridges import bridge_to, of_another_kind, status_of, store_in
from tests.support.cut_proxy import CutLink, PortProxy
from tests.support.embedded import port_of, put, waiting


class LosesAnAnswer(PortProxy):
    """Loses what follows the first request with `text`, and accepts no other connection then."""

    text = b"COMMIT"
    has_lost = False

    def see_request(self, link: CutLink, data: bytes) -> bytes:
        if self.text in data and not self.has_lost:
            self.has_lost = self.lose_answers = True
            self.refuse()
        return super().see_request(link, data)


@pytest.mark.requirement("BRG-01", "BRG-05")
async def test_a_refused_message_of_a_committed_batch_is_kept(tmp_path: Path) -> None:
    """The answer to COMMIT is lost, and then the other broker takes larger messages."""
    large = b"x" * 2000
    store = store_in(tmp_path, "sqlite", "b")
    async with AsyncExitStack() as first:
        there = await first.enter_async_context(Broker(store=store, max_message_size=1000))
        port = port_of(there)
        async with LosesAnAnswer(port) as proxy:
            url, place = f"amqp://127.0.0.1:{proxy.port}", proxy.port
            async with Broker(bridge=[bridge_to(url)]) as here:
                put(here, "q", b"small", large, durable=True)
                await proxy.lost.wait()
                await first.aclose()
                async with Broker(store=store, port=port) as there:
                    proxy.cut()
                    await proxy.listen(place)
                    await here.until(lambda: status_of(here).moved == 1)
                    await there.until(lambda: waiting(there, "there") == [b"small"])
                    assert waiting(here, "DLQ") == [large]
                    assert status_of(here).refused == 1


class Withholds(PortProxy):
    """Withholds the first request with each of `texts`, and the end of a COMMIT's connection.

    `withheld` has the requests, with their connections.
    """

    texts = (b"COMMIT", b"FORGET")

    def __init__(self, target: int) -> None:
        super().__init__(target)
        self.withheld: Final[dict[bytes, tuple[CutLink, bytes]]] = {}

    def see_request(self, link: CutLink, data: bytes) -> bytes:
        for text in self.texts:
            if text in data and text not in self.withheld:
                self.withheld[text] = link, data
                link.is_held = text == b"COMMIT"
                return b""
        return super().see_request(link, data)

    def release(self, text: bytes) -> None:
        link, data = self.withheld[text]
        link.far[1].write(data)


@pytest.mark.requirement("BRG-01")
async def test_a_commit_that_comes_late_has_no_messages_that_have_returned(tmp_path: Path) -> None:
    """The bridge has another source by then, and its former messages are in their queue again."""
    store = store_in(tmp_path, "sqlite", "a")
    async with Broker() as there, Withholds(port_of(there)) as proxy:
        url = f"amqp://127.0.0.1:{proxy.port}"
        async with Broker(store=store, bridge=[bridge_to(url)]) as here:
            put(here, "q", b"a", b"b", durable=True)
            await here.until(lambda: b"COMMIT" in proxy.withheld)
        async with Broker(store=store, bridge=[bridge_to(url, **{"from": "r"})]) as here:
            await here.until(lambda: b"FORGET" in proxy.withheld)
            proxy.lost = asyncio.Event()
            proxy.release(b"COMMIT")
            await proxy.lost.wait()  # the answer to COMMIT
            proxy.release(b"FORGET")
            await here.until(lambda: status_of(here).state == RUNNING)
            assert waiting(here, "q") + waiting(there, "there") == [b"a", b"b"]


class HidesTheLimit(PortProxy):
    """Shows a larger max-message-size than that of the broker behind it, which is 1000.

    `end` is the frame that it passes on instead of a detach for a message that is too large.
    """

    end: Performative | None = None

    def see_answer(self, link: CutLink, data: bytes) -> bytes:
        if self.end is not None and MESSAGE_SIZE_EXCEEDED.encode() in data:
            out = BytesWriter()
            put_frame(out, 0, self.end)
            data = out.getvalue()
        stated, shown = b"\x80" + (1000).to_bytes(8), b"\x80" + (10**9).to_bytes(8)
        return super().see_answer(link, data.replace(stated, shown))


TOO_LARGE = Error(condition=MESSAGE_SIZE_EXCEEDED, description="too large")
ENDS = [
    pytest.param(None, id="the link"),
    pytest.param(End(error=TOO_LARGE), id="the session"),
    pytest.param(Close(error=TOO_LARGE), id="the connection"),
]


@pytest.mark.parametrize("is_of_this_kind", [True, False])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.requirement("BRG-05")
async def test_a_message_for_which_the_other_broker_ends_a_link_or_more_is_found(
    end: Performative | None, is_of_this_kind: bool, tmp_path: Path
) -> None:
    file, large = tmp_path / "credentials", b"x" * 2000
    async with AsyncExitStack() as stack:
        users = {"ann": "right-password"}
        there = await stack.enter_async_context(Broker(max_message_size=1000, users=users))
        if not is_of_this_kind:
            stack.enter_context(of_another_kind(there))
        proxy = await stack.enter_async_context(HidesTheLimit(port_of(there)))
        proxy.end = end
        bridge = bridge_to(f"amqp://127.0.0.1:{proxy.port}", credentials_file=str(file))
        here = await stack.enter_async_context(Broker(bridge=[bridge]))
        put(here, "q", b"1", b"2", large, b"3")
        file.write_text("ann:right-password")
        status = status_of(here)
        status.control.resume()
        await here.until(lambda: status.moved == 3, within_s=10)
        assert waiting(here, "DLQ") == [large]
        assert list(dict.fromkeys(waiting(there, "there"))) == [b"1", b"2", b"3"]
        assert (len(waiting(there, "there")) == 3) or not is_of_this_kind
        assert status.refused == 1


UNANSWERED = [
    # a part of the request, a part of the reason
    (b"COMMIT", "no answer of the other broker to COMMIT"),
    (b"bridge-batch-1", "no answer to the attach"),
]


@pytest.mark.parametrize(("text", "said"), UNANSWERED)
@pytest.mark.requirement("BRG-06")
async def test_a_request_without_an_answer_ends_the_attempt(
    text: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "ANSWER_S", 0.05)
    async with (
        Broker() as there,
        LosesAnAnswer(port_of(there)) as proxy,
        Broker(bridge=[bridge_to(f"amqp://127.0.0.1:{proxy.port}")]) as here,
    ):
        proxy.text = text
        put(here, "q", b"a")
        status = status_of(here)
        await here.until(lambda: status.state == WAITING)
        assert said in status.error


@pytest.mark.requirement("BRG-05")
async def test_a_message_that_the_target_never_holds_is_found() -> None:
    large = b"x" * 3000
    small = {"pattern": "there", "max_bytes": 1000, "full": "reject"}
    async with Broker(address=[small]) as there, Broker(bridge=[bridge_to(there)]) as here:
        put(here, "q", b"1", large, b"2")
        await here.until(lambda: status_of(here).moved == 2)
        assert waiting(there, "there") == [b"1", b"2"]
        assert waiting(here, "DLQ") == [large]
