"""Sending encoded messages to the broker, many unconfirmed at a time, each of them confirmed.

Proton's C functions are called for each message (`proton_parts.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, final

from proton import Delivery, Link, symbol

from pyspark_amqp.errors import BrokerError
from pyspark_amqp.wire.connection import Connection
from pyspark_amqp.wire.failures import words
from pyspark_amqp.wire.proton_parts import (
    c_link,
    delivery_of,
    pn_delivery,
    pn_delivery_remote_state,
    pn_delivery_settle,
    pn_delivery_settled,
    pn_link_advance,
    pn_link_credit,
    pn_link_send,
)

UNCONFIRMED_MAX: Final = 1000
"""Maximum messages sent and not yet confirmed; more would only fill the broker's buffers."""

PORTION: Final = 1 << 16
"""Bytes that are worth a system call: the broker processes some while others are made."""

OUTCOMES: Final[dict[int, str]] = {
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}


@final
class Publisher:
    """A link that sends to `address`. Link `properties`, if given, make the broker stage."""

    def __init__(
        self,
        connection: Connection,
        address: str,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self._connection: Final = connection
        self._address: Final = address
        link = connection.sender(address)
        if properties:
            link.properties = {symbol(name): value for name, value in properties.items()}
        connection.attach(link)
        if properties:
            _require_stage(link, address)
        self._link: Final[Any] = c_link(link)
        self._unconfirmed: Final[deque[Any]] = deque()
        self._sent = 0
        self._room = 0
        self._unmoved = 0
        self._refused: str | None = None

    def send(self, data: bytes) -> None:
        """Send a message when the broker has room; raise BrokerError if it refused one before."""
        if self._room <= 0:
            self._connection.wait(self._make_room, f"sending to {self._address}")
            self._check()
        self._room -= 1
        self._sent += 1
        self._unconfirmed.append(pn_delivery(self._link, str(self._sent)))
        pn_link_send(self._link, data)
        pn_link_advance(self._link)
        self._unmoved += len(data)
        if self._unmoved >= PORTION:
            self._unmoved = 0
            self._connection.move()

    def flush(self) -> None:
        """Wait until the broker has confirmed all messages; raise BrokerError if it refused any."""
        self._connection.wait(self._settle_all, f"confirmations from {self._address}")
        self._check()

    def confirmed(self) -> int:
        """Return how many messages are confirmed, the first ones; raise as `send` does.

        The connection may be lost by now, but not closed.
        """
        self._settle()
        self._check()
        return self._sent - len(self._unconfirmed)

    def _make_room(self) -> bool:
        """Settle confirmed messages; return whether there is room for more, or one was refused."""
        self._settle()
        self._room = min(pn_link_credit(self._link), UNCONFIRMED_MAX - len(self._unconfirmed))
        return self._room > 0 or self._refused is not None

    def _settle_all(self) -> bool:
        """Settle confirmed messages; return whether all are confirmed, or one was refused."""
        self._settle()
        return not self._unconfirmed or self._refused is not None

    def _settle(self) -> None:
        """Settle the deliveries that the broker has settled; note the first one that it refused."""
        unconfirmed = self._unconfirmed
        while unconfirmed and pn_delivery_settled(unconfirmed[0]):
            delivery = unconfirmed.popleft()
            if pn_delivery_remote_state(delivery) != Delivery.ACCEPTED and self._refused is None:
                self._refused = _refusal(delivery)
            pn_delivery_settle(delivery)

    def _check(self) -> None:
        if self._refused is not None:
            raise BrokerError(f"{self._address} took not all messages: {self._refused}")


def _require_stage(link: Link, address: str) -> None:
    """Raise BrokerError if the broker knows no stage: it would deliver the messages at once."""
    told = link.remote_properties
    names = set(map(str, told)) if isinstance(told, Mapping) else set()
    if "stage-query" not in names:
        raise BrokerError(
            f"the broker stages nothing for {address}: option delivery=at-least-once does without"
        )


def _refusal(c_delivery: Any) -> str:
    delivery = delivery_of(c_delivery)
    outcome: str = OUTCOMES.get(int(delivery.remote_state), "not accepted")
    condition = delivery.remote.condition
    return outcome if condition is None else f"{outcome}: {words(condition)}"
