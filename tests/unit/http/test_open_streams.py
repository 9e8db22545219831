"""Streams of server-sent events: paced, counted, and ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from broker.http import open_streams
from broker.http.open_streams import COMMENT, OpenStreams
from broker.management.request import Refused
from tests.support.broker import Broker

pytestmark = pytest.mark.requirement("OPS-01")

ADA: Final = "ada"
BOB: Final = "bob"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let streams look for events all the time."""
    monkeypatch.setattr(open_streams, "EVERY_S", 0.0)


async def one() -> Sequence[bytes]:
    return [b"x"]


async def none() -> Sequence[bytes]:
    return []


async def test_a_stream_ends_after_its_count_or_without_leave() -> None:
    streams = OpenStreams(Broker().container)
    assert [each async for each in streams.sent(ADA, one, lambda: True, count=3)] == [b"x"] * 3
    looks = iter([True, True, False])
    assert [each async for each in streams.sent(ADA, one, lambda: next(looks))] == [b"x"] * 2


async def test_a_silent_stream_has_comments_which_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_streams, "SILENCE_MAX_S", 0.0)
    streams = OpenStreams(Broker().container)
    looks = iter([True, True, False])
    assert [each async for each in streams.sent(ADA, none, lambda: next(looks), count=1)] == [
        COMMENT,
        COMMENT,
    ]


async def test_there_are_only_so_many_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_streams, "EVENT_STREAMS_MAX", 1)
    streams = OpenStreams(Broker().container)
    unused = streams.sent(ADA, one, lambda: True)
    streams.check_room(ADA)  # a stream counts from its first event on
    async for _ in streams.sent(ADA, one, lambda: True, count=1):
        with pytest.raises(Refused, match="1 streams are open"):
            streams.check_room(ADA)
    streams.check_room(ADA)
    await unused.aclose()  # type: ignore[attr-defined]


async def test_one_user_leaves_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_streams, "EVENT_STREAMS_PER_USER_MAX", 1)
    streams = OpenStreams(Broker().container)
    async for _ in streams.sent(ADA, one, lambda: True, count=1):
        with pytest.raises(Refused, match="1 streams of this user are open"):
            streams.check_room(ADA)
        streams.check_room(BOB)
    streams.check_room(ADA)


async def test_streams_end_with_the_broker() -> None:
    broker = Broker()
    found: list[bytes] = []
    async for event in OpenStreams(broker.container).sent(ADA, one, lambda: len(found) < 3):
        found.append(event)
        broker.container.closing = True
    assert found == [b"x"]
