"""The broker's edge: one connection's bytes in both directions, reported to the model in order.

The model follows the broker, not the clients: a client's frame counts once the broker has read its
last byte, and a frame of the broker counts once the broker has written it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from broker.amqp.encode import BytesWriter, put_null
from broker.amqp.errors import INVALID_FIELD, RESOURCE_LIMIT_EXCEEDED, RESOURCE_LOCKED
from broker.amqp.outcomes import ACCEPTED, Declared, Rejected, TransactionalState
from broker.amqp.outcomes import State as AnyState
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
from broker.amqp.terminus import UNSETTLED_STATE, Source, Target
from broker.amqp.types import Integer
from broker.links.peer import Peer
from broker.links.transport import Transport
from broker.links.uniqueness import SOLE_CONNECTION
from tests.scenario.simulation_links import UINT, Awaited, Link, Session, State
from tests.scenario.simulation_records import Creation, Ending, Entry, Wrong
from tests.scenario.simulation_transactions import Transactions, command_of
from tests.scenario.simulation_world import World
from tests.support.broker import entrance
from tests.support.frames import (
    Body,
    Disposition,
    Frame,
    Header,
    Transfer,
    frame,
    frames_in,
    header_of,
)

MARK = b"#message"
NOTE = b"x-opt-note"

CLOSE_REASONS = {RESOURCE_LOCKED, INVALID_FIELD, RESOURCE_LIMIT_EXCEEDED}
"""Conditions with which the broker may close a connection.

