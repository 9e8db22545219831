"""A session of a conversation and its links, which count ids and credit for the case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.amqp import serial
from broker.amqp.outcomes import ACCEPTED, DeliveryState
from broker.amqp.performatives import (
    RCV_FIRST,
    RECEIVER,
    SENDER,
    Attach,
    Begin,
    Detach,
    End,
    Flow,
)
from broker.amqp.terminus import Source, Target

from .announced import check_handle, check_message, credit_too_small
from .frames import Body, Disposition, Transfer
from .verdict import Failed

if TYPE_CHECKING:
    from .conversation import Conversation

WINDOW: Final = 1000

LINK_FRAMES: Final = (Attach, Detach, Flow, Transfer)
"""Frames with a handle; that of a session's flow is -1."""


class Session:
    """A session that we have begun on `channel`; its flow fields are kept up to date."""

    def __init__(self, peer: Conversation, channel: int, **fields: object) -> None:
        given = {
            "next_outgoing_id": 0,
            "incoming_window": WINDOW,
            "outgoing_window": WINDOW,
        } | fields
        self.peer: Final = peer
        self.channel: Final = channel
        self.begin: Final = Begin(**given)  # type: ignore[arg-type]
        self.remote_channel = -1
        self.remote_begin: Begin | None = None
        self.next_outgoing_id = int(self.begin.next_outgoing_id)
        self.next_incoming_id = -1
        self.next_delivery_id = 0
        self.links: Final[dict[int, Link]] = {}

    # -- in

    def began(self, remote_channel: int, begin: Begin) -> None:
        """Record the broker's begin."""
        self.remote_channel = remote_channel
        self.remote_begin = begin
        self.next_incoming_id = int(begin.next_outgoing_id)

    def learn(self, body: Body) -> None:
        """Record a frame that the broker has sent on this session."""
        if isinstance(body, Transfer):
            self.next_incoming_id = serial.add(self.next_incoming_id, 1)
        if isinstance(body, Attach):
            for link in self.links.values():
                if link.name == body.name and link.role is not body.role:
                    link.attached(body)
        if isinstance(body, Transfer | Flow | Detach):
            for link in self.links.values():
                if link.remote_handle == body.handle and not link.remote_detached:
                    link.learn(body)

    # -- out

    def send(self, *bodies: Body) -> None:
        """Send a frame for each of `bodies` on this channel."""
        for body in bodies:
            if isinstance(body, LINK_FRAMES) and not self.peer.goes_beyond_limits:
                check_handle(int(body.handle), self.remote_begin)
        self.peer.send(*bodies, channel=self.channel)

    def flow(self, **fields: object) -> None:
        """Send a flow of the session, or of the link whose `handle` is given."""
        given = {
            "next_incoming_id": self.next_incoming_id,
            "incoming_window": WINDOW,
            "next_outgoing_id": self.next_outgoing_id,
            "outgoing_window": WINDOW,
        } | fields
        self.send(Flow(**given))  # type: ignore[arg-type]

    def transfer(self, transfer: Transfer) -> None:
        """Send a transfer frame and count it."""
        link = self.links.get(int(transfer.handle))
        if isinstance(link, Sender) and not self.peer.goes_beyond_limits:
            link.check_size(transfer)
        self.send(transfer)
        self.next_outgoing_id = serial.add(self.next_outgoing_id, 1)

    def new_delivery_id(self) -> int:
        taken = self.next_delivery_id
        self.next_delivery_id = serial.add(taken, 1)
        return taken

    async def end(self) -> None:
        """End the session; the broker must answer."""
        self.send(End())
        await self.peer.expect_until(End)
        self.peer.sessions.pop(self.channel, None)

    # -- links

    def new_sender(self, address: str | None = "", /, **fields: object) -> Sender:
        """Send an attach for a link to send on; "" is the address of the case."""
        return Sender(self, self.peer.address if address == "" else address, fields)

    def new_receiver(self, address: str | None = "", /, **fields: object) -> Receiver:
        """Send an attach for a link to receive on; "" is the address of the case."""
        return Receiver(self, self.peer.address if address == "" else address, fields)

    async def attach_sender(self, address: str | None = "", /, **fields: object) -> Sender:
        """Return a link to send on, attached at both ends."""
        link = self.new_sender(address, **fields)
        await link.expect_attached()
        return link

    async def attach_receiver(self, address: str | None = "", /, **fields: object) -> Receiver:
        """Return a link to receive on, attached at both ends, without credit."""
        link = self.new_receiver(address, **fields)
        await link.expect_attached()
        return link

    def free_handle(self) -> int:
        return next(handle for handle in range(2**32) if handle not in self.links)


