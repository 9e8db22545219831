"""A network that loses the connections of a client in the middle of its messages."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar
from urllib.parse import urlsplit

from tests.support.cut_proxy import CutLink, PortProxy

CUT_AT: Final = 60_000
"""Bytes in one direction of a connection at which it is cut."""


Proxy = TypeVar("Proxy", bound=PortProxy)


class LosingProxy(PortProxy):
    """A proxy that cuts the first `cuts` connections with `cut_at` bytes in either direction.

    When the client has sent a third of them, it gets nothing more; and it is not cut before the
    broker has answered. So the broker has messages of which the client has not heard.
    """

    def __init__(self, target: int, cuts: int, cut_at: int) -> None:
        super().__init__(target)
        self.cuts = cuts
        self._cut_at: Final = cut_at
        self._requested: Final[Counter[CutLink]] = Counter()
        self._answered: Final[Counter[CutLink]] = Counter()
        self._withheld: Final[Counter[CutLink]] = Counter()

    def see_request(self, link: CutLink, data: bytes) -> bytes:
        self._requested[link] += len(data)
        self._cut_if_due(link)
        return data

    def see_answer(self, link: CutLink, data: bytes) -> bytes:
        is_withheld = self.cuts > 0 and self._requested[link] > self._cut_at // 3
        (self._withheld if is_withheld else self._answered)[link] += len(data)
        self._cut_if_due(link)
        return b"" if is_withheld else data

    def _cut_if_due(self, link: CutLink) -> None:
        is_silent = self._withheld[link] > 0 and self._requested[link] > self._cut_at
        if self.cuts > 0 and (is_silent or self._answered[link] > self._cut_at):
            self.cuts -= 1
            link.abort()


@contextmanager
def losing(url: str, cuts: int, *, cut_at: int = CUT_AT) -> Iterator[tuple[str, LosingProxy]]:
    """Run a proxy before the broker at `url`; yield its URL, and the proxy."""
    with proxied(url, lambda port: LosingProxy(port, cuts, cut_at)) as found:
        yield found


@contextmanager
def proxied(url: str, make: Callable[[int], Proxy]) -> Iterator[tuple[str, Proxy]]:
    """Run the proxy that `make` returns for the port of the broker at `url`."""
    parts = urlsplit(url)
    assert parts.port is not None
    proxy = make(parts.port)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(proxy.listen(0), loop).result()
        yield f"{parts.scheme}://127.0.0.1:{proxy.port}", proxy
    finally:
        asyncio.run_coroutine_threadsafe(proxy.__aexit__(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
