"""The deliveries of a session that their sender has to settle before the broker (core 2.6.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED, SessionFault
from broker.amqp.id_set import IdSet
from broker.amqp.limits import UNSETTLED_IN_MAX

if TYPE_CHECKING:
    from broker.amqp.incoming_link import IncomingLink


@final
class AwaitedSettlements:
    """The links of these deliveries by delivery-id. Each link also has the ids of its own.

    A range costs time for those that it settles, and the end of a link for its own
    (`docs/design/hostile-input.md` C12, R3).
    """

    def __init__(self) -> None:
        self._links: Final[dict[int, IncomingLink]] = {}
        self._ids: Final = IdSet()

    def put(self, delivery_id: i64, link: IncomingLink) -> None:
        """Record a delivery; SessionFault if there are too many."""
        links = self._links
        if len(links) >= UNSETTLED_IN_MAX:
            raise SessionFault(RESOURCE_LIMIT_EXCEEDED, "too many deliveries are unsettled")
        number = int(delivery_id)
        links[number] = link
        link.awaited[number] = None
        self._ids.add(delivery_id)

    def has(self, delivery_id: i64) -> bool:
        """Return whether the sender has still to settle a delivery."""
        return int(delivery_id) in self._links

    def settle(self, first: i64, last: i64) -> None:
        """Forget the deliveries with ids `first` to `last`, which their sender has settled."""
        if not self._links:
            return
        if first == last:
            if int(first) in self._links:
                self._ids.discard(first)
                self._settle(int(first))
        elif (last - first) & 0xFFFF_FFFF < 0x8000_0000:
            for number in self._ids.take_range(first, last):
                self._settle(number)

    def _settle(self, number: int) -> None:
        link = self._links.pop(number, None)
        if link is None:
            return  # another delivery of the range has ended its link
        link.awaited.pop(number, None)
        if link.kept is not None:
            link.settled_by_sender(i64(number))

    def forget(self, link: IncomingLink) -> None:
        """Forget the deliveries of a link, which has ended."""
        for number in link.awaited:
            self._links.pop(number, None)
            self._ids.discard(i64(number))
        link.awaited.clear()

    def clear(self) -> None:
        """Forget all deliveries."""
        self._links.clear()
        self._ids.clear()
