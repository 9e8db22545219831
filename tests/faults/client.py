"""A client that works with frames, and records what it was told before its connection was lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from broker.amqp.decode import descriptor_at
from broker.amqp.descriptors import ATTACH, BEGIN, CLOSE, DETACH, DISPOSITION, FLOW, OPEN, TRANSFER
from broker.amqp.frames import AMQP_HEADER, body_at
from broker.amqp.outcomes import DeliveryState, Error, Modified, TransactionalState
from broker.amqp.performatives import Attach, Begin, Close, Detach, Flow, Open
from broker.amqp.terminus import Coordinator, Source, Target
from tests.conformance.frames import Body, Disposition, Transfer, frame, read_frame
from tests.faults.links import PATIENCE_S, WINDOW, Lost, Receiver, Refused, Sender, Transactions
from tests.support.frames import attach_receiver, attach_sender

FRAME_HEAD: Final = 64
"""Bytes of a frame that are reserved for everything before a transfer's payload."""


class Client:
    """A connection with one session. Methods that wait raise Lost once the connection is lost."""

    def __init__(
        self, port: int, container_id: str, *, idle_time_out: int = -1, frame_size: int = 2**15
    ) -> None:
        self._port: Final = port
        self._container_id: Final = container_id
        self._idle_time_out: Final = idle_time_out
        self._frame_max: Final = frame_size
        self._changed: Final = asyncio.Event()
        self._links: Final[dict[str, asyncio.Future[Attach | Error]]] = {}
        self._senders: Final[dict[int, Sender]] = {}
        self._receivers: Final[dict[int, Receiver]] = {}
        self._handles: Final[dict[int, str]] = {}
        self._unsettled: Final[dict[int, asyncio.Future[DeliveryState | None]]] = {}
        self._next_outgoing = 0
        self._next_delivery = 0
        self._next_incoming = 0
        self._window_end = 0
        self._begun = False
        self.lost = False
        self.error: Error | None = None
        self.detached: Final[list[Detach]] = []
        self.frames_heard = 0
        self.longest_silence_s = 0.0
        self._beat: asyncio.TimerHandle | None = None

    # -- life

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self._port, limit=2**20
        )
        self._heard_at = asyncio.get_running_loop().time()
        self._reading = asyncio.create_task(self._read())
        self._writer.write(AMQP_HEADER)
        self.say(Open(container_id=self._container_id, idle_time_out=self._idle_time_out))
        self.say(Begin(next_outgoing_id=0, incoming_window=WINDOW, outgoing_window=WINDOW))
        try:
            while not self._begun:
                await self.change()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.lost and kind is None:
            self.say(Close())
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._reading
            except TimeoutError:
                pass
        await self._end()

    async def _end(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        self._reading.cancel()
        self._writer.close()  # before any wait: if this call is cancelled, the socket is closed
        await asyncio.gather(self._reading, return_exceptions=True)
        with suppress(OSError):  # `_read` has recorded how the connection ended
            await self._writer.wait_closed()

    def abort(self) -> None:
        """Drop the connection without sending a close."""
        self._writer.transport.abort()

    async def ended(self, patience_s: float = PATIENCE_S) -> bool:
        """Wait up to `patience_s` seconds for the connection's end; return whether it ended."""
        done, _ = await asyncio.wait([self._reading], timeout=patience_s)
        return bool(done)

    async def change(self, patience_s: float = PATIENCE_S) -> None:
        """Wait up to `patience_s` seconds for frames.

        Without any, raise TimeoutError; just return if `patience_s` is less than PATIENCE_S. Raise
        Lost if the connection is lost.
        """
        if self.lost:
            raise Lost(str(self.error.condition if self.error else "cut off"))
        self._changed.clear()
        try:
            # not wait_for: that of Python 3.11 loses a cancellation that arrives together with the
            # frame
            async with asyncio.timeout(patience_s):
                await self._changed.wait()
        except TimeoutError:
            if patience_s >= PATIENCE_S:
                raise
        if self.lost:
            raise Lost(str(self.error.condition if self.error else "cut off"))

    # -- links

    async def sender(
        self,
        address: str,
        *,
        kind: str = "",
        name: str = "",
        target: Coordinator | None = None,
        properties: dict[str, object] | None = None,
    ) -> Sender:
        """Attach a link to `address`; raise Refused if the broker refuses it."""
        handle = len(self._links)
        attach = attach_sender(
            address,
            name=name or f"to-{address}-{handle}",
            handle=handle,
            kind=kind,
            target=target,
            properties=properties,
        )
        sender = self._senders[handle] = Sender(self, handle)
        await self._attach(attach)
        return sender

    async def transactions(self) -> Transactions:
        wanted = Coordinator(capabilities=["amqp:local-transactions"])
        return Transactions(await self.sender("", name="coordinator", target=wanted))

    async def receiver(
        self,
        address: str,
        *,
        credit: int = 100,
        subscription: str = "",
        source: Source | None = None,
        target: Target | None = None,
        name: str = "",
    ) -> Receiver:
        """Attach a link from `address`, or from the durable subscription `subscription` to it.

        Like links of JMS clients, it counts deliveries that are unsettled when it ends as failed.
        """
        handle = len(self._links)
        if source is None:
            source = Source(
                address=address,
                durable=2 if subscription else 0,
                expiry_policy="never" if subscription else "session-end",
                capabilities=["topic"] if subscription else [],
                default_outcome=Modified(delivery_failed=True),
            )
        chosen = name or subscription or f"from-{address}-{handle}"
        await self._attach(
            attach_receiver(address, name=chosen, handle=handle, source=source, target=target)
        )
        receiver = self._receivers[handle] = Receiver(self, handle, credit)
        return receiver

    async def unsubscribe(self, name: str) -> bool:
        """Look up the subscription and end it; return False if none was ended."""
        handle = len(self._links)
        try:
            await self._attach(Attach(name=name, handle=handle, role=True, target=Target()))
        except Refused:
            return False
        self.say(Detach(handle=handle, closed=True))
        told = len(self.detached)
        while len(self.detached) == told:
            await self.change()
        return self.detached[-1].error is None

    async def _attach(self, attach: Attach) -> None:
        answer: asyncio.Future[Attach | Error] = asyncio.get_running_loop().create_future()
        self._links[attach.name] = answer
        self.say(attach)
        while not answer.done():
            await self.change()
        told = answer.result()
        if isinstance(told, Error):
            raise Refused(told.condition)

    # -- what goes out

    def say(self, body: Body) -> None:
        """Write one frame; discard it if the connection is closing."""
        if not self._writer.transport.is_closing():
            self._writer.write(frame(body))

    @property
    def window(self) -> int:
        """Return the number of transfers that the broker's session window allows now."""
        return self._window_end - self._next_outgoing

    def flow(self, handle: int, *, count: int, credit: int, drain: bool) -> None:
        self.say(
            Flow(
                next_incoming_id=self._next_incoming,
                incoming_window=WINDOW,
                next_outgoing_id=self._next_outgoing,
                outgoing_window=WINDOW,
                handle=handle,
                delivery_count=count,
                link_credit=credit,
                drain=drain,
            )
        )

    async def transfer(
        self, handle: int, payload: bytes, *, state: TransactionalState | None, halt_at: int | None
    ) -> asyncio.Future[DeliveryState | None]:
        """Write the frames of a delivery; return a future of its outcome, None if it is lost.

        With `halt_at`, write no frame that begins at or behind that byte of the payload.
        """
        if self.lost:
            raise Lost("nothing can be sent any more")
        delivery_id = self._next_delivery
        self._next_delivery += 1
        outcome: asyncio.Future[DeliveryState | None] = asyncio.get_running_loop().create_future()
        self._unsettled[delivery_id] = outcome
        size = self._frame_max - FRAME_HEAD
        for at in range(0, len(payload), size):
            if halt_at is not None and at >= halt_at:
                break
            while self.window <= 0:
                await self.change()
            self._next_outgoing += 1
            self.say(
                Transfer(
                    handle=handle,
                    delivery_id=delivery_id,
                    tag=b"%d" % delivery_id,
                    state=state,
                    more=at + size < len(payload),
                    payload=payload[at : at + size],
                )
            )
        return outcome

    # -- what comes in

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        buffer = b""
        try:
            while data := await self._reader.read(2**18):
                now = loop.time()
                self.longest_silence_s = max(self.longest_silence_s, now - self._heard_at)
                self._heard_at = now
                buffer = self._take(buffer + data)
        except ConnectionError:
            pass
        finally:
            self.lost = True
            for outcome in self._unsettled.values():
                if not outcome.done():
                    outcome.set_result(None)
            self._changed.set()

    def _take(self, data: bytes) -> bytes:
        """Process the complete frames in `data`; return the rest."""
        at = 0
        while len(data) - at >= 8:
            size = 8 if data[at : at + 4] == b"AMQP" else int.from_bytes(data[at : at + 4])
            if len(data) - at < size:
                break
            if data[at : at + 4] != b"AMQP":
                self._take_frame(data[at : at + size])
            at += size
        self._changed.set()
        return data[at:]

    def _take_frame(self, raw: bytes) -> None:
        self.frames_heard += 1
        start = int(body_at(raw, 0))
        if start >= len(raw):
            return
        code = int(descriptor_at(raw, start, len(raw))[0])
        body = read_frame(raw).body
        if code == TRANSFER and isinstance(body, Transfer):
            self._next_incoming += 1
            self._receivers[body.handle].arrived(body)
        elif code == DISPOSITION and isinstance(body, Disposition):
            self._settled(body)
        elif code == FLOW and isinstance(body, Flow):
            self._flowed(body)
        else:
            self._take_other(code, body)

    def _take_other(self, code: int, body: Body) -> None:
        if code == OPEN and isinstance(body, Open):
            if body.idle_time_out > 0:
                self._keep_alive(body.idle_time_out / 3000)
        elif code == BEGIN and isinstance(body, Begin):
            self._begun = True
            self._window_end = int(body.incoming_window)
            self._next_incoming = int(body.next_outgoing_id)
        elif code == ATTACH and isinstance(body, Attach):
            self._handles[int(body.handle)] = body.name
            # a broker that refuses a link answers without its own terminus, then detaches (2.6.3)
            if (body.target if body.role else body.source) is not None:
                self._answer(body.name, body)
        elif code == DETACH and isinstance(body, Detach):
            self.detached.append(body)
            error = body.error or Error(condition="amqp:link:detached")
            self._answer(self._handles[int(body.handle)], error)
        elif code == CLOSE and isinstance(body, Close):
            self.error = body.error
            self.say(Close())

    def _answer(self, name: str, told: Attach | Error) -> None:
        answer = self._links.get(name)
        if answer is not None and not answer.done():
            answer.set_result(told)

    def _settled(self, told: Disposition) -> None:
        last = told.first if told.last is None else told.last
        for delivery_id in range(told.first, last + 1):
            outcome = self._unsettled.pop(delivery_id, None)
            if outcome is not None and not outcome.done():
                outcome.set_result(told.state)

    def _flowed(self, flow: Flow) -> None:
        seen = max(0, int(flow.next_incoming_id))
        self._window_end = seen + int(flow.incoming_window)
        handle = int(flow.handle)
        if handle in self._senders and flow.delivery_count >= 0:
            self._senders[handle].credit_end = int(flow.delivery_count) + int(flow.link_credit)
        elif handle in self._receivers:
            self._receivers[handle].flowed(flow)

    def _keep_alive(self, every_s: float) -> None:
        if not self.lost:
            self._writer.write(b"\x00\x00\x00\x08\x02\x00\x00\x00")
            self._beat = asyncio.get_running_loop().call_later(every_s, self._keep_alive, every_s)
