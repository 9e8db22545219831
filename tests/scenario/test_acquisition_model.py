"""Random acquisitions within transactions, compared with a model (core 4.4.3, RCV-06)."""

from __future__ import annotations

from random import Random

import pytest

from broker.amqp.limits import Limits
from broker.amqp.outcomes import ACCEPTED, RELEASED, Outcome, TransactionalState
from broker.amqp.performatives import SENDER, SND_MIXED, SND_SETTLED, Detach
from tests.support.broker import Broker
from tests.support.frames import Disposition, Transfer, attach_receiver, body_of
from tests.support.transactions import COORDINATOR_HANDLE, Controller, discharge

MESSAGES = 12
OPERATIONS = 40
HANDLES = (0, COORDINATOR_HANDLE + 1)
"""One link that ends before the coordinator's, and one behind it."""


class Run:
    """One controller with two links to a queue and random transactions.

    `held` are the deliveries that are neither settled nor returned, by delivery-id: the body and
    the transaction that acquired it. `accepted` are the bodies of which each open transaction has
    accepted deliveries, `gone` those that are consumed for good.
    """

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.broker = Broker(limits=Limits(idle_time_out_ms=0))
        self.broker.fill(count=MESSAGES)
        self.controller = Controller(self.broker)
        self.client = self.controller.client
        self.counts = dict.fromkeys(HANDLES, 0)
        self.settles = {
            handle: self.draw.choice((SND_MIXED, SND_SETTLED)) == SND_SETTLED for handle in HANDLES
        }
        self.attached: set[int] = set()
        self.held: dict[int, tuple[bytes, bytes]] = {}
        self.accepted: dict[bytes, set[bytes]] = {}
        self.gone: set[bytes] = set()
        for handle in HANDLES:
            self.attach(handle)

    def attach(self, handle: int) -> None:
        mode = SND_SETTLED if self.settles[handle] else SND_MIXED
        self.client.attach(
            attach_receiver("q", name=f"n{handle}", handle=handle, snd_settle_mode=mode)
        )
        self.counts[handle] = 0
        self.attached.add(handle)

    def take(self) -> None:
        """Record the deliveries and the settlements that have come."""
        for body in self.client.bodies():
            if isinstance(body, Transfer):
                assert body.delivery_id is not None
                state, text = body.state, body_of(body.payload)
                txn_id = state.txn_id if isinstance(state, TransactionalState) else b""
                self.counts[int(body.handle)] += 1
                assert text not in self.gone, f"{text!r} came again"
                if not body.settled:
                    self.held[int(body.delivery_id)] = (text, txn_id)
                elif txn_id:
                    self.accepted[txn_id].add(text)
                else:
                    self.gone.add(text)
            elif isinstance(body, Disposition) and body.role is SENDER:
                self.held.pop(int(body.first), None)

    def declare(self) -> None:
        self.take()
        if len(self.accepted) < 3:
            self.accepted[self.controller.declare()] = set()

    def grant(self) -> None:
        handle = self.draw.choice(HANDLES)
        if handle in self.attached:
            txn_id = self.draw.choice([None, *self.accepted])
            self.client.flow(
                handle=handle,
                credit=self.draw.randrange(4),
                delivery_count=self.counts[handle],
                drain=self.draw.random() < 0.5,
                properties={"txn-id": txn_id},
            )
        self.take()

    def settle(self) -> None:
        """Give an outcome, within the transaction that acquired the delivery or any if none did."""
        if not self.held:
            return
        number = self.draw.choice(list(self.held))
        text, within = self.held[number]
        if within not in self.accepted:
            within = self.draw.choice([b"", *self.accepted])
        outcome: Outcome = self.draw.choice((ACCEPTED, RELEASED))
        settled = not within or self.draw.random() < 0.7
        state = TransactionalState(txn_id=within, outcome=outcome) if within else outcome
        self.client.send(Disposition(first=number, settled=settled, state=state))
        if not settled:
            self.client.send(Disposition(first=number, settled=True, state=None))
        del self.held[number]
        if outcome is ACCEPTED:
            (self.accepted[within] if within else self.gone).add(text)
        self.take()

    def discharge(self) -> None:
        if self.accepted:
            txn_id = self.draw.choice(list(self.accepted))
            fail = self.draw.random() < 0.5
            consumed = self.accepted.pop(txn_id)
            self.gone |= set() if fail else consumed
            if fail:
                for number in [each for each, (_, by) in self.held.items() if by == txn_id]:
                    del self.held[number]
            self.controller.transfer(discharge(txn_id, fail=fail), COORDINATOR_HANDLE)
        self.take()

    def detach(self) -> None:
        handle = self.draw.choice(HANDLES)
        self.take()
        if handle in self.attached:
            self.client.send(Detach(handle=handle, closed=True))
            self.attached.discard(handle)
            self.client.bodies()
            self.held.clear()  # those of the other link are settled by nobody any more
        else:
            self.attach(handle)
        self.take()

    def check(self) -> None:
        """End everything: what is not gone waits in its order, and nothing is held."""
        self.client.hang_up()
        queue, memory = self.broker.queue(), self.broker.router.memory
        assert (int(queue.state.acquired), int(memory.held), int(memory.transactions)) == (0, 0, 0)
        last = self.broker.session("last")
        last.attach_receiver("q", credit=100)
        found = [body_of(each.payload) for each in last.bodies() if isinstance(each, Transfer)]
        every = [b"%d" % number for number in range(MESSAGES)]
        assert found == [each for each in every if each not in self.gone]


@pytest.mark.requirement("RCV-06")
@pytest.mark.parametrize("seed", range(100))
def test_random_acquisitions_lose_and_repeat_nothing(seed: int) -> None:
    run = Run(seed)
    operations = (run.declare, run.grant, run.grant, run.settle, run.settle, run.discharge)
    for _ in range(OPERATIONS):
        run.draw.choice((*operations, *((run.detach,) if run.draw.random() < 0.3 else ())))()
    run.check()
