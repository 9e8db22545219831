"""A client with transactions: a coordinator, and messages sent and settled within them."""

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
    """Return the message that begins a transaction."""
    out = BytesWriter()
    put_descriptor(out, AMQP_VALUE)
    fields = FieldWriter()
    fields.binary(global_id)
    fields.close(out, DECLARE)
    return out.getvalue()


def discharge(txn_id: bytes, *, fail: bool = False) -> bytes:
    """Return the message that ends a transaction."""
    out = BytesWriter()
    put_descriptor(out, AMQP_VALUE)
    fields = FieldWriter()
    fields.binary(txn_id)
    fields.boolean(fail)
    fields.close(out, DISCHARGE)
    return out.getvalue()


class Controller:
    """A client with a coordinator at handle 9 of channel 0, where it numbers its deliveries."""

    def __init__(
        self, broker: Broker, container_id: str = "client", *, client: Client | None = None
    ) -> None:
        self.client: Client = client or broker.session(container_id)
        self.sent = 0
        self.coordinate()

    def coordinate(self, *, source: Source | None = None, name: str = "coordinator") -> None:
        """Attach the coordinator; call again after it has been detached."""
        wanted = Coordinator(capabilities=["amqp:local-transactions"])
        self.client.attach(
            attach_sender(name=name, handle=COORDINATOR_HANDLE, source=source, target=wanted)
        )
        self.client.expect(Flow)

    def transfer(self, payload: bytes, handle: int = 0, **fields: object) -> int:
        """Send a message; return its delivery-id."""
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
        """Return the state with which the next frame, a disposition, settles delivery `number`."""
        told = self.client.expect(Disposition)
        assert told.role is not SENDER
        assert (told.first, told.settled) == (number, True)
        return told.state

    def command(self, payload: bytes) -> DeliveryState | None:
        """Send a command to the coordinator; return the outcome."""
        return self.answer(self.transfer(payload, COORDINATOR_HANDLE))

    def declare(self) -> bytes:
        """Begin a transaction; return its id."""
        state = self.command(declare())
        assert isinstance(state, Declared)
        return state.txn_id

    def commit(self, txn_id: bytes) -> None:
        """Commit; it must succeed."""
        assert isinstance(self.command(discharge(txn_id)), Accepted)

    def fail_to_commit(self, txn_id: bytes) -> str:
        """Commit; it must fail. Return the condition."""
        return condition_of(self.command(discharge(txn_id)))

    def roll_back(self, txn_id: bytes) -> None:
        assert isinstance(self.command(discharge(txn_id, fail=True)), Accepted)

    def post(self, txn_id: bytes, body: bytes = b"x", handle: int = 0, **fields: object) -> None:
        """Send a message within a transaction; it must be accepted."""
        state = self.try_to_post(txn_id, body, handle, **fields)
        assert isinstance(state, Accepted)

    def try_to_post(
        self, txn_id: bytes, body: bytes = b"x", handle: int = 0, **fields: object
    ) -> Outcome | None:
        """Send a message within a transaction; return its outcome."""
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
    """Return the condition of a rejection."""
    assert isinstance(state, Rejected)
    assert state.error is not None
    return state.error.condition
