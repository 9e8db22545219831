"""F13 and F14: a connection is cut before the client learns what the broker has done."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from broker.amqp.descriptors import DISCHARGE
from tests.conformance.frames import Disposition, Transfer, read_frame
from tests.faults.checkers import judge
from tests.faults.client import Client
from tests.faults.history import Action, Phase, Recorder
from tests.faults.links import is_accepted
from tests.faults.plan import Plan, Report
from tests.faults.reading import Reading
from tests.faults.server import Server
from tests.faults.workload import GONE, Consumer, Station, Worker, all_drained

Judge = Callable[[bytes, bool], bool]
"""Decides whether to cut the connection now.

The arguments are the frame to be passed on next, and whether its direction is to the broker. If the
result is True, that frame is not passed on.
"""

RESET: Final = struct.pack("ii", 1, 0)
"""Value of SO_LINGER with which a close sends an RST."""


class FaultProxy:
    """A proxy between clients and a broker that cuts a connection at a frame picked by `judge`."""

    def __init__(self, port: int, judge: Judge) -> None:
        self._broker_port: Final = port
        self._judge: Final = judge
        self._ways: Final[set[asyncio.Task[None]]] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for way in self._ways:
            way.cancel()
        await asyncio.gather(*self._ways, return_exceptions=True)

    async def _connected(
        self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        broker, to_broker = await asyncio.open_connection("127.0.0.1", self._broker_port)
        ends = (to_client, to_broker)
        for source, sink, inward in ((client, to_broker, True), (broker, to_client, False)):
            way = asyncio.create_task(self._pass_on(source, sink, inward=inward, ends=ends))
            self._ways.add(way)
            way.add_done_callback(self._ways.discard)

    async def _pass_on(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        *,
        inward: bool,
        ends: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
    ) -> None:
        with suppress(*GONE):
            while True:
                head = await source.readexactly(8)
                if head[:4] != b"AMQP":
                    head += await source.readexactly(int.from_bytes(head[:4]) - 8)
                    if self._judge(head, inward):
                        break
                sink.write(head)
                await sink.drain()
        for end in ends:
            reset(end)


def reset(end: asyncio.StreamWriter) -> None:
    """Close the stream with an RST; the data in its buffers is lost."""
    raw = end.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    end.transport.abort()


class Cut:
    """Picks the frame that a proxy does not pass on any more.

    This is number `at` of its kind, counted from 1; with `answers`, the broker's answer to that
    discharge. `happened` is True once that frame has been seen.
    """

    def __init__(self, at: int, *, answers: bool) -> None:
        self._at: Final = at
        self._answers: Final = answers
        self._seen = 0
        self._discharge: int | None = None
        self.happened = False

    def outcome(self, raw: bytes, inward: bool) -> bool:
        """Return whether this is the broker's disposition number `at`."""
        if not inward and isinstance(read_frame(raw).body, Disposition):
            self._seen += 1
            self.happened = self.happened or self._seen == self._at
            return self._seen == self._at
        return False

    def discharge(self, raw: bytes, inward: bool) -> bool:
        """Return whether this is discharge number `at`, or if `answers`, the broker's answer."""
        body = read_frame(raw).body
        if inward and isinstance(body, Transfer) and is_discharge(body.payload):
            self._seen += 1
            if self._seen == self._at:
                self._discharge = body.delivery_id
                self.happened = not self._answers
                return not self._answers
        if isinstance(body, Disposition) and not inward and self._discharge is not None:
            self.happened = self.happened or body.covers(self._discharge)
            return body.covers(self._discharge)
        return False


def is_discharge(payload: bytes) -> bool:
    """Return whether the message asks the coordinator to end a transaction (4.5.2)."""
    return payload.startswith(b"\x00\x53\x77\x00\x53" + bytes([DISCHARGE]))


# ---- F13

ONCE: Final = """\
[[address]]
pattern = "*f13-once-*"
duplicate_window = 1000
"""
"""Settings with addresses that accept a message that is sent again, and do not store it twice."""


class Persistent(Worker):
    """Sends `count` messages; the next run sends those not accepted again, under the same names."""

    def __init__(self, station: Station, seed: int, *, address: str, count: int) -> None:
        super().__init__(station, "sure", seed)
        self._address: Final = address
        self._left = [f"sure.{number}" for number in range(count)]
        self.resent = 0

    async def run(self, port: int) -> None:
        """Send the messages that were not accepted yet, over one connection to `port`."""
        with suppress(*GONE):
            async with Client(port, self.name) as client:
                self.attaches += 1
                sender = await client.sender(self._address)
                for subject in list(self._left):
                    told = await self.send(sender, self._address, subject=subject)
                    if is_accepted(await told):
                        self._left.remove(subject)

    @property
    def unanswered(self) -> int:
        return len(self._left)


