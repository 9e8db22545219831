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


READY: Final = b"Z\0\0\0\x05I"
"""The server's message behind each answer, outside of a transaction."""


class Session:
    """The state of one session through a proxy: its name, and whether it awaits an answer.

    If it `is_paused`, requests of the client wait, and it sees no answers.
    """

    def __init__(self, name: bytes) -> None:
        self.name: Final = name
        self.is_idle = False
        self.is_paused = False
        self.waiting = b""


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
        self._sessions: Final[dict[CutLink, Session]] = {}
        self.held: Final[set[bytes]] = set()
        self.hold_behind = b""
        self.held_one: Final = asyncio.Event()

    def url(self, database: str, *, host: str = "127.0.0.1") -> str:
        """Return the URL of a database; `host` is the address on which this proxy listens."""
        return self._server.url(database, host=f"{host}:{self.port}")

    async def reach(self) -> Streams:
        return await asyncio.open_unix_connection(self._server.socket)

    def hold(self, name: bytes) -> None:
        """Hold all sessions whose name begins with `name`, those of later connections too."""
        self.held.add(name)
        for link, session in self._sessions.items():
            link.is_held = link.is_held or session.name.startswith(name)

    def execute(self, name: bytes, statement: str) -> bool:
        """Execute a statement in the session of a client whose name begins with `name`.

        The client does not see the answer, and waits until `go_on`. Return False if no such session
        is idle now.
        """
        text = statement.encode() + b"\0"
        for link, session in self._sessions.items():
            if session.is_idle and session.name.startswith(name):
                session.is_idle, session.is_paused = False, True
                link.far[1].write(b"Q" + (len(text) + 4).to_bytes(4) + text)
                return True
        return False

    def go_on(self) -> None:
        """Forward the requests that wait behind a statement that was executed."""
        for link, session in self._sessions.items():
            if session.is_paused:
                session.is_paused = False
                link.far[1].write(session.waiting)
                session.waiting = b""

    def release(self) -> None:
        """Reset the sessions that are held; hold none any more."""
        self.held.clear()
        for link in [each for each in self._sessions if each.is_held]:
            link.abort()
            del self._sessions[link]

    def cut(self) -> None:
        """Reset every connection; later ones are forwarded without loss again."""
        super().cut()
        self._sessions.clear()
        self.held.clear()
        self.hold_behind = b""
        self.held_one.clear()

    def see_request(self, link: CutLink, data: bytes) -> bytes:
        """Learn the session's name from its first message; hold the session if it is time to."""
        session = self._sessions.get(link)
        at = data.find(APPLICATION)
        if session is None and at >= 0:
            name = data[at + len(APPLICATION) :].partition(b"\0")[0]
            session = self._sessions[link] = Session(name)
            link.is_held = any(name.startswith(held) for held in self.held)
        if session is not None:
            session.is_idle = False
            if session.is_paused:
                session.waiting += data
                return b""
        if self.hold_behind and self.hold_behind in data:
            self.hold_behind = b""
            link.is_held = True
            self.held_one.set()
        return data

    def see_answer(self, link: CutLink, data: bytes) -> bytes:
        """Return an answer, perhaps with another process id; nothing if the session is paused."""
        session = self._sessions.get(link)
        if session is not None:
            session.is_idle = data.endswith(READY)
            if session.is_paused:
                return b""
        return _with_another_process(data) if self._pools else data


def _with_another_process(data: bytes) -> bytes:
    """Return the greeting with another process id, as from a pooler."""
    at = data.find(AUTHENTICATED + (12).to_bytes(4))
    return data if at < 0 else data[: at + 5] + (4711).to_bytes(4) + data[at + 9 :]
