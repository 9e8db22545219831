"""F41: the broker is killed or stopped while a client holds deliveries that outlive the broker.

The client settles second: it remembers an outcome until the broker has settled the delivery, and
resumes all others. So it gets each message as a new one exactly once, unless it has released it.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from librt.strings import BytesWriter

from broker.amqp.encode import put_binary, put_compound, put_null
from broker.amqp.outcomes import ACCEPTED, RELEASED, Accepted, Released
from broker.amqp.performatives import RCV_SECOND, SENDER, Attach, Detach, Flow
from broker.amqp.terminus import CONNECTION_CLOSE, UNSETTLED_STATE, Source
from broker.amqp.unsettled_map import read_unsettled_map
from tests.conformance.frames import Body, Disposition, Transfer, frame, read_frame
from tests.faults.asking import Asking
from tests.faults.client import Client
from tests.faults.links import Lost, is_accepted
from tests.faults.plan import Plan, Report
from tests.faults.server import Server
from tests.support.frames import attach_receiver, body_of, flow, message
from tests.support.socket_client import SocketClient

MOMENTS: Final = ("attached", "sending", "settling", "settled", "detached", "before")

MESSAGES_MAX: Final = 40
"""Maximum messages that are sent before each cycle."""

WINDOW_S: Final = 0.02
"""Seconds within which most answers come."""

ROUNDS_MAX: Final = 100
"""Rounds in which all that is left has to be accepted."""

CREDIT: Final = 200
"""Credit of each link: more than the deliveries of an earlier one, and some new ones."""

ENDED: Final = (ConnectionError, asyncio.IncompleteReadError, TimeoutError)

Outcome = Accepted | Released


@dataclass
class Resumer:
    """A client of one source; its knowledge is kept over all ends of the broker.

    `unsettled` has the outcome of each delivery by its tag, None before there is one; `bodies` are
    those of these deliveries. `held` are the bodies that it has got and not released, `done` those
    that the broker has settled as accepted.
    """

    queue: str
    chosen: random.Random
    report: Report
    sent: int = 0
    unsettled: dict[bytes, Outcome | None] = field(default_factory=dict)
    bodies: dict[bytes, bytes] = field(default_factory=dict)
    ids: dict[int, bytes] = field(default_factory=dict)
    held: Counter[bytes] = field(default_factory=Counter)
    done: list[bytes] = field(default_factory=list)
    resumed: int = 0
    delivery_count: int = 0

    # -- what it says

    def encoded(self) -> bytes:
        """Return the unsettled map for an attach."""
        content, out = BytesWriter(), BytesWriter()
        for tag, state in self.unsettled.items():
            put_binary(content, tag)
            if state is None:
                put_null(content)
            else:
                state.write(content)
        put_compound(out, 0xC1, content, count=2 * len(self.unsettled))
        return out.getvalue()

    async def attach(self, client: SocketClient) -> None:
        """Attach the link; compare the broker's map with what it may have forgotten."""
        await client.open("resumer")
        await client.begin()
        source = Source(
            address=self.queue,
            durable=UNSETTLED_STATE,
            expiry_policy=CONNECTION_CLOSE,
            timeout=300,
            capabilities=["queue"],
        )
        attach = attach_receiver(
            name="resuming",
            source=source,
            unsettled=self.encoded(),
            rcv_settle_mode=RCV_SECOND,
        )
        client.send_bytes(frame(attach))
        answer = read_frame(await client.frame()).body
        assert isinstance(answer, Attach)
        assert answer.source is not None
        self._check(answer.source.durable == UNSETTLED_STATE, "the source is not durable")
        theirs = read_unsettled_map(answer.unsettled) or {}
        self.ids = {}
        self.delivery_count = 0
        for tag, state in list(self.unsettled.items()):
            if tag in theirs:
                continue
            self._check(state is not None, f"delivery {tag.hex()} is forgotten")
            self._settled(tag)

    def _check(self, holds: bool, problem: str) -> None:
        self.report.check(holds, f"F41: {problem}")

    def decide(self, client: SocketClient) -> None:
        """Send outcomes of some deliveries; the broker is to settle them."""
        for number, tag in self.ids.items():
            if self.unsettled.get(tag, ACCEPTED) is None and self.chosen.random() < 0.6:
                outcome = RELEASED if self.chosen.random() < 0.2 else ACCEPTED
                self.unsettled[tag] = outcome
                told = Disposition(first=number, last=number, settled=False, state=outcome)
                client.send_bytes(frame(told))

    # -- what it hears

    def hear(self, body: Body) -> None:
        """Take a frame of the broker."""
        if isinstance(body, Transfer):
            self._received(body)
        elif isinstance(body, Disposition) and body.role is SENDER and body.settled:
            last = body.first if body.last is None else body.last
            for number in range(body.first, last + 1):
                tag = self.ids.pop(number, None)
                if tag is not None:
                    self._settled(tag)

    def _received(self, transfer: Transfer) -> None:
        tag, number = transfer.tag, transfer.delivery_id
        assert tag is not None
        assert number is not None
        known = tag in self.unsettled
        self._check(known is transfer.resume, f"{transfer} of a delivery known: {known}")
        if transfer.settled:
            if known:
                self._settled(tag)
            return
        self.ids[number] = tag
        if known:
            self.resumed += 1
            return
        body = body_of(transfer.payload)
        self.unsettled[tag] = None
        self.bodies[tag] = body
        self.held[body] += 1
        self._check(self.held[body] == 1, f"message {body!r} came twice")

    def _settled(self, tag: bytes) -> None:
        """Forget a delivery that the broker has settled, with the outcome that it was given."""
        outcome, body = self.unsettled.pop(tag), self.bodies.pop(tag)
        if isinstance(outcome, Released):
            self.held[body] -= 1
        else:
            self.done.append(body)

    # -- cycles

    def grant(self, client: SocketClient, *, drain: bool = False) -> None:
        count = self.delivery_count
        client.send(flow(handle=0, credit=CREDIT, delivery_count=count, drain=drain))

    async def take_all(self, client: SocketClient) -> None:
        """Drain the link."""
        self.grant(client, drain=True)
        while True:
            body = read_frame(await client.frame()).body
            self.hear(body)
            if isinstance(body, Flow) and body.handle == 0 and body.link_credit == 0:
                self.delivery_count = int(body.delivery_count)
                return

    async def hear_settlements(self, client: SocketClient) -> None:
        """Wait until the broker has settled all that have an outcome."""
        while any(self.unsettled[tag] is not None for tag in self.ids.values()):
            self.hear(read_frame(await client.frame()).body)

    async def hear_rest(self, client: SocketClient) -> None:
        """Take what the broker has sent before its end."""
        try:
            while True:
                self.hear(read_frame(await client.frame()).body)
        except ENDED:
            pass

    async def until(self, moment: str, client: SocketClient) -> None:
        """Work until `moment`."""
        await self.attach(client)
        if moment == "attached":
            return
        if moment == "sending":
            self.grant(client)
        else:
            await self.take_all(client)
            self.decide(client)
        if moment in ("settled", "detached"):
            await self.hear_settlements(client)
        if moment == "detached":
            client.send(Detach(handle=0))
            await client.frame()
        await client.writer.drain()
        if moment in ("sending", "settling"):
            await asyncio.sleep(self.chosen.uniform(0, WINDOW_S))

    async def cycle(self, port: int, moment: str, end: Callable[[], Awaitable[object]]) -> None:
        """Send messages, resume, and work until `moment`, when `end` ends the broker."""
        await self.send(port, self.chosen.randint(1, MESSAGES_MAX))
        if moment == "before":
            await end()
            return
        async with SocketClient(port, read_limit=2**20, patience_s=20) as client:
            await self.until(moment, client)
            await end()
            await self.hear_rest(client)

    async def send(self, port: int, count: int) -> None:
        """Send `count` durable messages more, all of which are accepted."""
        async with Client(port, "filler") as client:
            sender = await client.sender(self.queue)
            outcomes = []
            for _ in range(count):
                await sender.room()
                body = b"%d" % self.sent
                self.sent += 1
                outcomes.append(await sender.send(message(body, durable=True)))
            for outcome in outcomes:
                assert is_accepted(await outcome)

    async def finish(self, port: int) -> None:
        """Accept all that is left; check that each message has been accepted once."""
        async with SocketClient(port, read_limit=2**20, patience_s=20) as client:
            await self.attach(client)
            for _ in range(ROUNDS_MAX):
                await self.take_all(client)
                self.decide(client)
                await self.hear_settlements(client)
                if len(self.done) >= self.sent:
                    break
        missing = self.sent - len(set(self.done))
        self._check(missing == 0, f"{missing} of {self.sent} messages are lost")
        self._check(Counter(self.done).most_common(1)[0][1] == 1, "a message was accepted twice")
        async with Client(port, "operator") as operator:
            record = (await (await Asking.of(operator)).ask("READ", "queue", self.queue)).map
        self._check(record["messages"] == 0, f"what is left is {record}")


async def receivers_killed(plan: Plan) -> Report:
    """F41: a receiver resumes its deliveries after any end of the broker, and takes all once."""
    chosen = random.Random(plan.seed)
    report = Report()
    resumer = Resumer(plan.address("f41"), chosen, report)
    moments: Counter[str] = Counter()
    server = Server(plan.place)
    await server.start()
    try:
        for number in range(plan.cycles):
            moment = MOMENTS[number] if number < len(MOMENTS) else chosen.choice(MOMENTS)
            stops = number % 5 == 4
            await resumer.cycle(server.port, moment, server.stop if stops else server.kill)
            await server.start()
            moments[f"{moment}, {'stopped' if stops else 'killed'}"] += 1
            plan.step()
        await resumer.finish(server.port)
        report.check(await server.stop() == 0, "F41: the broker did not end well")
    except (Lost, *ENDED) as lost:
        report.check(False, f"F41: {lost!r}")
    finally:
        await server.close()
    report.lines.append(
        f"F41 end of the broker under a receiver that resumes: {plan.cycles} times,"
        f" {resumer.sent} messages, {resumer.resumed} deliveries resumed,"
        f" {dict(sorted(moments.items()))}"
    )
    return report
