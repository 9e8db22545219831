"""Messages acquired within transactions: credit for them, and what comes of them."""

from __future__ import annotations

from broker.amqp.outcomes import (
    DeliveryState,
    TransactionalState,
)
from broker.amqp.performatives import (
    SENDER,
)
from broker.amqp.terminus import COPY, Source
from tests.support.broker import Broker, Client
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    body_of,
    header_of,
)
from tests.support.transactions import (
    Controller,
)

ROLLBACK = "amqp:transaction:rollback"
UNKNOWN = "amqp:transaction:unknown-id"


def controller_of(broker: Broker | None = None, **fields: object) -> Controller:
    """Return a controller with a receiving link to `q` at handle 0, without credit."""
    controller = Controller(broker or Broker())
    controller.client.attach(attach_receiver("q", **fields))  # type: ignore[arg-type]
    return controller


def filled(count: int, **fields: object) -> Controller:
    """Return the same, with `count` messages in `q`."""
    broker = Broker()
    broker.fill(count=count)
    return controller_of(broker, **fields)


def put(broker: Broker, body: bytes) -> None:
    """Send one message to `q`."""
    sender = broker.session("filler")
    sender.attach_sender("q")
    sender.transfer(body=body, settled=True)
    sender.hang_up()


def grant(
    controller: Controller,
    txn_id: object,
    credit: int,
    *,
    handle: int = 0,
    count: int = 0,
    drain: bool = False,
) -> None:
    """Give credit by a flow that names a transaction; `count` deliveries were made before."""
    controller.client.flow(
        handle=handle,
        credit=credit,
        delivery_count=count,
        drain=drain,
        properties={"txn-id": txn_id},
    )


def acquired(controller: Controller, txn_id: bytes, *bodies: bytes) -> list[Transfer]:
    """Return the next deliveries, which have these bodies and belong to the transaction."""
    came = controller.client.expect_deliveries(*bodies)
    assert [state_of(each) for each in came] == [txn_id] * len(bodies)
    return came


def state_of(transfer: Transfer) -> bytes | None:
    """Return the transaction of a delivery, None for none."""
    state = transfer.state
    assert state is None or isinstance(state, TransactionalState)
    return None if state is None else state.txn_id


def counts(controller: Controller) -> tuple[int, int]:
    """Return how many messages of `q` wait, and how many are acquired."""
    queue = controller.client.broker.queue()
    return int(queue.backlogs.waiting), int(queue.state.acquired)


def waiting(controller: Controller) -> list[tuple[bytes, int]]:
    """Return body and delivery-count of each message that waits in `q`, in order."""
    browser = controller.client.broker.session("browser")
    source = Source(address="q", distribution_mode=COPY)
    browser.attach_receiver(source=source, credit=100)
    found: list[tuple[bytes, int]] = []
    for each in browser.bodies():
        if isinstance(each, Transfer):
            header = header_of(each.payload)
            failed = getattr(header[4], "value", 0) if len(header) > 4 else 0
            found.append((body_of(each.payload), failed))
    browser.hang_up()
    return found


def told(client: Client) -> list[tuple[int, bool, DeliveryState | None]]:
    """Return what the broker, as a sender, has told about deliveries: id, settled, state."""
    return [
        (int(each.first), each.settled, each.state)
        for each in client.bodies()
        if isinstance(each, Disposition) and each.role is SENDER
    ]
