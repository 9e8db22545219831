"""A broker without sockets on simulated time, and clients that exchange frames with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from broker.amqp.frames import AMQP_HEADER
from broker.amqp.limits import Limits
from broker.amqp.performatives import Attach, Begin, Close, Detach, End, Flow, Open
from broker.amqp.sasl import ANONYMOUS, PLAIN, plain_credentials
from broker.journal import Journal
from broker.links.access import Right
from broker.links.authenticator import Authenticator, Exchange
from broker.links.container import Container
from broker.links.peer import Peer
from broker.links.transport import Transport
from broker.links.watcher import Watcher
from broker.log_events import Notice
from broker.management.management import Management
from broker.routing.addresses.policy import AddressPolicy, Policies
from broker.routing.credit.memory import UNBOUNDED
from broker.routing.queues.queue import Queue
from broker.routing.router import Router
from broker.security.access import AccessRules
from broker.security.decision import Decision
from broker.security.entrance import AMQP, Entrance
from broker.security.identity import ADMIN, APPLICATION, Identity
from broker.stats import Stats
from broker.windows import Windows
from storage.api import Store
from storage.memory import MemoryStore
from tests.support.clock import SimulatedClock
from tests.support.frames import (
    Body,
    Disposition,
    Frame,
    Header,
    Transfer,
    attach_receiver,
    attach_sender,
    flow,
    frame,
    frames_in,
    message,
    opening,
)

P = TypeVar("P", bound=Body)

CREDIT = 100


class RecordingOutlet(Transport):
    """Records what a peer writes; a test itself reports it as blocked, as it is never full."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.writes = 0
        self.closed = False
        self.paused = False
        self.aborted = False
        self.unsent = 0

    def unsent_bytes(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.aborted = True

    def write(self, chunks: list[bytes]) -> None:
        assert not self.closed, "written after close"
        self.writes += 1
        self.data += b"".join(chunks)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def close(self) -> None:
        self.closed = True


class Doorman(Authenticator):
    """An authenticator with fixed passwords; a `slow` one answers only when `answer` is called."""

    def __init__(
        self,
        passwords: dict[str, str] | None = None,
        *,
        anonymous: bool = True,
        slow: bool = False,
        administrators: Sequence[str] = ("",),
    ) -> None:
        self.passwords = passwords or {}
        self.anonymous = anonymous
        self.slow = slow
        self.administrators = administrators
        self.waiting: list[tuple[Peer, str, bytes]] = []

    def begin(self, entrance: Entrance) -> Exchange:  # noqa: ARG002
        return DoormanExchange(self)

    async def identify(self, user: str, password: str, entrance: Entrance) -> Identity | None:  # noqa: ARG002
        return self.identity(user) if self.passwords.get(user) == password else None

    def current(self, identity: Identity) -> Identity | None:
        return self.identity(identity.user)

    def identity(self, user: str) -> Identity:
        role = ADMIN if user in self.administrators else APPLICATION
        return Identity(user, roles=frozenset({role}))

    def authenticate(self, peer: Peer, mechanism: str, response: bytes) -> None:
        self.waiting.append((peer, mechanism, response))
        if not self.slow:
            self.answer()

    def answer(self) -> None:
        """Answer the peer that has waited longest."""
        peer, mechanism, response = self.waiting.pop(0)
        if mechanism == ANONYMOUS and self.anonymous:
            peer.authenticated(self.identity(""))
        elif mechanism == PLAIN:
            credentials = plain_credentials(response)
            if self.passwords.get(credentials.user) == credentials.password:
                peer.authenticated(self.identity(credentials.user))
            else:
                peer.rejected("wrong password")
        else:
            peer.rejected(f"mechanism {mechanism}")
        if self.slow:
            peer.container.run_round()


class DoormanExchange(Exchange):
    """The login of one connection with a `Doorman`."""

    def __init__(self, doorman: Doorman) -> None:
        self.doorman = doorman

    def mechanisms(self) -> list[str]:
        doorman = self.doorman
        return [
            *([PLAIN] if doorman.passwords else []),
            *([ANONYMOUS] if doorman.anonymous else []),
        ]

    def anonymous(self) -> Identity | None:
        return self.doorman.identity("") if self.doorman.anonymous else None

    def start(self, peer: Peer, mechanism: str, response: bytes | None) -> None:
        self.doorman.authenticate(peer, mechanism, response or b"")


def log_in(client: Client, user: str) -> None:
    """Make `client`, whose connection is open, one of `user` as its broker's doorman knows it."""
    doorman = client.broker.container.authenticator
    assert isinstance(doorman, Doorman)
    client.peer.identity = doorman.identity(user)


def entrance(host: str = "127.0.0.1", port: int = 1) -> Entrance:
    """Return how a client of the tests has come in."""
    return Entrance(listener=AMQP, kind=AMQP, host=host, port=port)


class RecordingWatcher(Watcher):
    """Records the events of which an operator would be informed."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.errors: list[Exception] = []

    def opened(self, peer: Peer) -> None:
        self.events.append(f"opened {peer.container_id}")

    def refused(self, peer: Peer, reason: str) -> None:
        self.events.append(f"refused {peer.container_id}: {reason}")

    def denied(self, peer: Peer, right: Right, decision: Decision) -> None:
        refusal = decision.text(right.verb, right.resource)
        self.events.append(f"denied {peer.container_id}: {refusal}")

    def not_renewed(self, peer: Peer, reason: str) -> None:
        self.events.append(f"not renewed {peer.container_id}: {reason}")

    def limited(self, peer: Peer, refusal: str) -> None:
        self.events.append(f"limited {peer.container_id}: {refusal}")

    def closed(self, peer: Peer, reason: str) -> None:
        self.events.append(f"closed {peer.container_id}: {reason}")

    def stalled(self, peer: Peer, timeout_ms: int) -> None:
        self.events.append(f"stalled {peer.container_id}: {timeout_ms} ms")

    def managed(self, identity: Identity, address: str, change: dict[str, str]) -> None:  # noqa: ARG002
        self.events.append(f"managed {identity.name()}: {' '.join(change.values())}")

    def noticed(self, notice: Notice) -> None:
        self.events.append(f"noticed {notice.text}")

    def failed(self, peer: Peer, error: Exception) -> None:
        self.events.append(f"failed {peer.container_id}")
        self.errors.append(error)


class Broker:
    """A container with everything behind it, in which nothing happens unless a test causes it."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        authenticator: Authenticator | None = None,
        access: AccessRules | None = None,
        watcher: RecordingWatcher | None = None,
        policy: AddressPolicy | None = None,
        patterns: Sequence[tuple[str, AddressPolicy]] = (),
        credit: int = CREDIT,
        product: dict[str, object] | None = None,
        store: Store | None = None,
        pacing_mark: int = 2000,
        hold_us: int = 0,
        clock: SimulatedClock | None = None,
        memory_max: int = UNBOUNDED,
        paging_window: int = -1,
    ) -> None:
        self.clock = clock or SimulatedClock()
        self.stats = Stats()
        self.watcher = watcher or RecordingWatcher()
        self.store = store or MemoryStore()
        self.journal = Journal(self.store, self.clock, hold_us=hold_us, stats=self.stats)
        self.router = Router(
            clock=self.clock,
            commit_delay=self.journal.commit_delay,
            commits_take_time=not self.store.commits_at_once,
            stats=self.stats,
            policies=Policies(list(patterns), policy or AddressPolicy(), "queue"),
            pacing_mark=pacing_mark,
            memory_max=memory_max,
            paging_window=paging_window,
        )
        self.container = Container(
            name="broker",
            router=self.router,
            journal=self.journal,
            clock=self.clock,
            stats=self.stats,
            limits=limits or Limits(),
            authenticator=authenticator or Doorman(),
            access=access or AccessRules(),
            watcher=self.watcher,
            credit=credit,
            product=product or {"product": "test"},
        )
        self.windows = Windows(self.store, self.journal, self.router.context.paging)
        self.container.service = Management(self.container)

    def dial(self) -> Client:
        """Return a client that is connected and has sent nothing."""
        return Client(self)

    def connect(self, container_id: str = "client", **fields: object) -> Client:
        """Return a client whose connection is open on both sides."""
        client = self.dial()
        client.send_bytes(opening(container_id, **fields))
        assert client.expect(Header).data == AMQP_HEADER
        client.expect(Open)
        assert client.peer.is_open, "not let in"
        return client

    def session(self, container_id: str = "client", **fields: object) -> Client:
        """Return a client with a session on channel 0."""
        client = self.connect(container_id, **fields)
        client.begin()
        return client

    def advance(self, milliseconds: int) -> None:
        """Let time pass, and run the timers that are due."""
        self.clock.advance(milliseconds)
        self.container.tick()

    def queues(self) -> list[Queue]:
        """Return all queues, including those of named subscriptions."""
        subscriptions = [each.queue for each in self.router.subscriptions.named.values()]
        return [*self.router.queues.values(), *subscriptions]

    def queue(self, address: str = "q") -> Queue:
        return self.router.queues[address]

    def fill(self, address: str = "q", count: int = 1, *, kind: str = "queue") -> None:
        """Send `count` messages with the bodies `0`, `1`, … to a node, from a client of its own."""
        sender = self.session("filler")
        sender.attach(attach_sender(address, kind=kind))
        sender.expect(Flow)
        for number in range(count):
            payload = message(str(number).encode())
            sender.send(Transfer(delivery_id=number, settled=True, payload=payload))
        sender.hang_up()


