"""A peer's connection: uvicorn's, with the patience and the manners of this broker.

Whoever says nothing is left after a while, and so is who takes nothing of what waits for him. A
response that cannot be finished ends without its last chunk, so that no client takes it for whole.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, Final, final

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from broker.http.limits import CONNECTIONS_MAX

SILENT: Final = logging.getLogger("broker.http")
SILENT.setLevel(logging.CRITICAL + 1)
"""What an operator should know goes to the broker's own log; strangers write no lines there."""

CONNECTION: Final = "connection"
"""By this name a request's scope has, in its state, the connection that it came on."""


@final
class Connection(H11Protocol):
    """One connection of the server of `config`, whose `timeout_keep_alive` is its patience."""

    def __init__(
        self,
        *,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self.logger = SILENT
        self.access_log = False
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.abort()
        else:
            self._begin_to_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering():
            self._wait_no_more()
        elif self._patience is None and not self.transport.is_closing():
            # the rest of a head; its first byte has stopped the timer between requests
            self._begin_to_wait()

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

    def _begin_to_wait(self) -> None:
        self._wait_no_more()
        self._patience = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
