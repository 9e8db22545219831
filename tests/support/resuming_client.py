"""A client that resumes by the engine's own rule and maps; its connections are cut at any byte."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from broker.amqp.outcomes import ACCEPTED, Accepted, Received
from broker.amqp.performatives import RCV_SECOND, RECEIVER, SENDER, Attach, Begin, Detach, Flow
from broker.amqp.resume import Resumption, TagState, decide, tag_state
from broker.amqp.terminus import CONNECTION_CLOSE, Source, Target
from broker.amqp.unsettled_map import (
    PeerStates,
    UnsettledStates,
    put_unsettled_map,
    read_unsettled_map,
)
from broker.links.peer import Peer
from tests.support.broker import RecordingOutlet, entrance
from tests.support.frames import (
    Body,
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    body_of,
    flow,
    frame,
    frames_in,
    message,
    opening,
)
from tests.support.stored_broker import StoredBroker

FRAME: Final = 512
"""Maximum bytes of a frame, both ways: maps of many deliveries are incomplete."""


Held = Accepted | Received | None
"""The state of a delivery at its client: its outcome, the part that has arrived, or null."""


class Wire:
    """A connection that carries `left` bytes, of both directions together, and is lost then."""

    def __init__(self, broker: StoredBroker, left: int) -> None:
        self.left = left
        self._broker: Final = broker
        self._transport: Final = RecordingOutlet()
        self._peer: Final = Peer(broker.container, self._transport, entrance())

    def send(self, data: bytes) -> None:
        """Let as much of `data` arrive as the connection carries."""
        carried = data[: self.left]
        self.left -= len(carried)
        self._peer.receive(carried)
        while self._peer.rests:
            self._broker.container.tick()

    def fetch(self) -> bytes:
        """Return what the broker has written, as far as the connection carries it."""
        data = bytes(self._transport.data)[: self.left]
        self._transport.data.clear()
        self.left -= len(data)
        return data

    def lose(self) -> None:
        self._peer.lost()


@dataclass
class ResumingClient:
    """One end of a link, with its unsettled deliveries by their tags.

    `eagerness` is the share of its deliveries that it decides about, or settles, when it may.
    `seen` counts what has happened, so that a test knows that it has tried everything.
    """

    broker: StoredBroker
    draw: random.Random
    unsettled: dict[bytes, Held] = field(default_factory=dict)
    eagerness: float = 1
    only_resumes: bool = False
    ids: dict[int, bytes] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    out: list[Body] = field(default_factory=list)

    def exchange(self, most: int) -> None:
        """Attach on a connection that carries `most` bytes, and work until nothing moves."""
        wire = Wire(self.broker, most)
        attach = self.attach()
        states: UnsettledStates = [*self.unsettled.items()]
        # two ends that list the same part of their maps each time may never find what both have
        self.draw.shuffle(states)
        self.only_resumes = not put_unsettled_map(attach, states, FRAME)
        begin = Begin(next_outgoing_id=0, incoming_window=1000, outgoing_window=1000)
        self.ids.clear()
        self.out = [begin, attach, *self.grant()]
        wire.send(opening(type(self).__name__, max_frame_size=FRAME) + self.written())
        kept = b""
        while wire.left:
            if self.draw.random() < 0.5:
                self.broker.catch_up()
            data = wire.fetch()
            if not data:
                self.broker.catch_up()
                data = wire.fetch()
            whole = whole_frames(kept + data)
            for each in frames_in(whole):
                self.took(each.body)
            kept = (kept + data)[len(whole) :]
            self.work()
            out = self.written()
            if not out and not data:
                break
            wire.send(out)
        wire.lose()

    def written(self) -> bytes:
        data = b"".join(map(frame, self.out))
        self.out = []
        return data

    def took(self, body: Body | None) -> None:
        """Handle a frame of the broker."""
        assert not isinstance(body, Detach), body.error
        if isinstance(body, Attach):
            theirs = read_unsettled_map(body.unsettled)
            self.only_resumes = self.only_resumes or body.incomplete_unsettled
            self.seen["incomplete"] += self.only_resumes
            self.attached(theirs, incomplete=body.incomplete_unsettled)

    def judge(self, tag: bytes, theirs: PeerStates, *, role: bool, incomplete: bool) -> Resumption:
        """Return what this end does about one of its deliveries."""
        listed = TagState.ABSENT
        if theirs is not None and tag in theirs:
            listed = tag_state(theirs[tag])
        ours = tag_state(self.unsettled[tag])
        verdict = decide(ours, listed, role=role, incomplete=incomplete)
        self.seen[verdict.name] += 1
        return verdict

    def attach(self) -> Attach:
        raise NotImplementedError

    def grant(self) -> list[Flow]:
        return []

    def attached(self, theirs: PeerStates, *, incomplete: bool) -> None:
        raise NotImplementedError

    def work(self) -> None:
        """Write what this end writes by itself."""
        raise NotImplementedError

    def is_done(self) -> bool:
        """Return whether this end has done all that it is to do, and settled it."""
        return not self.unsettled and not self.only_resumes

    def is_eager(self) -> bool:
        return self.draw.random() < self.eagerness


@dataclass
class ResumingSender(ResumingClient):
    """Sends a message under each tag, and settles once it has the outcome."""

    target: Target = field(
        default_factory=lambda: Target(address="q", expiry_policy=CONNECTION_CLOSE, timeout=60)
    )
    bodies: dict[bytes, bytes] = field(default_factory=dict)
    unsent: deque[bytes] = field(default_factory=deque)
    "The tags of messages that the broker does not have."
    due: deque[tuple[bytes, Resumption]] = field(default_factory=deque)
    credit: int = 0
    sent: int = 0

    def attach(self) -> Attach:
        self.due.clear()
        self.credit = self.sent = 0
        return attach_sender(target=self.target, rcv_settle_mode=RCV_SECOND)

    def attached(self, theirs: PeerStates, *, incomplete: bool) -> None:
        for tag in list(self.unsettled):
            verdict = self.judge(tag, theirs, role=SENDER, incomplete=incomplete)
            if verdict in (Resumption.FORGET, Resumption.SEND_ANEW):
                del self.unsettled[tag]
            if verdict is Resumption.SEND_ANEW:
                self.unsent.append(tag)
            elif verdict in (Resumption.SETTLE, Resumption.RESUME):
                self.due.append((tag, verdict))
        if self.only_resumes and theirs is not None:
            # the broker cannot see in an incomplete map that these are settled
            over = [tag for tag in theirs if tag not in self.unsettled]
            self.due.extend((tag, Resumption.SETTLE) for tag in over)

    def add(self, count: int) -> None:
        """Add as many messages to those that are to be sent."""
        for _ in range(count):
            number = len(self.bodies)
            tag = b"%032d" % number
            self.bodies[tag] = b"%d" % number
            self.unsent.append(tag)

    def is_done(self) -> bool:
        return super().is_done() and not self.unsent

    def took(self, body: Body | None) -> None:
        super().took(body)
        if isinstance(body, Flow) and body.handle >= 0:
            self.credit = int(body.delivery_count + body.link_credit) - self.sent
        elif isinstance(body, Disposition):
            assert body.state is ACCEPTED
            for number in [each for each in self.ids if body.covers(each)]:
                self.unsettled[self.ids[number]] = ACCEPTED

    def work(self) -> None:
        while self.due and self.credit > 0:
            tag, verdict = self.due.popleft()
            if verdict is Resumption.SETTLE:
                self._put(Transfer(tag=tag, resume=True, settled=True, state=ACCEPTED))
                self.unsettled.pop(tag, None)
            else:
                self._put_message(tag, resume=True)
        while self.unsent and self.credit > 0 and not self.only_resumes:
            tag = self.unsent.popleft()
            self.unsettled[tag] = None
            self._put_message(tag, resume=False)
        for number, tag in list(self.ids.items()):
            if self.unsettled.get(tag) is ACCEPTED and self.is_eager():
                self.out.append(Disposition(role=SENDER, first=number))
                del self.unsettled[tag], self.ids[number]

    def _put_message(self, tag: bytes, *, resume: bool) -> None:
        self.ids[self.sent] = tag
        payload = message(self.bodies[tag], durable=True)
        # a frame more, so that a cut may leave the half of a delivery
        self._put(Transfer(tag=tag, resume=resume, more=True, payload=payload[:40]))
        self.out.append(Transfer(delivery_id=None, tag=None, payload=payload[40:]))

    def _put(self, first: Transfer) -> None:
        self.out.append(
            Transfer(
                delivery_id=self.sent,
                tag=first.tag,
                settled=first.settled,
                more=first.more,
                state=first.state,
                resume=first.resume,
                payload=first.payload,
            )
        )
        self.sent += 1
        self.credit -= 1


@dataclass
class ResumingReceiver(ResumingClient):
    """Takes messages, which it accepts at some time, and forgets once the broker has settled."""

    credit: int = 0
    taken: list[bytes] = field(default_factory=list)
    tag: bytes = b""
    part: bytes = b""

    def attach(self) -> Attach:
        self.tag = self.part = b""
        source = Source(address="q", expiry_policy=CONNECTION_CLOSE, timeout=60)
        return attach_receiver(source=source, rcv_settle_mode=RCV_SECOND)

    def is_done(self) -> bool:
        return super().is_done() and not self.broker.queue().contents()

    def grant(self) -> list[Flow]:
        return [flow(handle=0, credit=self.credit, delivery_count=0)]

    def attached(self, theirs: PeerStates, *, incomplete: bool) -> None:
        for tag in list(self.unsettled):
            verdict = self.judge(tag, theirs, role=RECEIVER, incomplete=incomplete)
            if verdict is Resumption.FORGET:
                del self.unsettled[tag]

    def took(self, body: Body | None) -> None:
        super().took(body)
        if isinstance(body, Transfer):
            self._took_transfer(body)
        elif isinstance(body, Disposition) and body.role is SENDER:
            assert body.settled
            for number in [each for each in self.ids if body.covers(each)]:
                self.unsettled.pop(self.ids.pop(number), None)

    def _took_transfer(self, transfer: Transfer) -> None:
        if transfer.delivery_id is not None and not self.part:
            assert transfer.tag is not None
            self.tag = transfer.tag
        if transfer.resume:
            self._took_resumed(transfer)
            return
        if self.tag in self.ids.values():
            return  # the rest of a delivery that is resumed
        if not self.part:
            assert not self.only_resumes, "a new delivery after an incomplete map"
            assert self.tag not in self.unsettled
        self.part += transfer.payload
        if transfer.more:
            self.unsettled[self.tag] = Received(section_number=0, section_offset=len(self.part))
            return
        self.taken.append(body_of(self.part))
        self.part = b""
        self.unsettled[self.tag] = None
        assert transfer.delivery_id is not None
        self.ids[transfer.delivery_id] = self.tag

    def _took_resumed(self, transfer: Transfer) -> None:
        assert self.tag in self.unsettled
        if transfer.aborted or transfer.settled:
            self.seen["aborted" if transfer.aborted else "settled"] += 1
            del self.unsettled[self.tag]
            return
        self.seen["resumed"] += 1
        assert self.unsettled[self.tag] is None, "an outcome that the broker has been told"
        assert transfer.delivery_id is not None
        self.ids[transfer.delivery_id] = self.tag

    def work(self) -> None:
        for number, tag in self.ids.items():
            if tag in self.unsettled and self.unsettled[tag] is None and self.is_eager():
                self.unsettled[tag] = ACCEPTED
                self.out.append(Disposition(first=number, settled=False, state=ACCEPTED))


def whole_frames(data: bytes) -> bytes:
    """Return the protocol headers and frames at the beginning of `data` that are whole."""
    at = 0
    while len(data) - at >= 8:
        size = 8 if data[at : at + 4] == b"AMQP" else int.from_bytes(data[at : at + 4])
        if at + size > len(data):
            break
        at += size
    return data[:at]