The container-id is taken, by another connection or by this one (sole-connection-for-container), or
the client was silent.
"""


class Edge(Transport):
    """One connection; `capacity` is the bytes that its socket takes before the client reads."""

    def __init__(self, world: World, capacity: int) -> None:
        self.world = world
        self.capacity = capacity
        self.unread = bytearray()
        self.unfetched: deque[Frame] = deque()
        self.is_closed = False
        "True once the broker has closed the socket."
        self.is_over = False
        "True once the broker no longer serves the connection."
        self.last_fed = world.model.now
        self._unfetched_bytes = 0
        self._is_blocked = False
        self._coming: deque[tuple[int, int, Body | None]] = deque()
        self._written = 0
        self._fed = 0
        self._whole = 0
        self._partial_since = 0
        self._sessions: dict[int, Session] = {}
        self._suspended: dict[tuple[str, bool], Creation] = {}
        self._opened: Open | None = None
        self.transactions = Transactions(world)
        self.peer = Peer(world.container, self, entrance())

    # -- towards the broker

    def push(self, body: Body, channel: int = 0) -> None:
        """Write a frame as the client; the broker has not read it yet."""
        data = body.data if isinstance(body, Header) else frame(body, channel)
        self.unread += data
        self._written += len(data)
        self._coming.append((self._written, channel, body))

    def feed(self, count: int) -> None:
        """Let the broker read `count` bytes in one piece."""
        piece = bytes(self.unread[:count])
        if self._whole == self._fed:
            self._partial_since = self.world.model.now
        del self.unread[:count]
        if self.is_closed or not piece:
            return
        self._fed += len(piece)
        self.last_fed = self.world.model.now
        self.peer.receive(piece)
        while self.peer.rests:
            self.world.container.tick()
        while self._coming and self._coming[0][0] <= self._fed:
            self._whole, channel, body = self._coming.popleft()
            self._partial_since = self.last_fed
            if not self.is_over:
                self._took(channel, body)
        self.world.look()

    def lose(self) -> None:
        """Lose the socket, with all bytes that are under way."""
        if not self.is_closed:
            self.is_closed = True
            self.peer.lost()
            self._end()
            self.world.look()

    def _end(self) -> None:
        if not self.is_over:
            self.is_over = True
            for _, session in sorted(self._sessions.items()):
                session.end(Ending.CONNECTION)
            self.world.suspended.connection_ended(self)
            self.world.subscriptions.connection_ended(self)
            for creation in self._suspended.values():
                self.world.delete(creation.node)

    def _took(self, channel: int, body: Body | None) -> None:
        if isinstance(body, Open):
            self._opened = body
        elif isinstance(body, Begin):
            self._sessions[channel] = Session(
                world=self.world,
                owner=self,
                container_id=self._opened.container_id if self._opened else "",
                window=int(body.incoming_window),
                is_blocked=self._is_blocked,
                transfers_in=int(body.next_outgoing_id),
                suspended=self._suspended,
            )
        elif isinstance(body, Close):
            self._end()
        elif channel in self._sessions and not self._sessions[channel].is_over:
            self._took_on(self._sessions[channel], body)

    def _took_on(self, session: Session, body: Body | None) -> None:
        if isinstance(body, Transfer):
            self._took_transfer(session, body)
        elif isinstance(body, Disposition):
            if body.role is RECEIVER:
                session.took_disposition(body)
        elif isinstance(body, Flow):
            session.took_flow(body)
            if body.handle >= 0:
                session.links[int(body.handle)].took_flow(body)
        elif isinstance(body, Attach):
            link = Link(session=session, attach=body, incoming=body.role is SENDER)
            link.delivery_count = max(0, int(body.initial_delivery_count))
            session.links[int(body.handle)] = link
            link.place(self)
        elif isinstance(body, Detach):
            link = session.links[int(body.handle)]
            link.end(Ending.CLOSED if body.closed else Ending.DETACHED)
        elif isinstance(body, End):
            session.end()

    def _took_transfer(self, session: Session, transfer: Transfer) -> None:
        session.transfers_in = (session.transfers_in + 1) & UINT
        link = session.links[transfer.handle]
        if link.state is not State.ATTACHED:
            if isinstance(transfer.state, TransactionalState):
                self.transactions.doom(transfer.state.txn_id)
            return
        if link.pieces is None:
            assert transfer.tag is not None
            assert transfer.delivery_id is not None
            link.pieces = []
            link.number = int(transfer.tag)
            link.delivery_id = transfer.delivery_id
            link.delivery_count = (link.delivery_count + 1) & UINT
            state = transfer.state
            link.within = state.txn_id if isinstance(state, TransactionalState) else None
        if transfer.aborted or not transfer.more:
            link.pieces = None
        if not transfer.aborted and not transfer.more:
            if link.coordinates:
                self._commanded(session, link, transfer.payload)
            elif link.within is not None:
                self._posted(session, link, link.within, settled=transfer.settled is True)
            else:
                self._published(session, link, settled=transfer.settled is True)

    def _commanded(self, session: Session, link: Link, payload: bytes) -> None:
        command = command_of(payload)
        if command is None:
            session.awaited[link.delivery_id] = Awaited(
                link, Declared, transaction=self.transactions.declare(link)
            )
            return
        txn_id, fail = command
        links = [each for session in self.live_sessions() for each in session.links.values()]
        if self.transactions.is_open(txn_id) and any(
            each.within == txn_id and each.pieces is not None for each in links
        ):
            link.end(Ending.DETACHED)
            return
        outcome, done = self.transactions.discharge(txn_id, fail=fail)
        session.awaited[link.delivery_id] = Awaited(link, outcome, transaction=done)

    def _posted(self, session: Session, link: Link, txn_id: bytes, *, settled: bool) -> None:
        outcome = self.transactions.post(txn_id, link)
        if outcome is None:
            link.end(Ending.DETACHED)
        elif not settled:
            session.awaited[link.delivery_id] = Awaited(link, outcome, within=txn_id)

    def _published(self, session: Session, link: Link, *, settled: bool) -> None:
        outcome, message = self.world.publish(link)
        if not settled:
            session.awaited[link.delivery_id] = Awaited(link, outcome, message)
        elif outcome is Rejected:
            link.end(Ending.DETACHED)

    # -- from the broker

    def write(self, chunks: list[bytes]) -> None:
        if self.is_closed:
            raise Wrong("written after close")
        data = b"".join(chunks)
        self.world.written.append((self, data))
        self._unfetched_bytes += len(data)
        if self._unfetched_bytes > self.capacity and not self._is_blocked:
            self._block(True)
            self.peer.connection.output_blocked()

    def _block(self, is_blocked: bool) -> None:
        self._is_blocked = is_blocked
        for session in self._sessions.values():
            session.is_blocked = is_blocked

    def pause(self) -> None:
        assert self.peer.rests, "nothing large is sent here"

    def resume(self) -> None: ...

    def close(self) -> None:
        self.is_closed = True

    def fetch(self, count: int, take: Callable[[Frame], None]) -> None:
        """Let the client read up to `count` frames and pass each to `take`."""
        for _ in range(min(count, len(self.unfetched))):
            found = self.unfetched.popleft()
            self._unfetched_bytes -= found.size
            take(found)
        if self._is_blocked and self._unfetched_bytes <= self.capacity // 2:
            self._block(False)
            if not self.is_closed:
                self.peer.output_drained()
                self.world.look()

    def live_sessions(self) -> list[Session]:
        return (
            [] if self.is_over else [each for each in self._sessions.values() if not each.is_over]
        )

    def read(self, data: bytes) -> list[Frame]:
        """Return the frames that the broker wrote; end the connection if the broker closes it."""
        frames = list(frames_in(data))
        for each in frames:
            body = each.body
            if isinstance(body, Close) and not self.is_over:
                self._check_close(body)
                self._end()
        return frames

    def _check_close(self, close: Close) -> None:
        condition = close.error.condition if close.error else None
        if condition not in CLOSE_REASONS:
            why = close.error.description if close.error else ""
            raise Wrong(f"the connection is closed with {condition}: {why}")
        now, limits = self.world.model.now, self.world.container.limits
        is_idle = now - self.last_fed >= limits.idle_time_out_ms
        in_time = now - self._partial_since < limits.handshake_timeout_ms
        is_whole = self._whole == self._fed
        if condition == RESOURCE_LIMIT_EXCEEDED and not is_idle and (is_whole or in_time):
            raise Wrong(f"the connection is closed: {close.error and close.error.description}")

    def judge(self, frames: list[Frame]) -> None:
        """Check frames that the broker has written, in their order."""
        for each in frames:
            self.unfetched.append(each)
            body = each.body
            if isinstance(body, Open):
                self._check_sole()
            elif isinstance(body, Begin):
                if body.remote_channel != each.channel:
                    raise Wrong(f"channel {each.channel} for {body.remote_channel}")
            elif each.channel in self._sessions and not isinstance(body, Header | Close):
                self._told(self._sessions[each.channel], each.channel, body)

    def _check_sole(self) -> None:
        """Raise Wrong if another open connection claims the same container-id exclusively, too."""
        if self.is_over:
            return
        mine = self._opened
        assert mine is not None
        for other in self.world.edges:
            theirs = other._opened
            if other is self or theirs is None or other.is_over:
                continue
            if theirs.container_id == mine.container_id and _claims(mine) and _claims(theirs):
                raise Wrong(f"container-id {mine.container_id} has two exclusive connections")

    def _told(self, session: Session, channel: int, body: Body | None) -> None:
        if isinstance(body, Transfer):
            self._told_transfer(session, body)
        elif isinstance(body, Disposition):
            session.told_disposition(body)
        elif isinstance(body, Flow):
            session.told_flow(body)
        elif isinstance(body, Attach):
            self._told_attach(session.links[int(body.handle)], body)
        elif isinstance(body, Detach):
            link = session.links[int(body.handle)]
            error = body.error.condition if body.error else None
            if link.state is State.ATTACHED:
                raise Wrong(f"link {link.attach.name} is detached for no reason: {error}")
            session.told_detach(link, error)
        elif isinstance(body, End):
            if not session.is_over:
                error = body.error.description if body.error else None
                raise Wrong(f"the session is ended for no reason: {error}")
            del self._sessions[channel]

    def _told_attach(self, link: Link, answer: Attach) -> None:
        terminus = answer.target if link.incoming else answer.source
        if (terminus is None) is not (
            link.state is State.REFUSED
        ) and link.state is not State.ENDED:
            raise Wrong(f"link {link.attach.name} is {link.state.value}, the answer says otherwise")
        link.only_resumes |= answer.incomplete_unsettled
        if not link.incoming and isinstance(terminus, Source):
            link.is_stored = terminus.durable == UNSETTLED_STATE
        node = link.node and (link.node.topic or link.node)
        if link.creation is not None and node is not None:
            assert isinstance(terminus, Source | Target)
            assert terminus.address is not None
            node.address = terminus.address
            if not node.is_deleted:
                self.world.model.nodes[node.kind, node.address] = node

    # -- deliveries

    def _told_transfer(self, session: Session, transfer: Transfer) -> None:
        link = session.links[transfer.handle]
        session.transfers_out += 1
        session.window -= 1
        if session.window < 0:
            raise Wrong("more transfers than the window has room for")
        if link in self.world.ended and link.pieces is not None:
            link.pieces = link.pieces if transfer.more else None
            return
        if link in self.world.ended and transfer.resume:
            self._resumed_before(session, link, transfer)
            return
        if link.state is not State.ATTACHED or link.incoming:
            raise Wrong(f"a delivery on link {link.attach.name}, which is {link.state.value}")
        if link.pieces is None:
            self._began(session, link, transfer)
        if link.pieces is None:
            return
        link.pieces.append(transfer.payload)
        if transfer.more:
            return
        whole = b"".join(link.pieces)
        link.pieces = None
        message = link.message
        assert message is not None
        if not whole.endswith(message.bare) or (NOTE in whole) is not message.is_noted:
            raise Wrong(f"message {message.id} has been changed")

    def _began(self, session: Session, link: Link, transfer: Transfer) -> None:
        link.pieces = []
        link.credit -= 1
        link.delivery_count += 1
        if link.credit < 0 and not (transfer.resume and link.delivery_count <= link.limit):
            raise Wrong(f"link {link.attach.name} gets more than its credit")
        link.credit = max(0, link.credit)
        if transfer.delivery_id != session.next_delivery_out:
            raise Wrong(f"delivery-id {transfer.delivery_id}, not {session.next_delivery_out}")
        session.next_delivery_out += 1
        assert transfer.tag is not None
        session.tags[transfer.delivery_id] = transfer.tag
        if transfer.resume:
            resumed = self._resumed(link, transfer)
            if resumed is None:
                link.pieces = None
                return
            entry = resumed
        elif link.has_due() or link.only_resumes:
            raise Wrong(f"link {link.attach.name} gets a new delivery before the resumed ones")
        else:
            entry = self._gave(link, transfer.payload)
        link.message = entry.message
        if (transfer.settled is True) is not link.sends_settled:
            raise Wrong(f"link {link.attach.name}: settled is {transfer.settled}")
        if not link.sends_settled:
            taken = None if link.browses else entry
            session.unsettled[transfer.delivery_id] = (link, taken)
        elif not link.browses:
            self.world.model.settle(entry, ACCEPTED, explicit=True)

    def _resumed(self, link: Link, transfer: Transfer) -> Entry | None:
        """Return the entry that the broker sends once more; None if it ends the delivery."""
        tag = transfer.tag
        due = [each for each, left in link.due.items() if not left.waits]
        if tag is None or due[:1] != [tag]:
            raise Wrong(f"link {link.attach.name} resumes {tag!r}, not the next of {due}")
        left = link.due.pop(tag)
        if bool(transfer.aborted) is not left.is_partial:
            raise Wrong(f"link {link.attach.name} resumes {tag!r}: aborted is {transfer.aborted}")
        if left.entry is not None:
            left.entry.node.held[left.entry] = link
            return left.entry
        if not transfer.settled or transfer.payload or not _alike(transfer.state, left.outcome):
            raise Wrong(f"link {link.attach.name} settles {tag!r} with {transfer.state}")
        return None

    def _resumed_before(self, session: Session, link: Link, transfer: Transfer) -> None:
        """Note a delivery that was resumed at once, before its link ended in the same round."""
        assert transfer.delivery_id is not None
        assert transfer.tag is not None
        session.next_delivery_out += 1
        session.tags[transfer.delivery_id] = transfer.tag
        link.pieces = [] if transfer.more else None
        self.world.suspended.resumed_before(link, transfer.delivery_id, transfer.tag)

    def _gave(self, link: Link, payload: bytes) -> Entry:
        at = payload.index(MARK) + len(MARK)
        number = int(payload[at : at + 6])
        durable, priority, ttl, first, count = [
            each.value if isinstance(each, Integer) else each for each in header_of(payload)
        ]
        world = self.world
        world.model.stats["delivered"] += 1
        entry = world.model.gave(link, number, (int(str(count or 0)), first is True))
        world.served.add(link)
        message = entry.message
        left = max(1, message.ttl - (world.model.now - message.arrived)) if message.ttl else None
        facts = (durable is True, 4 if priority is None else priority, ttl)
        if facts != (message.durable, message.priority, left):
            raise Wrong(f"message {number}: (durable, priority, ttl) is {facts}, ttl {left} is due")
        return entry


def _alike(one: AnyState | None, other: AnyState | None) -> bool:
    """Return whether both states are encoded alike."""
    encoded = []
    for state in (one, other):
        out = BytesWriter()
        if state is None:
            put_null(out)
        else:
            state.write(out)
        encoded.append(out.getvalue())
    return encoded[0] == encoded[1]


def _claims(opened: Open) -> bool:
    return SOLE_CONNECTION in opened.desired_capabilities
