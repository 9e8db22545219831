"""An attacker's connection: it writes prepared bytes, and decodes only what it has to count."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from broker.amqp.descriptors import TRANSFER
from broker.amqp.frames import AMQP_HEADER, HEAD_SIZE
from broker.amqp.outcomes import Accepted, Declared, Error, Rejected, TransactionalState
from broker.amqp.performatives import Attach, Begin, Close, Detach, End, Flow, Open
from tests.attacks.plan import Deadline
from tests.conformance.frames import Body, Disposition, Transfer, frame, read_frame
from tests.support.frames import attach_receiver, attach_sender, flow

FRAME_SIZE: Final = 1024 * 1024
ENDLESS: Final = 2**31 - 1
"""A credit, or a window, that is never used up."""

ANSWER_S: Final = 60.0
"""Seconds to wait for an answer; without one in this time, the broker hangs."""

CLOSE_S: Final = 5.0
LOOK_S: Final = 0.1
CODE_AT: Final = HEAD_SIZE + 2
"""The index of the descriptor in a frame with a header of eight bytes."""

FIRST_ID: Final = 1000
"""The first delivery-id: a uint of less than 256 would be encoded in fewer bytes."""

EMPTY_FRAME: Final = b"\x00\x00\x00\x08\x02\x00\x00\x00"


class Gone(ConnectionError):  # noqa: N818 - names an event
    """The broker has ended the connection."""


class Peer(asyncio.Protocol):
    """A connection with one session; errors that the broker sends are passed to `hear`.

    Transfers are counted and not decoded. If it `settles`, it accepts each delivery; otherwise all
    stay unsettled.
    """

    def __init__(self, hear: Callable[[str, str], None], *, settles: bool = False) -> None:
        self._hear: Final = hear
        self._settles: Final = settles
        self._rest = b""
        self._name = ""
        self._why = "without a reason"
        self._changed: Final = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._may_write: Final = asyncio.Event()
        self._may_write.set()
        self.is_lost = False
        self.begun = False
        self.attached = 0
        self.detached = 0
        self.deliveries = 0
        self.accepted = 0
        self.rejected = 0
        self.posted = 0
        self.drained_to = 0
        self.txn_id = b""
        self.frame_max = 512
        self.credit_end: Final[dict[int, int]] = {}
        self.window_end = 0
        self.sent: Final[dict[int, int]] = {}
        self.transfers = 0
        self._next_id = FIRST_ID

    # -- the transport's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.is_lost = True
        self._may_write.set()
        self._changed.set()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        at, before = 0, self.deliveries
        while len(data) - at >= HEAD_SIZE:
            is_header = data[at : at + 4] == b"AMQP"
            size = HEAD_SIZE if is_header else int.from_bytes(data[at : at + 4])
            if at + size > len(data):
                break
            if size > CODE_AT and data[at + CODE_AT] == TRANSFER:
                self.deliveries += 1
            elif size > CODE_AT:
                self._take(read_frame(data[at : at + size]).body)
            at += size
        self._rest = data[at:]
        if self._settles and self.deliveries > before:
            self.say(Disposition(first=before, last=self.deliveries - 1))
        self._changed.set()

    def _take(self, body: Body) -> None:
        if isinstance(body, Flow):
            self._flowed(body)
        elif isinstance(body, Disposition):
            self._settled(body, (body.first if body.last is None else body.last) - body.first + 1)
        elif isinstance(body, Open):
            self.frame_max = min(FRAME_SIZE, int(body.max_frame_size))
        elif isinstance(body, Begin):
            self.begun = True
            self.window_end = int(body.incoming_window)
        elif isinstance(body, Attach):
            self.attached += 1
        elif isinstance(body, Detach | End | Close):
            self.detached += isinstance(body, Detach)
            self._failed(body.error)
            if isinstance(body, Close):
                self.say(Close())

    def _flowed(self, told: Flow) -> None:
        self.window_end = max(0, int(told.next_incoming_id)) + int(told.incoming_window)
        handle = int(told.handle)
        if handle < 0:
            return
        self.credit_end[handle] = max(0, int(told.delivery_count)) + int(told.link_credit)
        if told.drain and told.link_credit == 0:
            self.drained_to = int(told.delivery_count)

    def _settled(self, told: Disposition, count: int) -> None:
        state = told.state
        if isinstance(state, Declared):
            self.txn_id = state.txn_id
            return
        if isinstance(state, TransactionalState):
            self.posted += count
            state = state.outcome
        if isinstance(state, Accepted):
            self.accepted += count
        else:
            self.rejected += count
            self._failed(state.error if isinstance(state, Rejected) else None)

    def _failed(self, error: Error | None) -> None:
        if error is not None:
            self._why = f"{error.condition}: {error.description}"
            self._hear(error.condition, error.description or "")

    # -- out

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None, "not connected"
        return self._transport

    def write(self, data: bytes) -> None:
        """Write `data` as it is; raise Gone if the connection is lost."""
        if self.is_lost:
            raise self._gone("a connection that takes frames")
        self.transport.write(data)

    def say(self, *bodies: Body) -> None:
        """Write a frame for each of `bodies`; do nothing if the connection is lost."""
        if not self.is_lost:
            self.transport.write(b"".join(map(frame, bodies)))

    async def room(self, deadline: Deadline) -> None:
        """Wait until the socket takes more, the connection is lost, or the deadline is over."""
        try:
            async with asyncio.timeout(max(0.0, deadline.left_s())):
                await self._may_write.wait()
        except TimeoutError:
            return
        await asyncio.sleep(0)

    def _gone(self, awaited: str) -> Gone:
        return Gone(f"{self._name} lost its connection ({self._why}) and awaited {awaited}")

    # -- waiting

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until `holds` is true; `what` describes it in errors.

        Raise Gone if the connection is lost, TimeoutError after ANSWER_S.
        """
        deadline = Deadline(ANSWER_S)
        while not holds():
            if self.is_lost:
                raise self._gone(what)
            if deadline.is_over():
                raise TimeoutError(f"{what} did not come for {ANSWER_S:.0f} s")
            await self.change()

    async def until_changed(self) -> None:
        """Wait for data, a tenth of a second at most; raise Gone if the connection is lost."""
        if self.is_lost:
            raise self._gone("an answer")
        await self.change()

    async def change(self) -> None:
        """Wait for data or the loss of the connection, a tenth of a second at most."""
        self._changed.clear()
        try:
            async with asyncio.timeout(LOOK_S):
                await self._changed.wait()
        except TimeoutError:
            return

    # -- links

    async def open(self, container_id: str) -> None:
        """Exchange headers and opens, and begin a session."""
        self._name = container_id
        self.write(AMQP_HEADER)
        self.say(Open(container_id=container_id, max_frame_size=FRAME_SIZE))
        self.say(Begin(next_outgoing_id=0, incoming_window=ENDLESS, outgoing_window=ENDLESS))
        await self.until(lambda: self.begun, "a session")

    async def sender(self, address: str, *, handle: int = 0, kind: str = "") -> None:
        """Attach a link to `address`, and wait for its first credit."""
        self.say(attach_sender(address, name=f"to-{handle}", handle=handle, kind=kind))
        await self.until(lambda: handle in self.credit_end, f"credit for {address}")

    async def receiver(self, address: str, *, credit: int = ENDLESS, kind: str = "") -> None:
        """Attach a link from `address`, the only one of this session, and give it credit."""
        self.say(attach_receiver(address, handle=0, kind=kind))
        await self.until(lambda: self.attached == 1, f"an attach from {address}")
        if credit:
            self.say(
                flow(handle=0, credit=credit, delivery_count=0, incoming_window=ENDLESS),
            )

    async def drain(self, count: int, deadline: Deadline) -> bool:
        """Drain up to `count` ready messages; return whether the broker completed that in time.

        `drained_to` is the link's delivery-count afterwards.
        """
        end, last = self.drained_to + count, self.deliveries + count
        self.say(
            flow(
                handle=0,
                credit=count,
                delivery_count=self.drained_to,
                incoming_window=ENDLESS,
                drain=True,
            )
        )
        while self.drained_to < end and self.deliveries < last and not deadline.is_over():
            await self.until_changed()
        is_done = self.drained_to >= end or self.deliveries >= last
        self.drained_to = end
        return is_done

    def next_delivery(self, handle: int) -> int:
        """Count one delivery on a link; return its delivery-id."""
        return self.next_deliveries(handle, 1)

    def next_deliveries(self, handle: int, count: int) -> int:
        """Count `count` deliveries of one transfer each; return the delivery-id of the first."""
        first = self._next_id
        self._next_id += count
        self.sent[handle] = self.sent.get(handle, 0) + count
        self.transfers += count
        return first

    async def close(self) -> None:
        """Close the connection, and wait until the broker closes it."""
        self.say(Close())
        deadline = Deadline(CLOSE_S)
        while not self.is_lost and not deadline.is_over():
            await self.change()
        self.transport.abort()

    def credit(self, handle: int = 0) -> int:
        """Return the number of deliveries that may be sent on a link now."""
        ahead = self.credit_end.get(handle, 0) - self.sent.get(handle, 0)
        return min(ahead, self.window())

    def window(self) -> int:
        """Return the number of transfers that the session may send now."""
        return self.window_end - self.transfers


