"""The links of the load: encoded messages out and in, by the C functions of Proton's engine."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, final

from cproton import (
    PN_ACCEPTED,
    PN_RELEASED,
    isnull,
    pn_delivery,
    pn_delivery_aborted,
    pn_delivery_partial,
    pn_delivery_pending,
    pn_delivery_settle,
    pn_delivery_settled,
    pn_delivery_update,
    pn_link_advance,
    pn_link_credit,
    pn_link_current,
    pn_link_flow,
    pn_link_recv,
    pn_link_send,
)

from broker.cli.ending import ClientError
from broker.cli.load.load_message import is_of_run

if TYPE_CHECKING:
    from proton import Link, Receiver, Sender

    from broker.cli.load.outcomes import Outcomes
    from broker.cli.load.plan import LoadPlan


def c_link(link: Link) -> Any:
    """Return the C object of `link`, which the C functions of links take."""
    return link._impl  # noqa: SLF001 - there is no public way


@final
class OutgoingMessages:
    """A link that sends, and its messages that the broker has not yet settled, oldest first."""

    def __init__(self, link: Sender, in_flight: int, outcomes: Outcomes) -> None:
        """Take the maximum number of unsettled messages, and what their outcomes mean."""
        self.count = 0
        self._link: Final = c_link(link)
        self._in_flight: Final = in_flight
        self._outcomes: Final = outcomes
        self._unsettled: Final[deque[Any]] = deque()

    @property
    def room(self) -> int:
        """Return how many messages can be sent now."""
        unused = self._in_flight - len(self._unsettled)
        credit: int = pn_link_credit(self._link)
        return min(credit, unused, self._outcomes.room)

    @property
    def is_complete(self) -> bool:
        """Return whether the outcomes of all messages are known."""
        return not self._unsettled and self._outcomes.are_known

    def send(self, data: bytes) -> None:
        """Send a message; call it only if there is room."""
        self.count += 1
        c_delivery = pn_delivery(self._link, str(self.count))
        self._outcomes.begun(c_delivery)
        self._unsettled.append(c_delivery)
        pn_link_send(self._link, data)
        pn_link_advance(self._link)

    def complete(self, *, at_end: bool) -> None:
        """Commit messages that were sent in a transaction, if it is time."""
        self._outcomes.complete(at_end=at_end)

    def settle(self) -> int:
        """Settle each delivery that the broker has settled; return their number."""
        unsettled = self._unsettled
        before = len(unsettled)
        while unsettled and pn_delivery_settled(unsettled[0]):
            c_delivery = unsettled.popleft()
            self._outcomes.settled(c_delivery)
            pn_delivery_settle(c_delivery)
        return before - len(unsettled)


@final
class IncomingMessages:
    """A link that receives and accepts the messages of a run; it renews its credit."""

    def __init__(self, link: Receiver, plan: LoadPlan) -> None:
        self._link: Final = c_link(link)
        self._plan: Final = plan
        self._address: Final = link.source.address
        pn_link_flow(self._link, plan.credit)

    def take(self) -> list[bytearray]:
        """Return all messages that have arrived, each accepted.

        Raise ClientError, and return the message to the queue, if another program sent it.
        """
        link, plan = self._link, self._plan
        messages: list[bytearray] = []
        while True:
            c_delivery = pn_link_current(link)
            if isnull(c_delivery) or pn_delivery_partial(c_delivery):
                break
            if pn_delivery_aborted(c_delivery):
                raise ClientError("the broker aborted a message")
            _, data = pn_link_recv(link, pn_delivery_pending(c_delivery))
            pn_link_advance(link)
            is_ours = is_of_run(data, plan.run_id, plan.size)
            pn_delivery_update(c_delivery, PN_ACCEPTED if is_ours else PN_RELEASED)
            pn_delivery_settle(c_delivery)
            if not is_ours:
                raise ClientError(
                    f"{self._address} has messages that this load has not sent; those received"
                    " are back in it. Name an address of which the load is the only user"
                )
            messages.append(data)
        missing = plan.credit - pn_link_credit(link)
        if missing > plan.credit // 2:
            pn_link_flow(link, missing)
        return messages
