"""Sending encoded messages to the broker, many on the way at once, each confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

from proton import Delivery, Event, Handler, Link, Sender, symbol
from proton.reactor import LinkOption
from proton.utils import BlockingConnection, LinkDetached

from pipeline.errors import BrokerError

UNCONFIRMED_MAX: Final = 1000
"""Messages on the way to the broker; more would only fill its buffers."""

OUTCOMES: Final[dict[int, str]] = {
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}


@final
class _LinkProperties(LinkOption):
    """What the attach says beside its fields."""

    def __init__(self, told: Mapping[str, object]) -> None:
        self._told: Final = {symbol(name): value for name, value in told.items()}

    def apply(self, link: Link) -> None:
        link.properties = self._told  # type: ignore[assignment]


class _Confirmations(Handler):
    """What becomes of what was sent on one link."""

    def __init__(self) -> None:
        super().__init__()
        self.unsettled = 0
        self.refused: str | None = None

    def on_delivery(self, event: Event) -> None:
        delivery = event.delivery
        assert delivery is not None
        if not delivery.settled:
            return
        self.unsettled -= 1
        if delivery.remote_state != Delivery.ACCEPTED and self.refused is None:
            self.refused = _refusal(delivery)
        delivery.settle()

    def on_link_remote_close(self, event: Event) -> None:
        link = event.link
        assert link is not None
        link.close()
        raise LinkDetached(link)


@final
class Publisher:
    """One link to `address`. `properties` of the link say, where there are some, that what comes
    is staged."""

    def __init__(
        self,
        connection: BlockingConnection,
        address: str,
        properties: Mapping[str, object] | None = None,
    ) -> None:
        self._connection: Final = connection
        self._address: Final = address
        self._confirmations: Final = _Confirmations()
        options: Any = [_LinkProperties(properties)] if properties else None
        link = connection.create_sender(address, handler=self._confirmations, options=options).link
        assert isinstance(link, Sender)
        self._link: Final = link
        if properties:
            _require_stage(link, address)

    def send(self, data: bytes) -> None:
        """Put a message on its way, as soon as the broker has room. BrokerError where one before
        it was refused."""
        link, told = self._link, self._confirmations
        if link.credit <= 0 or told.unsettled >= UNCONFIRMED_MAX:
            self._connection.wait(
                lambda: (
                    (link.credit > 0 and told.unsettled < UNCONFIRMED_MAX)
                    or told.refused is not None
                ),
                msg=f"sending to {self._address}",
            )
        self._check()
        link.delivery(link.delivery_tag())
        link.stream(data)
        link.advance()
        told.unsettled += 1

    def flush(self) -> None:
        """Return when the broker has confirmed all; BrokerError where it has refused one."""
        told = self._confirmations
        self._connection.wait(
            lambda: told.unsettled == 0 or told.refused is not None,
            msg=f"confirmations from {self._address}",
        )
        self._check()

    def _check(self) -> None:
        refused = self._confirmations.refused
        if refused is not None:
            raise BrokerError(f"{self._address} took not all messages: {refused}")


def _require_stage(link: Link, address: str) -> None:
    """A broker that knows no stage would show what comes to everybody, at once."""
    told = link.remote_properties
    names = set(map(str, told)) if isinstance(told, Mapping) else set()
    if "stage-query" not in names:
        raise BrokerError(
            f"the broker stages nothing for {address}: option delivery=at-least-once does without"
        )


def _refusal(delivery: Delivery) -> str:
    outcome: str = OUTCOMES.get(int(delivery.remote_state), "not accepted")
    condition = delivery.remote.condition
    return outcome if condition is None else f"{outcome}: {condition}"
