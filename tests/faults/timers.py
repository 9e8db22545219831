"""F26: messages that expire or fall due while the broker is down."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Final

from librt.strings import BytesWriter

from broker.amqp.encode import put_binary, put_descriptor, put_value
from broker.amqp.sections import put_header
from broker.amqp.types import Map, Symbol, Timestamp
from tests.faults.client import Client
from tests.faults.links import is_accepted
from tests.faults.plan import Plan, Report, spread
from tests.faults.server import Server

DELAY_ANNOTATION: Final = "x-opt-delivery-time"

KINDS: Final = ("plain", "short", "long", "due", "later", "due-and-short")
"""Kinds of messages: with a ttl, a delivery time, both, or neither."""

DOWN_MS: Final = 700
"""Duration in ms for which the broker is down; short ttls and near delivery times end within it."""

LATER_MS: Final = 2500
LATE_MS: Final = 1000
"""Maximum lateness in ms that the machine can explain."""


def timed(kind: str, *, now_ms: int) -> bytes:
    """Return a durable message that has its kind as body."""
    out = BytesWriter()
    ttl = {"short": DOWN_MS, "long": 600_000, "due-and-short": DOWN_MS // 2}.get(kind, -1)
    put_header(out, durable=True, priority=4, ttl=ttl, first_acquirer=False, delivery_count=0)
    due = {"due": DOWN_MS, "later": LATER_MS, "due-and-short": DOWN_MS}.get(kind)
    if due is not None:
        put_descriptor(out, 0x72)
        put_value(out, Map([(Symbol(DELAY_ANNOTATION), Timestamp(now_ms + due))]))
    put_descriptor(out, 0x75)
    put_binary(out, kind.encode())
    return out.getvalue()


async def timers_over_restarts(plan: Plan) -> Report:
    """F26: expired messages are never seen, due ones at once, later ones when they are due."""
    chosen = random.Random(plan.seed)
    report = Report()
    late: list[float] = []
    server = Server(plan.place)
    await server.start()
    try:
        for number in range(plan.cycles):
            queue = plan.address(f"f26-{number}")
            now_ms = time.time_ns() // 1_000_000
            async with Client(server.port, "sender") as client:
                sender = await client.sender(queue)
                for kind in KINDS:
                    await sender.room()
                    told = await sender.send(timed(kind, now_ms=now_ms))
                    report.check(is_accepted(await told), f"F26: {kind} was not accepted")
            await (server.kill() if chosen.random() < 0.7 else server.stop())
            await asyncio.sleep(DOWN_MS / 1000)
            await server.start()
            up_ms = time.time() * 1000
            came = await arrivals(server.port, queue, len(KINDS))
            late += judged(came, now_ms=now_ms, up_ms=up_ms, report=report)
            plan.step()
        report.check(await server.stop() == 0, "F26: the broker did not end well")
    finally:
        await server.close()
    report.lines.append(
        f"F26 timers over restarts: {plan.cycles} times, late by ms: {spread(late)}, early 0"
        if not report.problems
        else "F26 timers over restarts: see below"
    )
    return report


async def arrivals(port: int, queue: str, most: int) -> list[tuple[str, float]]:
    """Return the messages and their times of arrival in ms; stop when no more can come."""
    came: list[tuple[str, float]] = []
    until = time.time() + LATER_MS / 1000 + LATE_MS / 1000
    async with Client(port, "receiver") as client:
        receiver = await client.receiver(queue, credit=most * 2)
        while time.time() < until:
            delivery = await receiver.next(0.1)
            if delivery is not None:
                came.append((delivery.body.decode(), time.time() * 1000))
                receiver.accept(delivery)
            if {"later", "due", "plain", "long"} <= {kind for kind, _ in came}:
                break
    return came


def judged(
    came: list[tuple[str, float]], *, now_ms: int, up_ms: float, report: Report
) -> list[float]:
    """Check what arrived; return by how many ms messages with a delivery time were late."""
    kinds = [kind for kind, _ in came]
    report.check(sorted(kinds) == ["due", "later", "long", "plain"], f"F26: what came is {kinds}")
    report.check(
        [kind for kind in kinds if kind in ("plain", "long")] == ["plain", "long"],
        f"F26: the order is {kinds}",
    )
    late = []
    for kind, at_ms in came:
        if kind in ("due", "later"):
            due_ms = now_ms + (DOWN_MS if kind == "due" else LATER_MS)
            report.check(at_ms >= due_ms, f"F26: {kind} came {due_ms - at_ms:.0f} ms early")
            late.append(at_ms - max(due_ms, up_ms))
    report.check(max(late, default=0) < LATE_MS, f"F26: late by {max(late, default=0):.0f} ms")
    return late
