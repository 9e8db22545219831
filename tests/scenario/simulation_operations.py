"""The operations of simulated clients, each of them three values drawn from the seed.

An operation consists of its kind, its client and a number from which everything else is drawn. It
creates what it needs and does not find. So any part of a list of operations can be run as well,
which shrinking requires.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from librt.strings import BytesWriter

from broker.amqp.encode import put_value
from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    DeliveryState,
    Modified,
    Outcome,
    Received,
    Rejected,
    TransactionalState,
)
from broker.amqp.types import Byte, Map, Symbol
from tests.scenario.simulation_attaches import (
    ELSEWHERE,
    FAILED,
    address_for,
    attach_receiver,
    attach_sender,
    come_back,
    coordinator,
    detach,
    grant,
    look_up,
    sender,
    steal,
)
from tests.scenario.simulation_client import ClientLink, ClientSession
from tests.scenario.simulation_edge import MARK, NOTE
from tests.scenario.simulation_records import Message
from tests.scenario.simulation_restart import reborn
from tests.scenario.simulation_run import Run
from tests.scenario.simulation_world import Sent
from tests.support import transactions
from tests.support.frames import Transfer, message

CLIENTS: Final = 4


def _note() -> bytes:
    out = BytesWriter()
    put_value(out, Map([(Symbol(NOTE.decode()), True)]))
    return out.getvalue()


OUTCOMES: Final[tuple[Outcome, ...]] = (
    ACCEPTED,
    ACCEPTED,
    RELEASED,
    RELEASED,
    Rejected(),
    FAILED,
    FAILED,
    Modified(),
    ELSEWHERE,
    Modified(delivery_failed=True, undeliverable_here=True),
)
NOTED: Final = Modified(delivery_failed=True, message_annotations=_note())


@dataclass(frozen=True)
class Operation:
    """One thing that happens, before the network delivers part of what is under way."""

    kind: str
    who: int
    number: int

    def __str__(self) -> str:
        return f"{self.kind} by client {self.who}, number {self.number:#x}"


# -- messages


def _write(run: Run, link: ClientLink) -> list[Transfer]:
    """Return the frames of a new message for `link`, up to four; the last may abort it."""
    draw, world = run.draw, run.world
    number = len(world.sent)
    is_relay = link.address is None
    kind = "queue" if draw.random() < 0.8 else "topic"
    to = address_for(run, kind) if is_relay else None
    if to == "EXP":
        to = "q"
    target = to or link.address or ""
    body = MARK + b"%06d" % number + b"." * draw.choice((0, 10, 10, 600, 600, 1500))
    durable = draw.random() < 0.4
    priority = draw.choice((4, 4, 4, 0, 9))
    may_end = target not in ("small", "narrow", "DLQ", "EXP")
    chance = 0.7 if target == "mortal" else 0.1
    ttl = draw.choice((1, 20, 500, 3000)) if may_end and draw.random() < chance else 0
    annotations: dict[str, object] = {"x-opt-jms-dest": Byte(kind == "topic")} if is_relay else {}
    delay = draw.choice((1, 20, 500, 2500)) if draw.random() < 0.15 else 0
    due = world.model.now + delay if delay else 0
    if due:
        annotations["x-opt-delivery-time"] = due
    payload = message(
        body, durable=durable, priority=priority, ttl=ttl or -1, to=to, annotations=annotations
    )
    headless = message(body, to=to, annotations=annotations)
    record = Message(
        id=number,
        bare=message(body, to=to),
        size=len(headless),
        durable=durable,
        priority=priority,
        ttl=ttl,
        due=due,
    )
    world.sent[number] = Sent(record, payload, kind, target)
    return _frames(draw, link, payload, number)


def _frames(draw: random.Random, link: ClientLink, payload: bytes, number: int) -> list[Transfer]:
    settled = draw.random() < 0.3 or None
    open_ones = list(link.session.client.transactions)
    within = draw.choice(open_ones) if open_ones and draw.random() < 0.6 else None
    cuts = sorted(draw.randint(0, len(payload)) for _ in range(draw.choice((0, 0, 0, 1, 3))))
    pieces = [payload[a:b] for a, b in zip([0, *cuts], [*cuts, len(payload)], strict=True)]
    tag = b"%d" % number
    frames = [
        Transfer(
            handle=link.handle,
            delivery_id=None,
            tag=None if index else tag,
            settled=settled,
            more=index < len(pieces) - 1,
            state=TransactionalState(txn_id=within) if within and not index else None,
            payload=piece,
        )
        for index, piece in enumerate(pieces)
    ]
    if len(frames) > 1 and draw.random() < 0.2:
        frames[-1] = Transfer(handle=link.handle, delivery_id=None, tag=None, aborted=True)
    return frames


def send(run: Run, who: int) -> None:
    """Send one to eight new messages, as far as credit and window allow now."""
    link = sender(run, who)
    if link is not None:
        for _ in range(run.draw.choice((1, 1, 3, 8))):
            link.outbox.append(_write(run, link))
        link.session.send_on()


def settle(run: Run, who: int) -> None:
    """Send an outcome for a delivery or a range, parts of which may have had one before."""
    session, draw = run.session(who), run.draw
    if session is None or not run.has_received(session):
        return
    first = draw.choice(list(session.received))
    last = draw.choice([each for each in session.received if each >= first])
    if draw.random() < 0.5:
        last = first
    elif draw.random() < 0.3:
        first = max(0, first - 2)
    state: DeliveryState | None = draw.choice(OUTCOMES)
    settled = draw.random() < 0.7
    if draw.random() < 0.2:
        state, settled = draw.choice((None, Received(section_number=0, section_offset=0))), True
    elif draw.random() < 0.1 and _may_be_noted(session):
        state = NOTED
    open_ones = list(session.client.transactions)
    if isinstance(state, Outcome) and state is not NOTED and open_ones and draw.random() < 0.8:
        within = draw.choice(open_ones)
        state, settled = TransactionalState(txn_id=within, outcome=state), True
    session.settle(first, last, state, settled=settled)
    session.settle_second()


def _may_be_noted(session: ClientSession) -> bool:
    """Return whether the session's messages may get an annotation.

    The model does not know the size of an annotated message, so none of a queue with a limit in
    bytes may.
    """
    return all(link.address != "narrow" for link in session.links.values())


def declare(run: Run, who: int) -> None:
    link = coordinator(run, who)
    if link is not None:
        _tell(link, transactions.declare())
        run.let_answer(link.session.client)


def discharge(run: Run, who: int) -> None:
    """Discharge a random transaction of client `who`; declare one if it has none."""
    client = run.client(who)
    if not client.transactions:
        declare(run, who)
        return
    txn_id = run.draw.choice(list(client.transactions))
    link = client.transactions.pop(txn_id)
    if link.is_live() and not link.session.is_ending:
        _tell(link, transactions.discharge(txn_id, fail=run.draw.random() < 0.3))


def _tell(link: ClientLink, payload: bytes) -> None:
    """Send a command to the coordinator."""
    link.outbox.append([Transfer(handle=link.handle, delivery_id=None, tag=b"0", payload=payload)])
    link.session.send_on()


def accept_all(run: Run, who: int) -> None:
    """Accept all unsettled deliveries of a session, perhaps in a transaction."""
    session = run.session(who)
    if session is not None and run.has_received(session):
        numbers = list(session.received)
        state: DeliveryState = ACCEPTED
        open_ones = list(session.client.transactions)
        if open_ones and run.draw.random() < 0.7:
            state = TransactionalState(txn_id=run.draw.choice(open_ones), outcome=ACCEPTED)
        session.settle(numbers[0], numbers[-1], state, settled=True)


# -- ends, and the world


def end(run: Run, who: int) -> None:
    session = run.session(who)
    if session is not None:
        run.lose_receiver(session.client)
        session.end()


def close(run: Run, who: int) -> None:
    client = run.client(who)
    run.lose_receiver(client)
    client.close()


def crash(run: Run, who: int) -> None:
    """Lose the socket; the broker may have read part of what was under way."""
    client = run.client(who)
    run.lose_receiver(client)
    client.edge.feed(run.draw.randint(0, len(client.edge.unread)))
    client.lose()
    del run.clients[who]


def stall(run: Run, who: int) -> None:
    """Stop reading from the broker, or start again."""
    client = run.client(who)
    client.reads = not client.reads


def echo(run: Run, who: int) -> None:
    session = run.session(who)
    if session is not None:
        session.flow(echo=True)


def wait(run: Run, who: int) -> None:  # noqa: ARG001 - time passes for everybody
    run.world.pass_time(run.draw.choice((1, 10, 10, 50, 100, 400, 1100, 5000, 15_000)))


def commit(run: Run, who: int) -> None:  # noqa: ARG001 - there is one disk
    run.world.commit()


def break_store(run: Run, who: int) -> None:  # noqa: ARG001 - there is one disk
    """Fail the commit under way, if there is one, and start another broker on the stored state."""
    if run.world.fail(applied=run.draw.random() < 0.5):
        run.begin_with(reborn(run.world))


def lease(run: Run, who: int) -> None:  # noqa: ARG001 - a lease is of no connection
    """Request a batch for the lease, which is opened if it is not there."""
    draw = run.draw
    addresses = [address for address in run.queues if address not in ("DLQ", "EXP")]
    if addresses:
        ttl_ms = draw.choice((0, 0, 2000))
        run.world.lease.acquire(draw.choice(addresses), ttl_ms=ttl_ms, most=draw.choice((1, 3, 10)))


def settle_lease(run: Run, who: int) -> None:  # noqa: ARG001 - a lease is of no connection
    run.world.lease.settle()


def release_lease(run: Run, who: int) -> None:  # noqa: ARG001 - a lease is of no connection
    run.world.lease.release()


def stage(run: Run, who: int) -> None:  # noqa: ARG001 - a stage outlives its links
    addresses = [each for each in run.queues if each not in ("DLQ", "EXP", "small", "narrow")]
    if addresses:
        run.world.sink.stage(run.draw.choice(addresses), run.draw.choice((1, 3)))


def commit_stage(run: Run, who: int) -> None:  # noqa: ARG001 - a sink is of no connection
    run.world.sink.commit()


def deliver(run: Run, who: int) -> None:  # noqa: ARG001 - everybody's
    """Let everything that is under way arrive."""
    run.carry_all()


def connect(run: Run, who: int) -> None:
    run.client(who)


OPERATIONS: Final[dict[str, Callable[[Run, int], None]]] = {
    each.__name__: each
    for each in (
        connect,
        attach_sender,
        attach_receiver,
        grant,
        detach,
        come_back,
        steal,
        look_up,
        send,
        settle,
        accept_all,
        declare,
        discharge,
        end,
        close,
        crash,
        stall,
        echo,
        wait,
        commit,
        lease,
        settle_lease,
        release_lease,
        stage,
        commit_stage,
        break_store,
        deliver,
    )
}


def apply(run: Run, operation: Operation) -> None:
    """Apply `operation`, and let part of what is under way arrive."""
    run.draw = random.Random(operation.number)
    OPERATIONS[operation.kind](run, operation.who)
    for _ in range(run.draw.choice((0, 1, 2, 4, 8))):
        run.carry_some()
