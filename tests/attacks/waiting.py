"""Attacks by waiting messages: a backlog, slow subscribers, clients that never read."""

from __future__ import annotations

import asyncio
from typing import Final

from broker.amqp.performatives import Detach
from tests.attacks.flooding import Flood, drained, linger
from tests.attacks.peer import EMPTY_FRAME, Peer, Transfers, connect
from tests.attacks.plan import Deadline, Reached, Site
from tests.conformance.frames import frame
from tests.support.frames import attach_sender, message

KIBIBYTE: Final = bytes(1024)

BACKLOG_SENDERS: Final = 4


async def backlog(site: Site) -> Reached:
    """Send non-durable messages that no client consumes; then consume and count them."""
    reached = Reached()
    deadline = site.deadline()
    floods, peers = [], []
    for number in range(BACKLOG_SENDERS):
        peer = await connect(site.port, reached.hear, container_id=f"backlog-{number}")
        await peer.sender("backlog")
        peers.append(peer)
        floods.append(Flood(peer, Transfers(message(KIBIBYTE))))
    await asyncio.gather(*(flood.run(deadline) for flood in floods))
    for flood, peer in zip(floods, peers, strict=True):
        await peer.until(lambda: peer.accepted + peer.rejected >= flood.sent, "outcomes")  # noqa: B023
    accepted = sum(peer.accepted for peer in peers)
    reached.figures = {
        "messages of 1 KiB accepted": accepted,
        "senders made to wait": sum(flood.waited for flood in floods),
    }
    reached.check(
        not sum(peer.rejected for peer in peers), "messages were rejected: producers should wait"
    )
    for peer in peers:
        await peer.close()
    taken = await drained(site, reached, "backlog")
    reached.check(taken == accepted, f"{accepted} messages were accepted, {taken} were there")
    return reached


SUBSCRIBERS: Final = 50
PUBLISHERS: Final = 2
TAKEN: Final = 10
"""Deliveries that a slow subscriber receives before it stops."""


async def slow_subscribers(site: Site) -> Reached:
    """Publish to subscribers that receive TAKEN messages, settle none, and give no more credit."""
    reached = Reached()
    deadline = site.deadline()
    subscribers = [
        await connect(site.port, reached.hear, container_id=f"subscriber-{number}")
        for number in range(SUBSCRIBERS)
    ]
    for subscriber in subscribers:
        await subscriber.receiver("news", credit=TAKEN, kind="topic")
    floods = []
    for number in range(PUBLISHERS):
        peer = await connect(site.port, reached.hear, container_id=f"publisher-{number}")
        await peer.sender("news", kind="topic")
        floods.append(Flood(peer, Transfers(message(KIBIBYTE), settled=True)))
    await asyncio.gather(*(flood.run(deadline) for flood in floods))
    reached.figures = {
        "messages of 1 KiB published": sum(flood.sent for flood in floods),
        "publishers made to wait": sum(flood.waited for flood in floods),
        "subscribers closed": sum(subscriber.is_lost for subscriber in subscribers),
    }
    return reached


DEAF: Final = 10
FEEDERS: Final = 2
FED: Final = bytes(10 * 1024)
FED_MOST: Final = 20_000
KERNEL_BUFFER: Final = 64 * 1024
HEARTBEAT_S: Final = 0.2


async def unread_deliveries(site: Site) -> Reached:
    """Give endless credit for deliveries, and read none of them."""
    reached = Reached()
    deadline = site.deadline()
    deaf = await _deaf(site, reached)
    for peer in deaf:
        await peer.receiver("unread")
        peer.transport.pause_reading()
    floods = []
    for number in range(FEEDERS):
        feeder = await connect(site.port, reached.hear, container_id=f"feeder-{number}")
        await feeder.sender("unread")
        floods.append(Flood(feeder, Transfers(message(FED), settled=True)))
    await asyncio.gather(
        *(_stay(peer, deadline) for peer in deaf),
        *(flood.run(deadline, most=FED_MOST, through=lambda: _all_lost(deaf)) for flood in floods),
    )
    reached.figures["messages of 10 KiB sent"] = sum(flood.sent for flood in floods)
    _count_cut(reached, deaf)
    await drained(site, reached, "unread")
    return reached


async def unread_answers(site: Site) -> Reached:
    """Attach and detach links without end, and read none of the answers."""
    reached = Reached()
    deadline = site.deadline()
    deaf = await _deaf(site, reached)
    for peer in deaf:
        peer.transport.pause_reading()
    asked = await asyncio.gather(*(_ask(peer, deadline) for peer in deaf))
    reached.figures["attaches"] = sum(asked)
    _count_cut(reached, deaf)
    return reached


async def _deaf(site: Site, reached: Reached) -> list[Peer]:
    """Return connections for which the kernel buffers little unread data."""
    return [
        await connect(
            site.port, reached.hear, container_id=f"deaf-{number}", receive_buffer=KERNEL_BUFFER
        )
        for number in range(DEAF)
    ]


def _all_lost(peers: list[Peer]) -> bool:
    return all(peer.is_lost for peer in peers)


def _count_cut(reached: Reached, deaf: list[Peer]) -> None:
    """Count the connections cut because of `stall_timeout_ms`, and abort the others."""
    cut = sum(peer.is_lost for peer in deaf)
    reached.figures["connections that never read"] = len(deaf)
    reached.figures["of them cut"] = cut
    reached.check(cut == len(deaf), f"{len(deaf) - cut} that never read are still connected")
    for peer in deaf:
        peer.transport.abort()


async def _stay(peer: Peer, deadline: Deadline) -> None:
    """Write heartbeats: the end of the connection is noticed by them."""
    while not peer.is_lost and not deadline.is_over():
        peer.write(EMPTY_FRAME)
        await linger(Deadline(HEARTBEAT_S), lambda: peer.is_lost)


QUESTIONS: Final = 10
NAME: Final = "n" * 8192
"""The link name, which the answer repeats."""


async def _ask(peer: Peer, deadline: Deadline) -> int:
    """Attach and detach a link until the connection is cut; return the number of attaches."""
    asked = 0
    question = frame(attach_sender("asked", name=NAME)) + frame(Detach(handle=0, closed=True))
    while not peer.is_lost and not deadline.is_over():
        peer.transport.write(question * QUESTIONS)
        asked += QUESTIONS
        await peer.room(deadline)
    return asked