class Link:
    """One of our links; `fields` are those of its attach that differ from the usual ones."""

    role: bool

    def __init__(self, session: Session, fields: dict[str, object]) -> None:
        given: dict[str, object] = {
            "name": session.peer.name(f"{type(self).__name__.lower()}-{session.free_handle()}"),
            "handle": session.free_handle(),
            "role": self.role,
        } | fields
        self.session: Final = session
        self.attach: Final = Attach(**given)  # type: ignore[arg-type]
        self.name: Final = self.attach.name
        self.handle: Final = int(self.attach.handle)
        self.remote_attach: Attach | None = None
        self.remote_handle = -1
        self.remote_detached = False
        session.links[self.handle] = self
        session.send(self.attach)

    def attached(self, attach: Attach) -> None:
        """Record the broker's attach."""
        self.remote_attach = attach
        self.remote_handle = int(attach.handle)

    def learn(self, body: Transfer | Flow | Detach) -> None:
        """Record a frame for this link."""
        if isinstance(body, Detach):
            self.remote_detached = True

    async def expect_attached(self) -> Attach:
        """Return the broker's attach, which must be the next frame and not a refusal."""
        attach = await self._expect_attach()
        if self._asked_for(attach) is None:
            detach = await self.session.peer.expect_until(Detach)
            condition = detach.error.condition if detach.error else "no error"
            raise Failed(f"a link to {self.session.peer.address}", f"a refusal with {condition}")
        return attach

    async def expect_refused(self, *conditions: str) -> Detach:
        """Return the detach that closes a refused link, with one of `conditions`.

        An attach with a null terminus must precede it. Without conditions, any error will do
        (2.6.3).
        """
        attach = await self._expect_attach()
        if self._asked_for(attach) is not None:
            raise Failed("an attach without the terminus that is refused", "one with it")
        return await self.session.peer.expect(
            Detach,
            handle=self.remote_handle,
            closed=True,
            error=lambda error: (
                error is not None and (not conditions or error.condition in conditions)
            ),
        )

    async def _expect_attach(self) -> Attach:
        return await self.session.peer.expect(Attach, name=self.name, role=not self.role)

    def _asked_for(self, attach: Attach) -> object:
        """Return the broker's terminus; None if it refuses the link."""
        return attach.target if self.role is SENDER else attach.source

    async def detach(self, *, closed: bool = True) -> Detach:
        """Detach the link; return the broker's answer."""
        self.session.send(Detach(handle=self.handle, closed=closed))
        answer = await self.session.peer.expect_until(
            Detach, lambda body: body.handle == self.remote_handle
        )
        self.session.links.pop(self.handle, None)
        return answer


