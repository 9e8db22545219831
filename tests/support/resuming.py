"""A client whose link is detached with unsettled deliveries, and comes back (core 2.6.13)."""

from __future__ import annotations

from typing import Any, Final

from broker.amqp.outcomes import Modified, Received, State
from broker.amqp.performatives import Attach, Detach
from broker.amqp.terminus import CONNECTION_CLOSE, UNSETTLED_STATE, Source
from broker.restore import restore
from storage.api import Store
from tests.conformance.resuming import unsettled_map
from tests.support.broker import Broker, Client

LASTING: Final = Source(address="q", expiry_policy=CONNECTION_CLOSE, timeout=60)
STORED: Final = Source(
    address="q", durable=UNSETTLED_STATE, expiry_policy=CONNECTION_CLOSE, timeout=60
)
"""A source whose unsettled deliveries outlive the broker, if its attach has a map."""

PART: Final = Received(section_number=1, section_offset=2)
FAILED: Final = Modified(delivery_failed=True)


def holding(count: int = 3, *, source: Source = LASTING, broker: Broker | None = None) -> Client:
    """Return a client that holds `count` messages of `q` unsettled, by a link at handle 0."""
    broker = broker or Broker()
    broker.fill(count=count)
    client = broker.session()
    client.attach_receiver(source=source, credit=count)
    client.expect_deliveries(*[b"%d" % number for number in range(count)])
    return client


def tags_of(count: int) -> list[bytes]:
    """Return the tags of the first messages of a queue, all of priority 4."""
    return [int(number * 10 + 4).to_bytes(8, "big") for number in range(count)]


def counts(client: Client) -> tuple[int, int]:
    queue = client.broker.queue()
    return int(queue.backlogs.waiting), int(queue.state.acquired)


def suspended(client: Client) -> int:
    return client.broker.router.termini.count()


def come_back(
    client: Client,
    states: dict[bytes, State | None] | None,
    *,
    credit: int = 10,
    source: Source = LASTING,
    incomplete: bool = False,
    **fields: Any,
) -> Attach:
    """Attach a receiver with that unsettled map, None for none, and other fields of the attach."""
    encoded = None if states is None else unsettled_map(states)
    return client.attach_receiver(
        source=source,
        credit=credit,
        unsettled=encoded,
        incomplete_unsettled=incomplete,
        **fields,
    )


def resting(client: Client) -> None:
    """Detach the link of `client` without closing it, and check the answer."""
    client.send(Detach(handle=0))
    assert not client.expect_last(Detach).closed


async def restarted(store: Store, **fields: Any) -> Broker:
    """Return a broker that has restored what an earlier one has left in the store."""
    broker = Broker(store=store, **fields)
    await restore(store, broker.router, broker.journal.batch)
    broker.container.run_round()
    return broker
