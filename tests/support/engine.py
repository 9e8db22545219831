"""The engine alone: a connection whose owner accepts every link and records every call."""

from __future__ import annotations

from broker.amqp.connection import Connection
from broker.amqp.delivery import Delivery
from broker.amqp.errors import LinkFault
from broker.amqp.events import ConnectionOwner, IncomingOwner, OutgoingOwner
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.limits import Limits
from broker.amqp.outcomes import DeliveryState, TransactionalState
from broker.amqp.outgoing_link import OutgoingLink
from broker.amqp.performatives import Attach, Begin, Open
from broker.amqp.session import Session
from broker.amqp.terminus import Source, Target
from tests.support.frames import Body, Frame, frame, frames_in, opening


class Inbox(IncomingOwner):
    """The owner of an incoming link; it records deliveries and makes no decisions."""

    def __init__(self, link: IncomingLink) -> None:
        self.link = link
        self.delivered_ids: list[int] = []
        self.tags: list[bytes] = []
        self.payloads: list[bytes] = []
        self.settled: list[bool] = []
        self.formats: list[int] = []
        self.posted_within: list[bytes] = []
        self.asked_for_credit = 0
        self.ends: list[bool] = []

    def delivered(self, delivery_id: int, data: bytes, at: int, end: int, settled: bool) -> None:
        self.delivered_ids.append(int(delivery_id))
        self.tags.append(self.link.delivery_tag())
        self.payloads.append(data[at:end])
        self.settled.append(settled)
        self.formats.append(int(self.link.message_format))

    def posted(
        self, delivery_id: int, data: bytes, at: int, end: int, *, settled: bool, txn_id: bytes
    ) -> None:
        self.delivered(delivery_id, data, at, end, settled)
        self.posted_within.append(txn_id)

    def credit_low(self) -> None:
        self.asked_for_credit += 1

    def incoming_ended(self, closed: bool) -> None:
        self.ends.append(closed)


class Outbox(OutgoingOwner):
    """The owner of an outgoing link; it sends what a test wants, and records the outcomes."""

    def __init__(self, link: OutgoingLink) -> None:
        self.link = link
        self.credit_changes: list[bool] = []
        self.accepted_ids: list[int] = []
        self.states: list[tuple[int, DeliveryState | None]] = []
        self.retirements: list[tuple[int, TransactionalState, bool]] = []
        self.ends: list[tuple[bool, list[int]]] = []

    def credit_changed(self, drain: bool) -> None:
        self.credit_changes.append(drain)

    def accepted(self, deliveries: list[Delivery]) -> None:
        self.accepted_ids += [int(delivery.delivery_id) for delivery in deliveries]

    def settled(self, delivery: Delivery, state: DeliveryState | None) -> None:
        self.states.append((int(delivery.delivery_id), state))

    def retired(self, delivery: Delivery, state: TransactionalState, settled: bool) -> None:
        self.retirements.append((int(delivery.delivery_id), state, settled))

    def outgoing_ended(self, closed: bool, unsettled: list[Delivery]) -> None:
        self.ends.append((closed, [int(each.delivery_id) for each in unsettled]))

    def send(
        self,
        payload: bytes,
        *,
        settled: bool = False,
        header: bytes = b"",
        message_format: int = 0,
    ) -> None:
        """Send a message; the link must have room for it."""
        assert self.link.has_room()
        delivery: Delivery | None = None
        if not settled:
            delivery = Delivery()
            delivery.sent_to = self
        self.link.send(delivery, header, payload, message_format=message_format)


class Engine(ConnectionOwner):
    """An open connection with a session on channel 0."""

    def __init__(self, limits: Limits | None = None, **fields: object) -> None:
        self.inboxes: list[Inbox] = []
        self.outboxes: list[Outbox] = []
        self.bugs: list[Exception] = []
        self.failed_transactions: list[tuple[bytes, str]] = []
        self.ended_sessions: list[int] = []
        self.drops: list[bool] = []
        self.rests = 0
        self.connection = Connection(
            self,
            limits or Limits(),
            container_id="engine",
            mechanisms=[],
            requires_sasl=False,
            now_ms=0,
        )
        self.connection.receive(opening(**fields), 0)  # type: ignore[arg-type]
        self.send(Begin(next_outgoing_id=0, incoming_window=1000, outgoing_window=1000))
        self.frames()

    def send(self, *bodies: Body) -> list[Body | None]:
        """Send frames in one piece; return the bodies of the answers."""
        self.send_bytes(b"".join(frame(body) for body in bodies))
        return self.bodies()

    def send_bytes(self, data: bytes) -> None:
        self.connection.receive(data, 0)
        assert self.bugs == []

    def frames(self) -> list[Frame]:
        """Return all frames that the connection has written since the last call."""
        data = b"".join(self.connection.data_to_send(0))
        self.connection.written()
        return list(frames_in(data))

    def bodies(self) -> list[Body | None]:
        """Return the bodies of `frames()`, without channels."""
        return [each.body for each in self.frames()]

    def attach_sender(self, attach: Attach, *, credit: int = 10) -> Inbox:
        """Attach a link on which the peer sends, grant `credit`, and return its owner."""
        self.send(attach)
        inbox = self.inboxes[-1]
        if credit:
            inbox.link.grant(credit)
            self.frames()
        return inbox

    def attach_receiver(self, attach: Attach, *then: Body) -> Outbox:
        """Attach a link on which the peer receives, send `then`, and return the link's owner."""
        self.send(attach, *then)
        return self.outboxes[-1]

    # -- from the connection

    def incoming_attached(self, link: IncomingLink, attach: Attach) -> None:
        inbox = Inbox(link)
        self.inboxes.append(inbox)
        link.accept(inbox, source=attach.source, target=Target(address="in"))

    def outgoing_attached(self, link: OutgoingLink, attach: Attach) -> None:
        outbox = Outbox(link)
        self.outboxes.append(outbox)
        target = attach.target if isinstance(attach.target, Target) else None
        link.accept(outbox, source=Source(address="out"), target=target)

    def opened(self, open: Open) -> None:  # noqa: A002, ARG002 the engine's word
        self.connection.accept(offered_capabilities=[], properties={})

    def failed(self, error: Exception) -> None:
        self.bugs.append(error)

    def transaction_failed(self, txn_id: bytes, fault: LinkFault) -> None:
        self.failed_transactions.append((txn_id, fault.condition))

    def output_ready(self) -> None: ...

    def deadline_changed(self) -> None: ...

    def session_ended(self, session: Session) -> None:
        self.ended_sessions.append(int(session.channel))

    def sessions_dropped(self) -> None:
        self.drops.append(self.connection.closed_in_order)

    def ended(self) -> None: ...

    def input_rests(self) -> None:
        self.rests += 1

    def authenticate(self, mechanism: str, response: bytes | None) -> None:
        raise AssertionError((mechanism, response))

    def challenge_answered(self, response: bytes) -> None:
        raise AssertionError(response)
