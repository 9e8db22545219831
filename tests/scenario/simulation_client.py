"""A client of a simulated run, which keeps to the protocol and knows only what has reached it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from broker.amqp.frames import AMQP_HEADER
from broker.amqp.outcomes import Declared, DeliveryState, State
from broker.amqp.performatives import (
    RECEIVER,
    SENDER,
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Flow,
    Open,
)
from broker.amqp.terminus import Source, SourceFilter, Target
from tests.scenario.simulation_edge import Edge
from tests.scenario.simulation_links import UINT
from tests.support.frames import Body, Disposition, Frame, Header, Transfer


@dataclass(eq=False, kw_only=True)
class ClientLink:
    """A link as its client sees it."""

    session: ClientSession
    name: str
    handle: int
    sends: bool
    address: str | None
    kind: str
    settles_second: bool = False
    answer: DeliveryState | None = None
    "The outcome that the client gives each delivery at once; None for none."
    is_attached: bool = False
    detach_sent: bool = False
    detach_come: bool = False
    credit: int = 0
    delivery_count: int = 0
    outbox: deque[list[Transfer]] = field(default_factory=deque)
    half: list[Transfer] = field(default_factory=list)
    "The unsent frames of a delivery of which the first frame has been sent."
    is_new: bool = True
    "True until the first frame of the next delivery is received."
    dynamic: bool = False
    words: tuple[str, ...] = ()
    "The words of `shared global durable` that describe its subscription."
    filters: list[SourceFilter] = field(default_factory=list)
    looks_up: bool = False
    coordinates: bool = False
    listed: dict[bytes, State | None] = field(default_factory=dict)
    "Deliveries in the unsettled map of its attach that the broker has not resumed yet."
    tag: bytes = b""
    "The tag of the delivery that was received last, or is being received."
    settles_late: bool = False
    "True: the client settles deliveries also after it has detached the link without closing it."

    def is_live(self) -> bool:
        return self.is_attached and not self.detach_sent and not self.detach_come

    def has_more(self) -> bool:
        """Return whether this link has a frame to send and the credit for it."""
        return self.is_live() and bool(self.half or (self.outbox and self.credit > 0))

    def next_frame(self) -> Transfer:
        """Return the next frame to send; the first of a delivery gets the delivery-id."""
        if not self.half:
            self.half = self.outbox.popleft()
            self.credit -= 1
            self.delivery_count = (self.delivery_count + 1) & UINT
            number = self.session.take_delivery_id()
            self.half[0] = replace(self.half[0], delivery_id=number)
            if self.coordinates:
                self.session.commands[number] = self
        return self.half.pop(0)

    def grant(self, credit: int, *, drain: bool = False, echo: bool = False) -> None:
        """Set the link credit that the broker has from now on."""
        self.credit = credit
        self.session.flow(
            handle=self.handle,
            delivery_count=self.delivery_count,
            link_credit=credit,
            drain=drain,
            echo=echo,
        )

    def detach(self, *, closed: bool) -> None:
        if not self.detach_sent:
            self.detach_sent = True
            if closed or not self.settles_late:
                self.session.forget(self)
            self.session.put(Detach(handle=self.handle, closed=closed))
            self.session.leave(self)

    def took_flow(self, flow: Flow) -> None:
        if self.sends:
            ahead = (int(flow.delivery_count + flow.link_credit) - self.delivery_count) & UINT
            self.credit = ahead if ahead < 0x8000_0000 else 0
        else:
            self.delivery_count = int(flow.delivery_count)
            self.credit = int(flow.link_credit)


@dataclass(eq=False, kw_only=True)
class ClientSession:
    """A session as its client sees it.

    `room` is the number of transfers that the broker's incoming window still admits.
    """

    client: Client
    channel: int
    window: int
    next_out: int
    next_delivery_id: int
    next_in: int = 0
    left_in: int = 0
    room: int = 0
    is_begun: bool = False
    is_ending: bool = False
    links: dict[int, ClientLink] = field(default_factory=dict)
    received: dict[int, ClientLink] = field(default_factory=dict)
    "Unsettled deliveries that have been received in full."
    tags: dict[int, bytes] = field(default_factory=dict)
    "The tags of all deliveries, by delivery-id."
    commands: dict[int, ClientLink] = field(default_factory=dict)
    "Links of the commands sent to coordinators, by delivery-id."
    to_settle: list[int] = field(default_factory=list)
    "Delivery-ids whose outcomes have been received and await settlement by this sender."

    def put(self, body: Body) -> None:
        self.client.edge.push(body, self.channel)

    def take_delivery_id(self) -> int:
        number = self.next_delivery_id
        self.next_delivery_id = (number + 1) & UINT
        return number

    def flow(
        self,
        *,
        handle: int = -1,
        delivery_count: int = -1,
        link_credit: int = -1,
        drain: bool = False,
        echo: bool = False,
    ) -> None:
        """Send a flow with the true state of the session, which opens its whole window again."""
        self.left_in = self.window
        self.put(
            Flow(
                next_incoming_id=self.next_in,
                incoming_window=self.window,
                next_outgoing_id=self.next_out,
                outgoing_window=1000,
                handle=handle,
                delivery_count=delivery_count,
                link_credit=link_credit,
                drain=drain,
                echo=echo,
            )
        )

    def senders(self) -> list[ClientLink]:
        links = [link for link in self.links.values() if link.sends and not link.coordinates]
        return [link for link in links if link.is_live()]

    def coordinators(self) -> list[ClientLink]:
        return [link for link in self.links.values() if link.coordinates and link.is_live()]

    def receivers(self) -> list[ClientLink]:
        links = [link for link in self.links.values() if not link.sends and not link.looks_up]
        return [link for link in links if link.is_live()]

    def send_on(self) -> None:
        """Send the frames that credit and window allow, one per link in turn."""
        while self.room > 0:
            ready = [link for link in self.links.values() if link.has_more()]
            if not ready:
                return
            for link in ready[: self.room]:
                self.next_out = (self.next_out + 1) & UINT
                self.room -= 1
                self.put(link.next_frame())

    def settle(self, first: int, last: int, state: DeliveryState | None, *, settled: bool) -> None:
        """Send a disposition for a range; forget its unsettled deliveries if that ends them."""
        if settled or state is not None:
            for number in [each for each in self.received if first <= each <= last]:
                del self.received[number]
        self.put(Disposition(first=first, last=last, state=state, settled=settled))

    def settle_second(self) -> None:
        """Settle the deliveries whose outcomes the broker has sent without settling them."""
        for number in self.to_settle:
            self.put(Disposition(role=SENDER, first=number, state=None))
        self.to_settle.clear()

    def end(self) -> None:
        if not self.is_ending:
            self.is_ending = True
            self.put(End())

    def forget(self, link: ClientLink) -> None:
        for number in [each for each, owner in self.received.items() if owner is link]:
            del self.received[number]

    def unsettled_of(self, link: ClientLink) -> dict[bytes, State | None]:
        """Return the states of the unsettled deliveries of a link, by their tags."""
        tags = [self.tags[number] for number, owner in self.received.items() if owner is link]
        return {**link.listed, **dict.fromkeys(tags)}

    def leave(self, link: ClientLink) -> None:
        """Free the handle if both ends have detached."""
        if link.detach_sent and link.detach_come:
            del self.links[link.handle]

    def took(self, body: Body | None) -> None:
        if isinstance(body, Transfer):
            self._took_transfer(body)
        elif isinstance(body, Flow):
            ahead = (int(flow_limit(body)) - self.next_out) & UINT
            self.room = ahead if ahead < 0x8000_0000 else 0
            link = self.links.get(int(body.handle))
            if link is not None:
                link.took_flow(body)
        elif isinstance(body, Attach):
            link = self.links[int(body.handle)]
            link.is_attached = True
            terminus = body.target if link.sends else body.source
            if isinstance(terminus, Source | Target) and terminus.dynamic:
                link.address = terminus.address
        elif isinstance(body, Detach):
            link = self.links[int(body.handle)]
            link.detach_come = True
            if link.detach_sent:
                self.leave(link)
            else:
                link.detach(closed=body.closed)
        elif isinstance(body, Disposition):
            self._took_disposition(body)

    def _took_transfer(self, transfer: Transfer) -> None:
        self.next_in += 1
        self.left_in -= 1
        link = self.links[transfer.handle]
        if link.is_new:
            link.delivery_count += 1
            link.credit -= 1
            assert transfer.tag is not None
            link.tag = transfer.tag
            link.listed.pop(link.tag, None)
        link.is_new = not transfer.more
        if link.is_new and not transfer.settled and not link.detach_sent:
            assert transfer.delivery_id is not None
            self.received[transfer.delivery_id] = link
            self.tags[transfer.delivery_id] = link.tag
            if link.answer is not None:
                number = transfer.delivery_id
                self.settle(number, number, link.answer, settled=not link.settles_second)
        if link.is_new and link.answer is not None and link.credit == 0 and link.is_live():
            link.grant(5)
        elif self.left_in <= self.window // 2:
            self.flow()

    def _took_disposition(self, told: Disposition) -> None:
        if isinstance(told.state, Declared):
            coordinator = self.commands[told.first]
            if coordinator.is_live():
                self.client.transactions[told.state.txn_id] = coordinator
        if told.role is RECEIVER and not told.settled:
            last = told.first if told.last is None else told.last
            number = told.first
            while number != (last + 1) & UINT:
                self.to_settle.append(number)
                number = (number + 1) & UINT


def flow_limit(flow: Flow) -> int:
    """Return the transfer-id up to which the peer accepts transfers."""
    seen = 0 if flow.next_incoming_id < 0 else flow.next_incoming_id
    return int(seen + flow.incoming_window)


class Client:
    """A connection as its client sees it."""

    def __init__(self, edge: Edge, opening: Open) -> None:
        self.edge = edge
        self.container_id = opening.container_id
        self.sessions: dict[int, ClientSession] = {}
        self.transactions: dict[bytes, ClientLink] = {}
        "Links of the coordinators, by the ids of transactions that the client takes for open."
        self.is_open = False
        self.is_closing = False
        self.reads = True
        "False: the client is slow and reads nothing."
        edge.push(Header(AMQP_HEADER))
        edge.push(opening)

    def is_gone(self) -> bool:
        """Return whether the broker has closed the socket and all its output has been read."""
        return self.edge.is_closed and not self.edge.unfetched

    def begin(self, *, window: int, first_transfer: int, first_delivery: int) -> ClientSession:
        """Begin another session, on the first free channel."""
        channel = next(each for each in range(100) if each not in self.sessions)
        session = ClientSession(
            client=self,
            channel=channel,
            window=window,
            next_out=first_transfer,
            next_delivery_id=first_delivery,
            left_in=window,
        )
        self.sessions[channel] = session
        session.put(
            Begin(next_outgoing_id=first_transfer, incoming_window=window, outgoing_window=1000)
        )
        return session

    def close(self) -> None:
        if not self.is_closing:
            self.is_closing = True
            self.edge.push(Close())

    def lose(self) -> None:
        """Lose the connection without a close."""
        self.is_closing = True
        self.edge.unfetched.clear()
        self.edge.lose()

    def live_sessions(self) -> list[ClientSession]:
        if self.is_closing or not self.is_open:
            return []
        return [each for each in self.sessions.values() if each.is_begun and not each.is_ending]

    def took(self, found: Frame) -> None:
        """Handle a frame that has been received."""
        body = found.body
        if isinstance(body, Open):
            self.is_open = True
        elif isinstance(body, Close):
            self.close()
        elif self.is_closing or isinstance(body, Header) or body is None:
            return
        elif isinstance(body, Begin):
            session = self.sessions[found.channel]
            session.is_begun = True
            session.room = int(body.incoming_window)
        elif isinstance(body, End):
            self.sessions.pop(found.channel).end()
        else:
            session = self.sessions[found.channel]
            if not session.is_ending:
                session.took(body)
                session.send_on()
