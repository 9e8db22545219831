"""Reading encoded messages from the broker: the link, and filters for slices of leases and queues.

Proton's C functions are called for each message (`proton_parts.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, final

from proton import Data, Described, Link, Receiver, Terminus, int32, symbol

from broker.amqp.decode import descriptor_at, open_compound, skip, take_value
from broker.amqp.descriptors import HEADER
from broker.amqp.errors import Fault
from broker.amqp.types import Symbol, Timestamp
from pyspark_amqp.errors import BrokerError
from pyspark_amqp.wire.connection import Connection
from pyspark_amqp.wire.proton_parts import (
    c_link,
    isnull,
    pn_delivery_aborted,
    pn_delivery_partial,
    pn_delivery_pending,
    pn_delivery_settle,
    pn_link_advance,
    pn_link_current,
    pn_link_recv,
)

DELIVERY_ANNOTATIONS: Final = 0x71
POSITION: Final = "x-opt-position"
ENQUEUED: Final = "x-opt-enqueued-time"
TTL_END: Final = "x-opt-ttl-end"
MESSAGE_FORMAT: Final = "x-opt-message-format"

EXISTING_NODE: Final = "jms-broker:existing-node"
"""Capability of a source: the broker refuses the link if its node does not exist."""

CREDIT: Final = 2000
"""Messages that the broker may send ahead to a reader."""


@final
class Received:
    """A message as a consumer would get it, and the broker's facts about it.

    `message_format` is None if it is AMQP's own; `position` and the times if they are unknown.
    """

    def __init__(
        self,
        data: bytes,
        position: int | None = None,
        enqueued_ms: int | None = None,
        *,
        ttl_ends_ms: int | None = None,
        message_format: int | None = None,
    ) -> None:
        self.data: Final = data
        self.position: Final = position
        self.enqueued_ms: Final = enqueued_ms
        self.ttl_ends_ms: Final = ttl_ends_ms
        self.message_format: Final = message_format


@final
class Consumer:
    """The receiver of one link, which the constructor attaches. Taken messages are settled."""

    def __init__(self, connection: Connection, link: Receiver) -> None:
        link.snd_settle_mode = Link.SND_SETTLED
        connection.attach(link)
        self.link: Final = link
        self._source: Final[Any] = c_link(link)

    def has_some(self) -> bool:
        """Return whether there is a whole message to take."""
        first = pn_link_current(self._source)
        return not isnull(first) and not pn_delivery_partial(first)

    def take(self) -> list[bytes]:
        """Return all messages that have arrived; raise BrokerError if one of them is aborted."""
        messages = []
        source = self._source
        while self.has_some():
            delivery = pn_link_current(source)
            if pn_delivery_aborted(delivery):
                raise BrokerError("the broker has broken off a message")
            _, data = pn_link_recv(source, pn_delivery_pending(delivery))
            messages.append(bytes(data))
            pn_link_advance(source)
            pn_delivery_settle(delivery)
        return messages


def copied(
    connection: Connection,
    address: str,
    filters: Mapping[str, Described],
    *,
    needed: Sequence[str],
    capabilities: Sequence[str] = (),
) -> Iterator[bytes]:
    """Yield all messages that the broker shows at `address`, encoded, in order; they stay there.

    `filters` are described values by their keys, as `browse_slice` returns them. Raise BrokerError
    if the broker does not know one that is `needed`: it would show other messages, too. The source
    requests `capabilities`.
    """
    link = connection.receiver(address)
    request(link, capabilities)
    link.source.distribution_mode = Terminus.DIST_MODE_COPY
    link.source.filter.put_dict({symbol(key): told for key, told in filters.items()})
    consumer = Consumer(connection, link)
    known = _filters_of(link)
    for key in needed:
        if key not in known:
            raise BrokerError(f"the broker does not know the filter {key}")
    came = CREDIT
    while came == CREDIT:
        link.drain(CREDIT)
        came = 0
        while came < CREDIT:
            connection.wait(
                lambda: consumer.has_some() or not (link.draining() or link.queued),
                f"reading {address}",
            )
            messages = consumer.take()
            if not messages:
                break
            came += len(messages)
            yield from messages
    link.close()


def request(link: Receiver, capabilities: Sequence[str]) -> None:
    """Let the source of `link`, not yet attached, request `capabilities`."""
    if not capabilities:
        return
    data = link.source.capabilities
    data.put_array(False, Data.SYMBOL)
    data.enter()
    for capability in capabilities:
        data.put_symbol(capability)
    data.exit()


def _filters_of(link: Link) -> frozenset[str]:
    """Return the names of the filters that the broker says it has applied."""
    told = link.remote_source.filter
    told.rewind()
    if not told.next():
        return frozenset()
    value = told.get_object()
    return frozenset(map(str, value)) if isinstance(value, dict) else frozenset()


def lease_slice(
    lease: str, fencing_token: int, batch_number: int, part: int
) -> dict[str, Described]:
    """Return the filter for one slice of a lease's batch."""
    told: dict[Any, Any] = {
        "lease": lease,
        "fencing_token": fencing_token,
        "batch": batch_number,
        "slice": int32(part),
    }
    return {"lease-slice": Described(symbol("jms-broker:lease-slice:map"), told)}


def browse_slice(
    part: int, parts: int, *, selector: str | None, until_ms: int
) -> dict[str, Described]:
    """Return the filters for one of `parts` parts of a browsed queue.

    Messages that arrived after `until_ms` are left out; 0 is no limit.
    """
    told: dict[Any, Any] = {
        "slice": int32(part),
        "slices": int32(parts),
        "arrived_until_ms": until_ms,
    }
    filters = {"browse-slice": Described(symbol("jms-broker:browse-slice:map"), told)}
    if selector is not None:
        filters["selector"] = Described(symbol("apache.org:selector-filter:string"), selector)
    return filters


def unwrapped(data: bytes) -> Received:
    """Return a message without its delivery annotations, and the facts that these have about it.

    Bytes that are no message are returned as they are: the code that decodes them reports it.
    """
    told: dict[str, object] = {}
    try:
        header_end = 0
        code, at = descriptor_at(data, 0, len(data))
        if code == HEADER:
            header_end = skip(data, at, len(data))
            code, at = descriptor_at(data, header_end, len(data))
        if code != DELIVERY_ANNOTATIONS:
            return Received(data)
        count, at, end = open_compound(data, at, len(data))
        while count > 0:
            key, at = take_value(data, at, end)
            value, at = take_value(data, at, end)
            if isinstance(key, Symbol):
                told[key.text] = value
            count -= 2
    except (Fault, IndexError):
        return _received(data, told)
    return _received(data[:header_end] + data[end:], told)


def _received(data: bytes, told: dict[str, object]) -> Received:
    """Return the message with the facts in its delivery annotations."""
    position = told.get(POSITION)
    enqueued = told.get(ENQUEUED)
    ttl_end = told.get(TTL_END)
    message_format = told.get(MESSAGE_FORMAT)
    return Received(
        data,
        position if isinstance(position, int) else None,
        enqueued.value if isinstance(enqueued, Timestamp) else None,
        ttl_ends_ms=ttl_end.value if isinstance(ttl_end, Timestamp) else None,
        message_format=message_format if isinstance(message_format, int) else None,
    )
