"""Accepts the TLS connections of one listener, within limits, on uvloop and asyncio alike.

The event loop's own server would begin a handshake with each connection that comes. So this one
accepts the sockets itself, waits for their first bytes, asks the gate, and performs the handshake
in a thread. Then the event loop gets the connection, with a TLS layer between.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from broker.net.accept_loop import AcceptLoop
from broker.net.handshake_failures import FailureReason, HandshakeFailure, failure_of
from broker.net.handshakes import HandshakeGate, HandshakeLimits
from broker.net.tls import TlsContexts
from broker.net.tls_handshake import TlsState, handshake
from broker.net.tls_transport import TlsTransport
from broker.security.turns import source_of
from broker.stats import Histogram

DISPLACE_EVERY_S: Final = 0.1
"""Seconds between two looks for a handshake that gives way, while a connection waits."""

MakeProtocol = Callable[[], asyncio.BaseProtocol]

HANDSHAKE_RECORD: Final = b"\x16"
"""First byte of every TLS connection (RFC 8446 5.1)."""


class Acceptor:
    """The listening sockets of one TLS listener, and its connections until their handshake ends.

    `make_protocol` is called after each successful handshake. `on_failure` is told of each
    connection that ended before, possibly thousands a second. `completed`, `failed` (by reason)
    and `refused` count them; a failure is in one of the last two. `took` gets the times, in µs, of
    successful handshakes.
    """

    def __init__(
        self,
        contexts: TlsContexts,
        make_protocol: MakeProtocol,
        *,
        on_failure: Callable[[HandshakeFailure], None],
        limits: HandshakeLimits | None = None,
        took: Histogram | None = None,
    ) -> None:
        self._contexts: Final = contexts
        self._make_protocol: Final = make_protocol
        self._on_failure: Final = on_failure
        self._took: Final = took
        self._limits: Final = limits or HandshakeLimits()
        self._gate: Final = HandshakeGate["_Pending"](self._limits)
        self._pending: Final[set[_Pending]] = set()
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._accepting: Final = AcceptLoop(self.admit)
        self._threads: Final = ThreadPoolExecutor(1, thread_name_prefix="tls-handshakes")
        self._look: asyncio.TimerHandle | None = None
        self.completed = 0
        self.refused = 0
        self.failed: Final[Counter[FailureReason]] = Counter()

    async def listen(self, host: str, port: int, *, backlog: int) -> int:
        """Accept connections on `host`. Return the port in use, which the kernel chooses for 0.

        Raises OSError if an address cannot be listened on.
        """
        return await self._accepting.listen(host, port, backlog=backlog)

    def pending(self) -> int:
        """Return the number of connections whose handshake has not ended."""
        return len(self._pending)

    def stop_accepting(self) -> None:
        """Close the listening sockets, and the connections whose handshake has not ended."""
        self._accepting.close()
        for pending in list(self._pending):
            self._cut(pending, FailureReason.STOPPED)
        self._stop_looking()

    async def ended(self) -> None:
        """Wait until no handshake runs any more, after `stop_accepting`: a turn of the loop."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._threads.shutdown(wait=False)

    # -- accept

    def admit(
        self, accepted: socket.socket, host: str, make_protocol: MakeProtocol | None = None
    ) -> None:
        """Let an accepted socket of the client `host` wait for its handshake.

        `make_protocol` is called after it, in place of that of the acceptor.
        """
        loop = asyncio.get_running_loop()
        pending = _Pending(accepted, host, make_protocol or self._make_protocol)
        self._pending.add(pending)
        displaced = self._gate.admit(pending, source_of(host))
        if displaced is not None:
            self._cut(displaced, FailureReason.REFUSED)
            self._begin()
        self._set_deadline(pending)
        loop.add_reader(accepted, self._first_bytes, pending)

    def _first_bytes(self, pending: _Pending) -> None:
        """Let a connection whose first bytes have arrived wait for its handshake."""
        asyncio.get_running_loop().remove_reader(pending.accepted)
        pending.is_silent = False
        try:
            first = pending.accepted.recv(1, socket.MSG_PEEK)
        except OSError:
            first = b""
        if first != HANDSHAKE_RECORD:
            self._cut(pending, FailureReason.NOT_TLS if first else FailureReason.CLOSED)
            return
        self._gate.mark_readable(pending)
        self._begin()
        if pending.task is None:  # it waits for its turn
            self._set_deadline(pending)

    def _set_deadline(self, pending: _Pending) -> None:
        """Give a connection the time of its next stage, in place of what is left of the last."""
        if pending.deadline is not None:
            pending.deadline.cancel()
        loop = asyncio.get_running_loop()
        pending.deadline = loop.call_later(self._limits.seconds, self._time_out, pending)

    # -- handshakes

    def _begin(self) -> None:
        """Begin the handshakes that may begin, and look after running ones if others wait."""
        loop = asyncio.get_running_loop()
        while (pending := self._gate.begin(loop.time())) is not None:
            self._set_deadline(pending)
            pending.began_s = loop.time()
            pending.task = loop.create_task(self._handshake(pending))
            self._tasks.add(pending.task)
            pending.task.add_done_callback(self._tasks.discard)
        if self._look is None and self._gate.is_waiting():
            self._look = loop.call_later(DISPLACE_EVERY_S, self._displace)

    def _displace(self) -> None:
        self._look = None
        now_s = asyncio.get_running_loop().time()
        while (displaced := self._gate.displace(now_s)) is not None:
            self._cut(displaced, FailureReason.REFUSED)
            self._begin()
        self._begin()

    def _stop_looking(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    async def _handshake(self, pending: _Pending) -> None:
        try:
            state = await handshake(pending.accepted, self._contexts.front(), self._threads)
        except OSError as error:
            pending.accepted.close()
            if pending in self._pending:
                self._fail(pending, failure_of(error, pending.host))
                self._begin()
            return
        if pending not in self._pending:  # it was cut meanwhile
            pending.accepted.close()
            return
        self.completed += 1
        if self._took is not None:
            took_s = asyncio.get_running_loop().time() - pending.began_s
            self._took.observe(int(took_s * 1_000_000))
        self._release(pending)
        self._begin()
        await self._hand_over(pending, state)

    async def _hand_over(self, pending: _Pending, state: TlsState) -> None:
        """Let the event loop serve a connection whose handshake has succeeded."""
        loop, protocol = asyncio.get_running_loop(), pending.make_protocol()
        await loop.connect_accepted_socket(lambda: TlsTransport(state, protocol), pending.accepted)

    # -- ends

    def _time_out(self, pending: _Pending) -> None:
        self._cut(pending, FailureReason.TIMEOUT)
        self._begin()

    def _cut(self, pending: _Pending, reason: FailureReason) -> None:
        """End a connection whose handshake has not ended."""
        if pending not in self._pending:
            return
        if pending.is_silent:
            asyncio.get_running_loop().remove_reader(pending.accepted)
        if pending.task is None:
            pending.accepted.close()
        else:
            # its task sees the end of the socket, and closes it
            with contextlib.suppress(OSError):  # the client has closed it already
                pending.accepted.shutdown(socket.SHUT_RDWR)
        self._fail(pending, HandshakeFailure(reason, pending.host))

    def _fail(self, pending: _Pending, failure: HandshakeFailure) -> None:
        self._release(pending)
        if failure.reason is FailureReason.REFUSED:
            self.refused += 1
        else:
            self.failed[failure.reason] += 1
        self._on_failure(failure)

    def _release(self, pending: _Pending) -> None:
        self._pending.discard(pending)
        self._gate.leave(pending)
        if pending.deadline is not None:
            pending.deadline.cancel()
            pending.deadline = None


class _Pending:
    """An accepted connection of `host` before its handshake has ended; `task` performs that."""

    __slots__ = ("accepted", "began_s", "deadline", "host", "is_silent", "make_protocol", "task")

    def __init__(self, accepted: socket.socket, host: str, make_protocol: MakeProtocol) -> None:
        self.accepted = accepted
        self.host = host
        self.make_protocol = make_protocol
        self.is_silent = True
        self.began_s = 0.0
        self.deadline: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None
