"""A proxy that simulates faults between a broker and its database.

It loses answers or requests, of all sessions or of some, and cuts connections.
"""

from __future__ import annotations

import asyncio
from typing import Final

from tests.support.cut_proxy import CutLink, CutProxy, Streams
from tests.support.postgres import Server

AUTHENTICATED: Final = b"K"
"""Type of the message that contains the process id of a client's session."""

APPLICATION: Final = b"application_name\0"
"""Name of the parameter of a client's first message with which it names its session."""


class Proxy(CutProxy):
    """A local port that forwards to the server's socket.

    If it `pools`, clients see process ids that are not the server's, as with a pooler. A session
    whose name begins with one of `held` is held from its next byte on. A session that sends
    `hold_behind` is held behind these bytes: `held_one` is set then.
    """

    def __init__(self, server: Server, *, pools: bool = False) -> None:
        super().__init__()
        self._server: Final = server
        self._pools: Final = pools
        self._names: Final[dict[CutLink, bytes]] = {}
        self.held: Final[set[bytes]] = set()
        self.hold_behind = b""
        self.held_one: Final = asyncio.Event()

    def url(self, database: str) -> str:
        return self._server.url(database, host=f"127.0.0.1:{self.port}")

    async def reach(self) -> Streams:
        return await asyncio.open_unix_connection(self._server.socket)

    def hold(self, name: bytes) -> None:
        """Hold all sessions whose name begins with `name`, those of later connections too."""
        self.held.add(name)
        for link, found in self._names.items():
            link.is_held = link.is_held or found.startswith(name)

    def release(self) -> None:
        """Reset the sessions that are held; hold none any more."""
        self.held.clear()
        for link in [each for each in self._names if each.is_held]:
            link.abort()
            del self._names[link]

    def cut(self) -> None:
        """Reset every connection; later ones are forwarded without loss again."""
        super().cut()
        self._names.clear()
        self.held.clear()
        self.hold_behind = b""
        self.held_one.clear()

    def see_request(self, link: CutLink, data: bytes) -> bytes:
        """Learn the session's name from its first message; hold the session if it is time to."""
        at = data.find(APPLICATION)
        if link not in self._names and at >= 0:
            name = data[at + len(APPLICATION) :].partition(b"\0")[0]
            self._names[link] = name
            link.is_held = any(name.startswith(held) for held in self.held)
        if self.hold_behind and self.hold_behind in data:
            self.hold_behind = b""
            link.is_held = True
            self.held_one.set()
        return data

    def see_answer(self, link: CutLink, data: bytes) -> bytes:  # noqa: ARG002 - of all links
        """Return an answer, perhaps with another process id."""
        return _with_another_process(data) if self._pools else data


def _with_another_process(data: bytes) -> bytes:
    """Return the greeting with another process id, as from a pooler."""
    at = data.find(AUTHENTICATED + (12).to_bytes(4))
    return data if at < 0 else data[: at + 5] + (4711).to_bytes(4) + data[at + 9 :]
