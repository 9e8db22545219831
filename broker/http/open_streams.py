"""Streams of server-sent events that have no end: how many may be open, and how they are paced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, final

from broker.http.limits import EVENT_STREAMS_MAX, EVENT_STREAMS_PER_USER_MAX
from broker.http.user_counts import UserCounts
from broker.links.container import Container
from broker.management.request import BUSY, Refused

EVERY_S: Final = 1.0
"""Seconds between two looks for new events."""

SILENCE_MAX_S: Final = 15.0
"""Seconds after which a comment is sent, if there is no event: proxies end silent streams."""

MEDIA_TYPE: Final = "text/event-stream"

COMMENT: Final = b": no change\n\n"

NO_END: Final = -1
"""The number of events of a stream that its client ends."""


@final
class OpenStreams:
    """The streams of one broker."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container
        self._open: Final = UserCounts()

    def check_room(self, user: str) -> None:
        """Raise Refused if there are as many streams as there may be, in all or of `user`."""
        if self._open.total() >= EVENT_STREAMS_MAX:
            raise Refused(BUSY, f"{EVENT_STREAMS_MAX} streams are open; ask again later")
        if self._open.of(user) >= EVENT_STREAMS_PER_USER_MAX:
            text = f"{EVENT_STREAMS_PER_USER_MAX} streams of this user are open"
            raise Refused(BUSY, f"{text}; close one, or ask again later")

    async def sent(
        self,
        user: str,
        new_events: Callable[[], Awaitable[Sequence[bytes]]],
        may_go_on: Callable[[], bool],
        *,
        count: int = NO_END,
    ) -> AsyncIterator[bytes]:
        """Yield to `user` the events of `new_events`, once a second, while `may_go_on`.

        `may_go_on` asks who the client is by now. End with the broker, too, after `count` events,
        or when the client leaves. While a client does not read, no events are made for it, so
        nothing is kept.
        """
        with self._open.one(user):  # here: a stream that is never begun does not end, either
            async for event in _paced(new_events, lambda: self._is_running() and may_go_on()):
                yield event
                count -= event is not COMMENT
                if count == 0:
                    return

    def _is_running(self) -> bool:
        return not self._container.closing


async def _paced(
    new_events: Callable[[], Awaitable[Sequence[bytes]]], may_go_on: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield events, and a comment after a long silence."""
    loop = asyncio.get_running_loop()
    told_s = loop.time()
    while may_go_on():
        for event in await new_events():
            told_s = loop.time()
            yield event
        if loop.time() - told_s >= SILENCE_MAX_S:
            told_s = loop.time()
            yield COMMENT
        await asyncio.sleep(EVERY_S)
