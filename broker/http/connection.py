"""A client's HTTP connection: uvicorn's, with the timeouts of this broker.

A connection is aborted if its client sends no request, or does not read pending output, for a set
time. A response that cannot be finished ends without its last chunk, so that the client does not
take it for complete. `admission.py` decides which connections are admitted.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any, Final, final

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from broker.http.admission import Seat, admit
from broker.http.limits import HEAD_MAX_MS
from broker.net.certificate_name import certificate_name
from broker.security.authenticate import is_loopback
from broker.security.entrance import HTTP, Entrance
from broker.security.turns import source_of

SILENT: Final = logging.getLogger("broker.http")
SILENT.setLevel(logging.CRITICAL + 1)
"""Replaces uvicorn's logger, so that clients cannot cause log lines.

Events that an operator needs are in the broker's own log.
"""

CONNECTION: Final = "connection"
"""Key of the request's HttpConnection in the state of its ASGI scope."""

LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})

TWO_LENGTHS: Final = "a request has Content-Length or Transfer-Encoding, not both"


@final
class RequestParser(h11.Connection):
    """h11's parser; it also refuses a request with two lengths, as RFC 9112 (6.3) allows.

    A proxy may have taken the other length, so that it is of another opinion on where the next
    request begins (request smuggling).
    """

    has_two_lengths = False

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.has_two_lengths = {name for name, _ in event.headers} >= LENGTHS
            if self.has_two_lengths:
                raise h11.RemoteProtocolError(TWO_LENGTHS)
        return event


@final
class HttpConnection(H11Protocol):
    """One connection. `config.timeout_keep_alive` is its timeout in s while idle or blocked.

    `gives_way`: it sends the form of a login, and may be displaced as if it had sent no request.
    """

    gives_way = False

    def __init__(
        self,
        *,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        crowded: Callable[[str], None],
    ) -> None:
        """`crowded` gets the source for which a connection was dropped or not admitted."""
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        head_bytes_max = config.h11_max_incomplete_event_size
        assert head_bytes_max is not None  # `server.py` sets it
        self.conn: RequestParser = RequestParser(h11.SERVER, head_bytes_max)
        self.logger = SILENT
        self.access_log = False
        self._patience: asyncio.TimerHandle | None = None
        self._waiting_since = self.loop.time()
        self._host = ""
        self.entrance = Entrance(listener=HTTP, kind=HTTP, host="")
        self._crowded: Final = crowded

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._host = self.client[0] if self.client else ""
        encrypted = transport.get_extra_info("ssl_object")
        self.entrance = Entrance(
            listener=HTTP,
            kind=HTTP,
            host=self._host,
            is_tls=encrypted is not None,
            certificate_name=certificate_name(encrypted),
        )
        others = [each for each in self.connections if isinstance(each, HttpConnection)]
        judged = admit(
            source_of(self._host),
            is_local=is_loopback(self._host),
            present=[each.seat() for each in others if each is not self],
        )
        if judged.displaced is not None:
            judged.displaced.drop()
        if judged.admitted:
            self._await_head()
        else:
            self.drop()
        if judged.displaced is not None or not judged.admitted:
            self._crowded(source_of(self._host))

    def seat(self) -> Seat[HttpConnection]:
        """Return the facts about this connection that admission depends on."""
        is_answering = self._is_answering() and not self.gives_way
        is_busy = is_answering or self.transport.get_write_buffer_size() > 0
        return Seat(
            connection=self,
            source=source_of(self._host),
            is_local=is_loopback(self._host),
            waiting_since=None if is_busy else self._waiting_since,
        )

    def drop(self) -> None:
        """Abort the connection at once, and remove it from the open connections."""
        self.connections.discard(self)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering():
            self._wait_no_more()
        elif self._patience is None and not self.transport.is_closing():
            # part of a head; uvicorn stopped its timer for idle connections at the first byte
            self._await_head()

    def on_response_complete(self) -> None:
        self._waiting_since = self.loop.time()
        super().on_response_complete()
        begun, _ = self.conn.trailing_data
        if begun and not self._is_answering() and not self.transport.is_closing():
            # part of the next head arrived while this response was being sent
            self._await_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._begin_to_wait()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._wait_no_more()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - as uvicorn calls it
        limit = self.config.h11_max_incomplete_event_size
        told = f"no HTTP request; the head of one has at most {limit} bytes"
        if self.conn.has_two_lengths:
            told = TWO_LENGTHS
        headers = [("content-type", "application/json"), ("connection", "close")]
        body = json.dumps({"error": told}).encode()
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self._close()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def break_off(self) -> None:
        """Close the connection in the middle of a response, after the bytes written so far."""
        if not self.transport.is_closing():
            self._close()

    def cut_off(self) -> None:
        """Abort the connection if a response is being sent. Called when the server stops."""
        if self._is_answering():
            self.transport.abort()

    def _close(self) -> None:
        """Close after the pending output; abort if the client does not read that in time."""
        self.transport.close()
        self._begin_to_wait()

    def _await_head(self) -> None:
        """Start the timeout for a request's head: HEAD_MAX_MS, or the idle timeout if shorter."""
        self._begin_to_wait(min(HEAD_MAX_MS / 1000, self.timeout_keep_alive))

    def _begin_to_wait(self, patience_s: float | None = None) -> None:
        self._wait_no_more()
        if patience_s is None:
            patience_s = self.timeout_keep_alive
        self._patience = self.loop.call_later(patience_s, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