async def outcomes_cut_off(plan: Plan) -> Report:
    """F13: the broker has stored a message, its outcome is lost, and the sender sends it again."""
    chosen = random.Random(plan.seed)
    report = Report()
    server = Server(replace(plan.place, settings=ONCE))
    doubts = twice = repeats = kept = 0
    await server.start()
    try:
        for number in range(plan.cycles):
            once = number % 2 == 1
            queue = plan.address(f"f13-{'once' if once else 'plain'}-{number}")
            one = Recorder()
            station = Station(one)
            sender = Persistent(station, plan.seed, address=queue, count=20)
            cut = Cut(chosen.randint(1, 20), answers=True)
            async with FaultProxy(server.port, cut.outcome) as proxy:
                await sender.run(proxy.port)
            doubts += cut.happened and not once
            repeats += cut.happened and once
            if chosen.random() < 0.3:
                await server.kill()
                await server.start()
            await sender.run(server.port)
            report.check(sender.unanswered == 0, f"F13: {sender.unanswered} never accepted")
            drained = await all_drained(
                [Consumer(station, "drain", plan.seed, address=queue)], server.port
            )
            reading = Reading(one.events, alone=drained)
            copies = sum(len(receipts) > 1 for receipts in reading.receipts.values())
            report.check(not once or copies == 0, f"F13: {copies} there twice, though detected")
            twice += 0 if once else copies
            kept += copies if once else 0
            report.problems += [f"F13: {problem}" for problem in judge(reading).problems()]
            plan.step()
        report.check(await server.stop() == 0, "F13: the broker did not end well")
    finally:
        await server.close()
    report.lines.append(
        f"F13 outcomes cut off: {doubts} in doubt and sent again, {twice} of them there twice, as"
        f" is allowed; with duplicate detection {repeats}, {kept} of them there twice"
    )
    report.check(twice <= doubts, "F13: more are stored twice than were in doubt")
    return report


# ---- F14


class Swapper(Worker):
    """In one transaction, takes all messages of one queue and sends as many to another."""

    def __init__(self, station: Station, seed: int, *, source: str, target: str) -> None:
        super().__init__(station, "swap", seed)
        self._source: Final = source
        self._target: Final = target

    async def prepare(self, port: int, count: int) -> None:
        async with Client(port, self.name) as client:
            sender = await client.sender(self._source)
            for _ in range(count):
                await (await self.send(sender, self._source))

    async def run(self, port: int) -> str:
        """Run one transaction; return its name in the history, empty if none was declared."""
        name = ""
        with suppress(*GONE):
            async with Client(port, self.name) as client:
                self.attaches += 1
                transactions = await client.transactions()
                sender = await client.sender(self._target)
                receiver = await client.receiver(self._source)
                transaction = await transactions.declare()
                name = self.named(transaction)
                while (delivery := await receiver.next(0.1)) is not None:
                    subject = self.received(delivery, self._source)
                    await self.send(sender, self._target, transaction=transaction)
                    self.settled(subject, self._source, transaction=transaction)
                    receiver.accept(delivery, transaction=transaction)
                self.note(Phase.INVOKE, Action.COMMIT, name)
                state = await transactions.discharge(transaction)
                if state is not None:
                    told = Phase.OK if is_accepted(state) else Phase.FAIL
                    self.note(told, Action.COMMIT, name)
        return name


async def discharges_cut_off(plan: Plan) -> Report:
    """F14: the connection is cut before the broker has the discharge, or the client its answer."""
    chosen = random.Random(plan.seed)
    report = Report()
    ends = {True: 0, False: 0}
    torn = 0
    server = Server(plan.place)
    await server.start()
    try:
        for number in range(plan.cycles):
            recorder = Recorder()
            station = Station(recorder)
            source, target = (plan.address(f"f14-{number}-{end}") for end in ("from", "to"))
            swapper = Swapper(station, plan.seed, source=source, target=target)
            await swapper.prepare(server.port, 5)
            done = number % 2 == 0
            cut = Cut(1, answers=done)
            async with FaultProxy(server.port, cut.discharge) as proxy:
                name = await swapper.run(proxy.port)
            report.check(cut.happened, "F14: the connection was not cut")
            # the proxy has seen what the client has not: whether the broker committed
            recorder.note(Phase.OK if done else Phase.FAIL, Action.COMMIT, name)
            if chosen.random() < 0.5:
                await server.kill()
                await server.start()
            drained = await all_drained(
                [
                    Consumer(station, f"drain-{each}", plan.seed, address=each)
                    for each in (source, target)
                ],
                server.port,
            )
            verdict = judge(Reading(recorder.events, alone=drained))
            report.problems += [f"F14: {problem}" for problem in verdict.problems()]
            torn += len(verdict.findings["torn-tx"])
            ends[done] += 1
            plan.step()
        report.check(await server.stop() == 0, "F14: the broker did not end well")
    finally:
        await server.close()
    report.lines.append(
        f"F14 discharges cut off: {ends[True]} after the broker's yes, {ends[False]} before it was"
        f" asked; torn {torn}"
    )
    return report