class Sender(Link):
    """A link on which we send; `link_credit` is the number of deliveries that the broker allows."""

    role = SENDER

    def __init__(self, session: Session, address: str | None, fields: dict[str, object]) -> None:
        usual = {
            "source": Source(address="conformance"),
            "target": Target(address=address, capabilities=[] if address is None else ["queue"]),
            "initial_delivery_count": 0,
        }
        self.delivery_count = 0
        self.link_credit = 0
        self._sent = 0
        super().__init__(session, usual | fields)
        self.delivery_count = int(self.attach.initial_delivery_count)

    def learn(self, body: Transfer | Flow | Detach) -> None:
        super().learn(body)
        if isinstance(body, Flow) and body.link_credit >= 0:
            seen = int(body.delivery_count)
            start = int(self.attach.initial_delivery_count) if seen < 0 else seen
            self.link_credit = serial.ahead(
                serial.add(start, int(body.link_credit)), self.delivery_count
            )

    async def credit(self, least: int = 1) -> int:
        """Wait until the link has `least` credit; return the credit.

        NotApplicable if the broker grants less, and no more in time: that is its choice.
        """
        while self.link_credit < least:
            try:
                await self.session.peer.expect(Flow)
            except Failed as failed:
                if failed.is_silence and self.link_credit > 0:
                    raise credit_too_small(self.link_credit, least) from None
                raise
        return self.link_credit

    def check_size(self, transfer: Transfer) -> None:
        """Count the payload of a delivery; NotApplicable if it is more than the broker takes."""
        begun = 0 if transfer.delivery_id is not None else self._sent
        self._sent = begun + len(transfer.payload)
        check_message(self._sent, self.remote_attach)

    def transfer(self, payload: bytes = b"", **fields: object) -> int:
        """Send a transfer frame that begins a delivery, without waiting; return its delivery-id."""
        delivery_id = self.session.new_delivery_id()
        given = {
            "handle": self.handle,
            "delivery_id": delivery_id,
            "tag": delivery_id.to_bytes(4),
            "payload": payload,
        } | fields
        self.session.transfer(Transfer(**given))  # type: ignore[arg-type]
        self.delivery_count = serial.add(self.delivery_count, 1)
        self.link_credit -= 1
        return delivery_id

    def go_on(self, payload: bytes = b"", **fields: object) -> None:
        """Send another transfer frame of the delivery that was begun."""
        given = {
            "handle": self.handle,
            "delivery_id": None,
            "tag": None,
            "message_format": None,
            "payload": payload,
        } | fields
        self.session.transfer(Transfer(**given))  # type: ignore[arg-type]

    async def send(self, payload: bytes, **fields: object) -> Disposition:
        """Send a message once there is credit; return the disposition that answers it."""
        await self.credit()
        delivery_id = self.transfer(payload, **fields)
        return await self.settled(delivery_id)

    async def settled(self, delivery_id: int) -> Disposition:
        """Return the broker's disposition for a delivery, which must be the next frame.

        What a broker says before about deliveries of its own, unsettled, is skipped.
        """
        told = await self.session.peer.expect(Disposition)
        while told.role is SENDER and not told.settled:
            told = await self.session.peer.expect(Disposition)
        if told.role is SENDER or told.first > delivery_id:
            raise Failed(f"a disposition for our delivery {delivery_id}", str(told))
        return told


class Receiver(Link):
    """A link on which we receive; it tracks the broker's delivery-count and the credit left."""

    role = RECEIVER

    def __init__(self, session: Session, address: str | None, fields: dict[str, object]) -> None:
        usual = {
            "source": Source(address=address, capabilities=[] if address is None else ["queue"]),
            "target": Target(address="conformance"),
            "snd_settle_mode": 0,
            "rcv_settle_mode": RCV_FIRST,
        }
        self.delivery_count = 0
        self.link_credit = 0
        self.amid_delivery = False
        super().__init__(session, usual | fields)

    def attached(self, attach: Attach) -> None:
        super().attached(attach)
        self.delivery_count = max(0, int(attach.initial_delivery_count))

    def learn(self, body: Transfer | Flow | Detach) -> None:
        super().learn(body)
        if isinstance(body, Transfer):
            if not self.amid_delivery:
                self.delivery_count = serial.add(self.delivery_count, 1)
                self.link_credit -= 1
            self.amid_delivery = body.more and not body.aborted
        if isinstance(body, Flow) and body.delivery_count >= 0:
            gone = serial.ahead(int(body.delivery_count), self.delivery_count)
            self.delivery_count = int(body.delivery_count)
            self.link_credit = max(0, self.link_credit - gone)

    def grant(self, credit: int, **fields: object) -> None:
        """Set the link-credit to `credit`."""
        self.link_credit = credit
        self.session.flow(
            handle=self.handle, delivery_count=self.delivery_count, link_credit=credit, **fields
        )

    async def receive(self) -> Transfer:
        """Return the next delivery with its frames joined: the first one's fields, all payload."""
        peer = self.session.peer
        first = await peer.expect(Transfer, handle=self.remote_handle)
        payload, more = first.payload, first.more
        while more:
            next_frame = await peer.expect(Transfer, handle=self.remote_handle)
            payload, more = payload + next_frame.payload, next_frame.more
        given = first.__dict__ | {"payload": payload, "more": False}
        return Transfer(**given)

    def settle(
        self,
        delivery: Transfer,
        state: DeliveryState | None = ACCEPTED,
        *,
        settled: bool = True,
    ) -> None:
        """Send a disposition for one delivery."""
        assert delivery.delivery_id is not None
        self.session.send(
            Disposition(role=RECEIVER, first=delivery.delivery_id, settled=settled, state=state)
        )