async def connect(
    port: int,
    hear: Callable[[str, str], None],
    *,
    container_id: str,
    settles: bool = False,
    receive_buffer: int = 0,
) -> Peer:
    """Return an open connection with a session; `receive_buffer` is the kernel's, in bytes.

    With 0 the buffer has its default size.
    """
    near = socket.socket()
    near.setblocking(False)
    if receive_buffer:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(near, ("127.0.0.1", port))
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _, peer = await loop.create_connection(lambda: Peer(hear, settles=settles), sock=near)
    await peer.open(container_id)
    return peer


class Transfers:
    """Complete messages as bytes, which differ only in their delivery-ids."""

    MARK: Final = (0x7EADBEEF).to_bytes(4)

    def __init__(
        self, payload: bytes, *, handle: int = 0, settled: bool = False, txn_id: bytes = b""
    ) -> None:
        whole = frame(
            Transfer(
                handle=handle,
                delivery_id=int.from_bytes(self.MARK),
                tag=self.MARK,
                settled=settled,
                state=TransactionalState(txn_id=txn_id) if txn_id else None,
                payload=payload,
            )
        )
        self._handle: Final = handle
        self._head, self._middle, self._tail = whole.split(self.MARK, 2)
        self.size: Final = len(whole)

    def send(self, peer: Peer, count: int) -> None:
        """Send `count` messages on their link; raise Gone if the connection is lost."""
        first = peer.next_deliveries(self._handle, count)
        frames: list[bytes] = []
        for number in range(first, first + count):
            mark = number.to_bytes(4)
            frames += (self._head, mark, self._middle, mark, self._tail)
        peer.write(b"".join(frames))