class Client:
    """The client end of a connection: sends frames, and keeps received frames in their order.

    `transport` and `way_in` replace those of a client of the first listener.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        transport: RecordingOutlet | None = None,
        way_in: Entrance | None = None,
    ) -> None:
        self.broker = broker
        self.transport = transport or RecordingOutlet()
        self.peer = Peer(broker.container, self.transport, way_in or entrance())
        self._frames: list[Frame] = []
        self._transfers_out: Counter[int] = Counter()
        self._transfers_in: Counter[int] = Counter()

    # -- out

    def send_bytes(self, data: bytes) -> None:
        self.peer.receive(data)
        while self.peer.rests:
            self.broker.container.tick()

    def send(self, *bodies: Body, channel: int = 0) -> None:
        """Send frames, all in one piece."""
        self._transfers_out[channel] += sum(isinstance(each, Transfer) for each in bodies)
        self.send_bytes(b"".join(frame(each, channel) for each in bodies))

    def hang_up(self) -> None:
        """Lose the socket."""
        self.peer.lost()

    def begin(self, channel: int = 0, **fields: object) -> Begin:
        given: dict[str, object] = {
            "next_outgoing_id": 0,
            "incoming_window": 1000,
            "outgoing_window": 1000,
            **fields,
        }
        self.send(Begin(**given), channel=channel)  # type: ignore[arg-type]
        return self.expect(Begin)

    def attach(self, attach: Attach, *, channel: int = 0) -> Attach:
        """Attach a link and return the answer, which must be an attach."""
        self.send(attach, channel=channel)
        return self.expect(Attach)

    def attach_sender(self, address: str | None = "q", **fields: object) -> Attach:
        """Attach a link to send on, and receive its first credit."""
        answer = self.attach(attach_sender(address, **fields))  # type: ignore[arg-type]
        self.expect(Flow)
        return answer

    def attach_receiver(
        self, address: str | None = "q", *, credit: int = 0, **fields: object
    ) -> Attach:
        """Attach a link to receive on, and grant `credit`."""
        answer = self.attach(attach_receiver(address, **fields))  # type: ignore[arg-type]
        if credit:
            handle = fields.get("handle", 0)
            assert isinstance(handle, int)
            self.flow(handle=handle, credit=credit, delivery_count=0)
        return answer

    def flow(self, *, channel: int = 0, **fields: object) -> None:
        """Send a flow whose transfer-ids are those of the session so far."""
        self._look()
        given: dict[str, object] = {
            "next_outgoing_id": self._transfers_out[channel],
            "next_incoming_id": self._transfers_in[channel],
            **fields,
        }
        self.send(flow(**given), channel=channel)  # type: ignore[arg-type]

    def transfer(self, number: int = 0, body: bytes = b"hello", **fields: object) -> None:
        """Send a whole message as delivery `number`."""
        given: dict[str, object] = {
            "delivery_id": number,
            "tag": b"%d" % number,
            "payload": message(body),
            **fields,
        }
        self.send(Transfer(**given))  # type: ignore[arg-type]

    # -- in

    def _look(self) -> None:
        data = bytes(self.transport.data)
        self.transport.data.clear()
        for each in frames_in(data):
            self._frames.append(each)
            self._transfers_in[each.channel] += isinstance(each.body, Transfer)

    def frames(self) -> list[Frame]:
        """Return all frames that have arrived since the last call."""
        self._look()
        frames = self._frames
        self._frames = []
        return frames

    def put_back(self, frames: list[Frame]) -> None:
        """Put frames back, so that they are the next to be returned."""
        self._frames = [*frames, *self._frames]

    def bodies(self) -> list[Body | None]:
        """Return the bodies of `frames()`, without channels."""
        return [each.body for each in self.frames()]

    def expect_frame(self, kind: type[P]) -> tuple[int, P]:
        """Return channel and body of the next frame, which must be of type `kind`."""
        frames = self.frames()
        assert frames, f"{kind.__name__} was expected, nothing came"
        body = frames[0].body
        assert isinstance(body, kind), f"{kind.__name__} was expected, not {describe(frames)}"
        self._frames = frames[1:]
        return frames[0].channel, body

    def expect(self, kind: type[P]) -> P:
        """Return the body of the next frame, which must be of type `kind`."""
        return self.expect_frame(kind)[1]

    def expect_last(self, kind: type[P]) -> P:
        """Return the body of the next frame, which must be of type `kind` and the last."""
        body = self.expect(kind)
        self.expect_nothing()
        return body

    def expect_nothing(self) -> None:
        frames = self.frames()
        assert not frames, f"nothing was expected, not {describe(frames)}"

    def expect_deliveries(self, *bodies: bytes) -> list[Transfer]:
        """Check that the remaining frames are whole deliveries with these bodies; return them."""
        from tests.support.frames import body_of

        transfers = [self.expect(Transfer) for _ in bodies]
        assert [body_of(each.payload) for each in transfers] == list(bodies)
        self.expect_nothing()
        return transfers

    def expect_refusal(self, condition: str) -> Attach:
        """Return an attach without the requested terminus; a detach must close with `condition`."""
        answer = self.expect(Attach)
        assert (answer.target if answer.role else answer.source) is None
        detach = self.expect(Detach)
        assert detach.handle == answer.handle
        assert detach.closed
        assert detach.error is not None
        assert detach.error.condition == condition, detach.error.description
        return answer

    def expect_detach(self, condition: str | None = None, *, handle: int = 0) -> Detach:
        """Return a detach that closes the link `handle`, with `condition` or without an error."""
        detach = self.expect(Detach)
        assert detach.handle == handle
        assert detach.closed
        assert (detach.error.condition if detach.error else None) == condition
        return detach

    def expect_end(self, condition: str | None = None) -> End:
        """Return an end with `condition`, or without an error, which must be the last frame."""
        end = self.expect_last(End)
        assert (end.error.condition if end.error else None) == condition
        return end

    def expect_close(self, condition: str) -> Close:
        """Return a close with `condition`, the last frame; the socket stays open for our answer."""
        close = self.expect_last(Close)
        assert close.error is not None
        assert close.error.condition == condition, close.error.description
        assert not self.is_closed()
        return close

    def is_closed(self) -> bool:
        """Return whether the broker has closed the socket."""
        return self.transport.closed


def describe(frames: list[Frame]) -> str:
    """Return a text about frames, for a failed assertion."""
    return ", ".join(
        "empty" if each.body is None else f"{type(each.body).__name__}{_facts(each.body)}"
        for each in frames
    )


def _facts(body: Body) -> str:
    if isinstance(body, Transfer | Disposition | Header):
        return repr(body)
    error = getattr(body, "error", None)
    return "" if error is None else f"({error.condition}: {error.description})"
