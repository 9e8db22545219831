"""Attacks on entry: queues created by name, wrong passwords, incomplete HTTP requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from librt.strings import BytesWriter

from broker.amqp.frames import SASL_HEADER, put_sasl_frame
from broker.amqp.performatives import Detach
from broker.amqp.sasl_frames import SaslInit, SaslOutcome
from tests.attacks.flooding import linger
from tests.attacks.peer import Peer, connect
from tests.attacks.plan import USER, Deadline, Reached, Site
from tests.conformance.frames import Empty, read_frame
from tests.support.frames import attach_sender

NAMERS: Final = 4
NAMES: Final = 100_000
NAMES_AT_ONCE: Final = 250
REFUSALS_ENOUGH: Final = 20


async def queues_by_name(site: Site) -> Reached:
    """Create a new queue with each attach; stop once the broker refuses more."""
    reached = Reached()
    deadline = site.deadline()
    counts = await asyncio.gather(
        *(_names(site, reached, deadline, number) for number in range(NAMERS))
    )
    refused = sum(reached.told.values())
    reached.figures = {"queues made by name": sum(counts) - refused}
    reached.check(refused, "no queue was refused")
    return reached


async def _names(site: Site, reached: Reached, deadline: Deadline, number: int) -> int:
    """Attach to one new name after another; return the number of names."""
    peer = await connect(site.port, reached.hear, container_id=f"namer-{number}")
    named = 0
    while named < NAMES // NAMERS and not deadline.is_over():
        if sum(reached.told.values()) >= REFUSALS_ENOUGH:
            break
        await _attach(peer, [f"named-{number}-{named + each}" for each in range(NAMES_AT_ONCE)])
        named += NAMES_AT_ONCE
    await peer.close()
    return named


async def _attach(peer: Peer, addresses: list[str]) -> None:
    """Attach a link to each address, and detach them all, so that the handles are free again."""
    attached, detached = peer.attached + len(addresses), peer.detached + len(addresses)
    peer.say(
        *[
            attach_sender(address, name=address, handle=handle)
            for handle, address in enumerate(addresses)
        ]
    )
    await peer.until(lambda: peer.attached >= attached, "attaches to many names")
    peer.say(*[Detach(handle=handle, closed=True) for handle in range(len(addresses))])
    await peer.until(lambda: peer.detached >= detached, "detaches from many names")


GUESSERS: Final = 400
ELSEWHERE: Final = "127.0.0.2"
HERE: Final = "127.0.0.1"
SASL_CODES: Final = {0: "ok", 1: "auth", 2: "sys", 3: "sys-perm", 4: "sys-temp"}


async def logins_from_elsewhere(site: Site) -> Reached:
    """Guess the healthy client's password, in many parallel attempts, from another address."""
    return await _guessing(site, ELSEWHERE, USER)


async def logins_from_here(site: Site) -> Reached:
    """Guess passwords of other users, from the address of the healthy client."""
    return await _guessing(site, HERE, "")


async def _guessing(site: Site, source: str, user: str) -> Reached:
    reached = Reached()
    deadline = site.deadline()
    async with asyncio.TaskGroup() as guessers:
        for number in range(GUESSERS):
            chosen = user or f"user-{number}"
            guess = partial(_guess, site.port, source, chosen)
            guessers.create_task(_guess_on(guess, reached, deadline, prefix=number))
    reached.figures = {"wrong logins at once": GUESSERS}
    reached.check(not reached.told["sasl ok"], "a wrong password was let in")
    del reached.told["sasl ok"]
    return reached


async def _guess_on(
    guess: Callable[[str], Awaitable[int]], reached: Reached, deadline: Deadline, *, prefix: int
) -> None:
    """Guess on one connection after another, with a new password each time."""
    tries = 0
    while not deadline.is_over():
        tries += 1
        try:
            async with asyncio.timeout(max(0.0, deadline.left_s())):
                code = await guess(f"{prefix}-{tries}")
        except TimeoutError:
            return
        except (OSError, asyncio.IncompleteReadError):
            reached.hear("connections cut off")
        else:
            reached.hear(f"sasl {SASL_CODES[code]}")


async def _guess(port: int, source: str, user: str, password: str) -> int:
    """Log in with a wrong password; return the code of the SASL outcome."""
    reader, writer = await asyncio.open_connection(HERE, port, local_addr=(source, 0))
    try:
        out = BytesWriter()
        response = f"\0{user}\0{password}".encode()
        put_sasl_frame(out, SaslInit(mechanism="PLAIN", initial_response=response))
        writer.write(SASL_HEADER + out.getvalue())
        await reader.readexactly(len(SASL_HEADER))
        body: object = Empty()
        while not isinstance(body, SaslOutcome):
            head = await reader.readexactly(8)
            body = read_frame(head + await reader.readexactly(int.from_bytes(head[:4]) - 8)).body
        return int(body.code)
    finally:
        writer.transport.abort()


HALVES: Final = 400
RETRY_S: Final = 0.2
SENT: Final = "half requests sent"
DROPPED: Final = "connections dropped"
SEEN: Final = (SENT, DROPPED)
HALF: Final = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Half: "


async def half_requests(site: Site) -> Reached:
    """Send incomplete HTTP requests on many connections; reconnect when one is dropped."""
    deadline = site.deadline()
    seen: Counter[str] = Counter()
    async with asyncio.TaskGroup() as halves:
        for _ in range(HALVES):
            halves.create_task(_halves(site.http_port, seen, deadline))
    figures: dict[str, float] = {name: seen[name] for name in SEEN}
    return Reached(figures={"half requests at once": HALVES} | figures)


async def _halves(port: int, seen: Counter[str], deadline: Deadline) -> None:
    """Send an incomplete request on one connection after another."""
    while not deadline.is_over():
        try:
            async with asyncio.timeout(max(0.0, deadline.left_s())):
                await _half(port, seen)
        except TimeoutError:
            return
        except OSError:
            seen[DROPPED] += 1
            await linger(Deadline(RETRY_S), deadline.is_over)


async def _half(port: int, seen: Counter[str]) -> None:
    reader, writer = await asyncio.open_connection(HERE, port)
    try:
        writer.write(HALF)
        seen[SENT] += 1
        await reader.read()
        seen[DROPPED] += 1
    finally:
        writer.transport.abort()
