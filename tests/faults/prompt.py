"""A client whose messages are consumed before they would be written: traffic without commits."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from broker.amqp.performatives import Close, Flow
from tests.conformance.frames import Disposition, Transfer, frame, read_frame
from tests.support.frames import attach_receiver, attach_sender, flow, message
from tests.support.socket_client import SocketClient

CREDIT: Final = 2**20
PACE_S: Final = 0.01
"""Seconds between two messages: a broker that waits for a commit grants no more credit, and what
there is must last for some seconds."""

QUIET_S: Final = 1.0
"""Seconds without a frame after which the broker counts as silent."""


class PromptClient:
    """Sends durable messages to itself, one after another, and accepts each at once.

    `heard_s` is the time of the last delivery or outcome, on the clock of `time.monotonic`.
    """

    def __init__(self, client: SocketClient) -> None:
        self._client: Final = client
        self.heard_s = 0.0
        self.rounds = 0

    async def attach(self, address: str) -> None:
        """Open a connection, a session and both links."""
        client = self._client
        await client.open("prompt")
        await client.begin()
        client.send(
            attach_sender(name="out", handle=0, address=address),
            attach_receiver(name="in", handle=1, address=address),
            flow(handle=1, credit=CREDIT, delivery_count=0, incoming_window=CREDIT),
        )
        while True:
            body = read_frame(await client.frame()).body
            if isinstance(body, Flow) and body.handle == 0 and body.link_credit > 0:
                return

    async def run_until_silent(self, quiet_s: float = QUIET_S) -> None:
        """Go on until the broker sends nothing for `quiet_s`, or ends the connection."""
        try:
            while True:
                await asyncio.wait_for(self._round(), quiet_s)
                await asyncio.sleep(PACE_S)
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            return

    async def _round(self) -> None:
        """Send a message; accept its delivery, and wait for its outcome."""
        number = self.rounds
        tag = b"%d" % number
        sent = Transfer(delivery_id=number, tag=tag, payload=message(b"x", durable=True))
        self._client.send_bytes(frame(sent))
        delivered = accepted = False
        while not (delivered and accepted):
            body = read_frame(await self._client.frame()).body
            if isinstance(body, Transfer):
                delivered = True
                assert body.delivery_id is not None, "each message is one frame"
                self._client.send_bytes(frame(Disposition(first=body.delivery_id)))
                self.heard_s = time.monotonic()
            elif isinstance(body, Disposition):
                accepted = True
                self.heard_s = time.monotonic()
            elif isinstance(body, Close):
                self._client.send(Close())
                raise ConnectionError("the broker has closed the connection")
        self.rounds += 1
