"""A client with transactions: a coordinator, and what is sent and settled within them."""

from __future__ import annotations

from librt.strings import BytesWriter

from broker.amqp.composite import FieldWriter
from broker.amqp.descriptors import AMQP_VALUE, DECLARE, DISCHARGE
from broker.amqp.encode import put_descriptor
from broker.amqp.outcomes import (
    ACCEPTED,
    Accepted,
    Declared,
    DeliveryState,
    Outcome,
    Rejected,
    TransactionalState,
)
from broker.amqp.performatives import SENDER, Flow
from broker.amqp.terminus import Coordinator, Source
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, Transfer, attach_sender, message

COORDINATOR_HANDLE = 9


def declare(global_id: bytes | None = None) -> bytes:
    """The message that begins a transaction."""
    out = BytesWriter()
    put_descriptor(out, AMQP_VALUE)
    fields = FieldWriter()
    fields.binary(global_id)
    fields.close(out, DECLARE)
    return out.getvalue()


def discharge(txn_id: bytes, *, fail: bool = False) -> bytes:
    """The message that ends a transaction."""
    out = BytesWriter()
    put_descriptor(out, AMQP_VALUE)
    fields = FieldWriter()
    fields.binary(txn_id)
    fields.boolean(fail)
    fields.close(out, DISCHARGE)
    return out.getvalue()


class Controller:
    """A client with a coordinator at handle 9 of channel 0, where it counts its deliveries."""

    def __init__(self, broker: Broker, container_id: str = "client") -> None:
        self.client: Client = broker.session(container_id)
        self.sent = 0
        self.coordinate()

    def coordinate(self, *, source: Source | None = None, name: str = "coordinator") -> None:
        """Attach the coordinator; again, once it is detached."""
        wanted = Coordinator(capabilities=["amqp:local-transactions"])
        self.client.attach(
            attach_sender(name=name, handle=COORDINATOR_HANDLE, source=source, target=wanted)
        )
        self.client.expect(Flow)

    def transfer(self, payload: bytes, handle: int = 0, **fields: object) -> int:
        """Send a message; its delivery-id."""
        number = self.sent
        self.sent += 1
        self.client.send(
            Transfer(
                handle=handle,
                delivery_id=number,
                tag=b"%d" % number,
                payload=payload,
                **fields,  # type: ignore[arg-type]
            )
        )
        return number

    def answer(self, number: int) -> DeliveryState | None:
        """The state in which the broker settles that delivery, which is the next that it says."""
        told = self.client.expect(Disposition)
        assert told.role is not SENDER
        assert (told.first, told.settled) == (number, True)
        return told.state

    def command(self, payload: bytes) -> DeliveryState | None:
        """What the coordinator answers."""
        return self.answer(self.transfer(payload, COORDINATOR_HANDLE))

    def declare(self) -> bytes:
        """A transaction that was begun."""
        state = self.command(declare())
        assert isinstance(state, Declared)
        return state.txn_id

    def commit(self, txn_id: bytes) -> None:
        """Commit, with success."""
        assert isinstance(self.command(discharge(txn_id)), Accepted)

    def fail_to_commit(self, txn_id: bytes) -> str:
        """Commit, without success: the condition that is told."""
        return condition_of(self.command(discharge(txn_id)))

    def roll_back(self, txn_id: bytes) -> None:
        assert isinstance(self.command(discharge(txn_id, fail=True)), Accepted)

    def post(self, txn_id: bytes, body: bytes = b"x", handle: int = 0, **fields: object) -> None:
        """Send a message within a transaction, and have it accepted."""
        state = self.try_to_post(txn_id, body, handle, **fields)
        assert isinstance(state, Accepted)

    def try_to_post(
        self, txn_id: bytes, body: bytes = b"x", handle: int = 0, **fields: object
    ) -> Outcome | None:
        """Send a message within a transaction: the outcome that it is told."""
        payload = message(body, **fields)  # type: ignore[arg-type]
        state = TransactionalState(txn_id=txn_id)
        told = self.answer(self.transfer(payload, handle, state=state))
        assert isinstance(told, TransactionalState)
        assert told.txn_id == txn_id
        return told.outcome

    def retire(
        self,
        txn_id: bytes,
        first: int,
        outcome: Outcome | None = ACCEPTED,
        *,
        last: int | None = None,
        settled: bool = True,
    ) -> None:
        """Give deliveries an outcome within a transaction."""
        state = TransactionalState(txn_id=txn_id, outcome=outcome)
        self.client.send(Disposition(first=first, last=last, settled=settled, state=state))


def condition_of(state: DeliveryState | None) -> str:
    """Why something was rejected."""
    assert isinstance(state, Rejected)
    assert state.error is not None
    return state.error.condition
