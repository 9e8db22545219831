"""Attacks that make the broker hold messages: unsettled, in transactions, or unfinished."""

from __future__ import annotations

import asyncio
from typing import Final

from broker.amqp.terminus import Coordinator
from broker.routing.credit.memory import UNSETTLED_MAX
from tests.attacks.flooding import Flood, drained, linger
from tests.attacks.peer import Gone, Peer, Transfers, connect
from tests.attacks.plan import MEBIBYTE, Deadline, Reached, Site
from tests.conformance.frames import Transfer, frame
from tests.support.frames import attach_sender, message
from tests.support.transactions import declare, discharge

HOARDERS: Final = 12
HOARD_SENDERS: Final = 3
HOARDED: Final = bytes(100)


async def hoarding(site: Site) -> Reached:
    """Receive all messages of a queue on many connections without settling; then disconnect."""
    reached = Reached()
    deadline = site.deadline()
    hoarders = [
        await connect(site.port, reached.hear, container_id=f"hoarder-{number}")
        for number in range(HOARDERS)
    ]
    for hoarder in hoarders:
        await hoarder.receiver("hoard")
    floods = []
    for number in range(HOARD_SENDERS):
        sender = await connect(site.port, reached.hear, container_id=f"supplier-{number}")
        await sender.sender("hoard")
        floods.append(Flood(sender, Transfers(message(HOARDED), settled=True)))
    await asyncio.gather(*(flood.run(deadline) for flood in floods))
    await linger(Deadline(1), lambda: False)
    most = max(hoarder.deliveries for hoarder in hoarders)
    reached.figures = {
        "deliveries held unsettled": sum(hoarder.deliveries for hoarder in hoarders),
        "of them on one link": most,
        "messages sent": sum(flood.sent for flood in floods),
    }
    reached.check(most <= UNSETTLED_MAX, f"one link has {most} unsettled deliveries")
    await asyncio.gather(*(hoarder.close() for hoarder in hoarders))
    there = await drained(site, reached, "hoard")
    sent = sum(flood.sent for flood in floods)
    reached.check(there == sent, f"{sent} messages were sent, {there} were there in the end")
    return reached


TRANSACTIONS: Final = 25
QUARTER: Final = 4
"""The divisor of memory_max that gives the limit of all transactions together."""

LESS: Final = 4 * MEBIBYTE
"""Bytes by which each transaction stays below that limit, so that one of them has room."""

POSTED: Final = bytes(256 * 1024)


async def transactions(site: Site) -> Reached:
    """Fill each of many transactions to nearly the limit of all together, and commit them."""
    reached = Reached()
    deadline = site.deadline()
    peers = [
        await connect(site.port, reached.hear, container_id=f"transacted-{number}")
        for number in range(TRANSACTIONS)
    ]
    most = (site.memory_max // QUARTER - LESS) // len(POSTED)
    await asyncio.gather(*(_filled(peer, deadline, most) for peer in peers))
    posted = sum(peer.sent[1] for peer in peers)
    told_before = sum(peer.accepted for peer in peers)
    committed = [await _committed(peer) for peer in peers]
    reached.figures = {
        "transactions open": len(peers),
        "MiB sent in them": posted * len(POSTED) / MEBIBYTE,
        "messages accepted in them": told_before,
        "commits accepted": sum(committed),
    }
    reached.check(sum(committed), "not one transaction could be committed, though one has room")
    return reached


async def _filled(peer: Peer, deadline: Deadline, most: int) -> None:
    wanted = Coordinator(capabilities=["amqp:local-transactions"])
    peer.say(attach_sender(name="coordinator", target=wanted))
    await peer.until(lambda: 0 in peer.credit_end, "credit for the coordinator")
    _ask(peer, declare())
    await peer.until(lambda: bool(peer.txn_id), "a transaction")
    await peer.sender("transacted", handle=1)
    transfers = Transfers(message(POSTED), handle=1, txn_id=peer.txn_id)
    await Flood(peer, transfers, handle=1).run(deadline, most=most)
    await peer.until(lambda: peer.posted >= peer.sent[1], "outcomes within a transaction")


def _ask(peer: Peer, payload: bytes) -> None:
    """Send a message to the coordinator."""
    peer.write(frame(Transfer(delivery_id=peer.next_delivery(0), payload=payload)))


async def _committed(peer: Peer) -> bool:
    """Commit; return whether the broker accepted that."""
    told = peer.accepted + peer.rejected
    accepted = peer.accepted
    _ask(peer, discharge(peer.txn_id))
    await peer.until(lambda: peer.accepted + peer.rejected > told, "the answer to a commit")
    await peer.close()
    return peer.accepted > accepted


UNFINISHED_PEERS: Final = 5
UNFINISHED_LINKS: Final = 300
PIECE: Final = bytes(64 * 1024)
PIECES: Final = 15
"""Pieces per delivery: 960 KiB, just less than the size that a store takes piece by piece."""


async def unfinished(site: Site) -> Reached:
    """Begin deliveries on many links and finish none; reconnect when a connection is closed."""
    reached = Reached()
    deadline = site.deadline()
    counts = await asyncio.gather(
        *(_unfinished_again(site, reached, deadline, number) for number in range(UNFINISHED_PEERS))
    )
    reached.figures = {
        "MiB of deliveries without an end": sum(counts) * len(PIECE) / MEBIBYTE,
        "connections at a time": UNFINISHED_PEERS,
    }
    return reached


async def _unfinished_again(site: Site, reached: Reached, deadline: Deadline, number: int) -> int:
    """Be one of the attackers, on one connection after another; return the pieces sent."""
    sent = 0
    while not deadline.is_over():
        peer = await connect(site.port, reached.hear, container_id=f"unfinished-{number}")
        try:
            await _unfinished_once(peer, deadline)
            await linger(deadline, lambda: peer.is_lost)  # noqa: B023 - over before the next
        except Gone:
            pass
        sent += peer.transfers
        await peer.close()
    return sent


async def _unfinished_once(peer: Peer, deadline: Deadline) -> None:
    for handle in range(UNFINISHED_LINKS):
        peer.say(attach_sender("unfinished", name=f"to-{handle}", handle=handle))
    await peer.until(lambda: len(peer.credit_end) == UNFINISHED_LINKS, "credit for many links")
    for handle in range(UNFINISHED_LINKS):
        first = Transfer(
            handle=handle,
            delivery_id=peer.next_delivery(handle),
            tag=b"%d" % handle,
            more=True,
            payload=message(PIECE),
        )
        rest = Transfer(
            handle=handle, delivery_id=None, tag=None, message_format=None, more=True, payload=PIECE
        )
        for piece in (first, *[rest] * (PIECES - 1)):
            while peer.window() <= 0 and not deadline.is_over():
                await peer.until_changed()
            if deadline.is_over():
                return
            peer.transfers += piece is rest
            peer.write(frame(piece))
            await peer.room(deadline)
