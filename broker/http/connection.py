"""A peer's connection: uvicorn's, with the patience and the manners of this broker.

Whoever says nothing is left after a while, and so is who takes nothing of what waits for him. A
response that cannot be finished ends without its last chunk, so that no client takes it for whole.
Who may connect is for `admission.py` to say.
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
from broker.security.authenticate import is_loopback
from broker.security.turns import source_of

SILENT: Final = logging.getLogger("broker.http")
SILENT.setLevel(logging.CRITICAL + 1)
"""What an operator should know goes to the broker's own log; strangers write no lines there."""

CONNECTION: Final = "connection"
"""By this name a request's scope has, in its state, the connection that it came on."""


@final
class HttpConnection(H11Protocol):
    """One connection of the server of `config`, whose `timeout_keep_alive` is its patience."""

    def __init__(
        self,
        *,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        crowded: Callable[[str], None],
    ) -> None:
        """`crowded` is told the source for which a connection was dropped or not admitted."""
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self.logger = SILENT
        self.access_log = False
        self._patience: asyncio.TimerHandle | None = None
        self._waiting_since = self.loop.time()
        self._host = ""
        self._crowded: Final = crowded

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._host = self.client[0] if self.client else ""
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
        """Return what admission judges this connection by."""
        is_busy = self._is_answering() or self.transport.get_write_buffer_size() > 0
        return Seat(
            connection=self,
            source=source_of(self._host),
            is_local=is_loopback(self._host),
            waiting_since=None if is_busy else self._waiting_since,
        )

    def drop(self) -> None:
        """End the connection at once, and count it no more."""
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
            # the rest of a head; its first byte has stopped the timer between requests
            self._await_head()

    def on_response_complete(self) -> None:
        self._waiting_since = self.loop.time()
        super().on_response_complete()
        begun, _ = self.conn.trailing_data
        if begun and not self._is_answering() and not self.transport.is_closing():
            # part of the next head came while this response was under way
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
        """End the connection in the middle of a response, behind what has been written of it."""
        if not self.transport.is_closing():
            self._close()

    def cut_off(self) -> None:
        """End it at once where a response is under way: the server stops."""
        if self._is_answering():
            self.transport.abort()

    def _close(self) -> None:
        """Close behind what is written. A peer that does not take that is not waited for."""
        self.transport.close()
        self._begin_to_wait()

    def _await_head(self) -> None:
        """Give a request's head its time, however it comes."""
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
