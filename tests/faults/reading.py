"""The digest of a history: the fate of each message and transaction, as far as clients can know."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final

from tests.faults.history import Action, Event, Phase


class Fate(Enum):
    """The fate of a message or transaction, as far as clients can know it."""

    DONE = "done"
    NOT_DONE = "not done"
    IN_DOUBT = "in doubt"


class Sent:
    """A message: its address, and how often its sender was told what."""

    def __init__(self, event: Event) -> None:
        self.address: Final = event.place
        self.crc: Final = event.crc
        self.priority: Final = event.priority
        self.transaction: Final = event.transaction
        self.first_ns: Final = event.at_ns
        self.attempts = 0
        self.accepted = 0
        self.refused = 0

    @property
    def copies(self) -> int:
        """Return the maximum number of copies of it that there may be."""
        return self.attempts - self.refused


class Receipt:
    """One delivery of a message. `accepted`: None if not settled, False if returned."""

    def __init__(self, event: Event) -> None:
        self.by: Final = event.by
        self.crc: Final = event.crc
        self.flagged: Final = event.flagged
        self.accepted: bool | None = None
        self.transaction = ""


class Reading:
    """The digest of a history.

    `topics` has the subscriptions of an address and since when each exists, in ns; `alone` has the
    links that were the only consumers of their place and returned nothing to it.
    """

    def __init__(
        self,
        events: Iterable[Event],
        *,
        topics: Mapping[str, Mapping[str, int]] | None = None,
        alone: frozenset[str] = frozenset(),
    ) -> None:
        self.topics: Final = topics or {}
        self.alone: Final = alone
        self.sent: Final[dict[str, Sent]] = {}
        self.receipts: Final[dict[tuple[str, str], list[Receipt]]] = defaultdict(list)
        self.by_link: Final[dict[tuple[str, str], list[tuple[str, bool]]]] = defaultdict(list)
        self.outages_ms: Final[list[float]] = []
        self._down_ns = 0
        self._is_back = False
        self._commits: Final[dict[str, Fate]] = {}
        for event in events:
            self._read(event)

    def _read(self, event: Event) -> None:
        match event.action:
            case Action.SEND:
                self._read_send(event)
            case Action.RECEIVE:
                self._read_receipt(event)
            case Action.SETTLE:
                self._read_settlement(event)
            case Action.COMMIT:
                fates = {Phase.OK: Fate.DONE, Phase.FAIL: Fate.NOT_DONE}
                self._commits[event.subject] = fates.get(event.phase, Fate.IN_DOUBT)
            case Action.OUTAGE:
                self._read_outage(event)
                return
        if self._is_back and event.phase is Phase.OK:
            self.outages_ms.append((event.at_ns - self._down_ns) / 1e6)
            self._is_back = False

    def _read_outage(self, event: Event) -> None:
        if event.phase is Phase.INVOKE:
            self._down_ns = event.at_ns
        else:
            self._is_back = self._down_ns > 0

    def _read_send(self, event: Event) -> None:
        sent = self.sent.get(event.subject)
        if sent is None:
            sent = self.sent[event.subject] = Sent(event)
        sent.attempts += event.phase is Phase.INVOKE
        sent.accepted += event.phase is Phase.OK
        sent.refused += event.phase is Phase.FAIL

    def _read_receipt(self, event: Event) -> None:
        earlier = self.receipts[event.place, event.subject]
        self.by_link[event.place, event.by].append((event.subject, not earlier))
        earlier.append(Receipt(event))

    def _read_settlement(self, event: Event) -> None:
        for receipt in reversed(self.receipts[event.place, event.subject]):
            if receipt.by == event.by:
                receipt.accepted = event.phase is not Phase.FAIL
                receipt.transaction = event.transaction
                return

    # -- what is known

    def fate_of(self, transaction: str) -> Fate:
        """Return the fate of a transaction; without a request to commit, it is not done."""
        return self._commits.get(transaction, Fate.NOT_DONE)

    def fate(self, sent: Sent) -> Fate:
        """Return whether the broker has taken responsibility for the message."""
        if sent.transaction:
            return Fate.NOT_DONE if sent.copies == 0 else self.fate_of(sent.transaction)
        if sent.accepted:
            return Fate.DONE
        return Fate.IN_DOUBT if sent.copies else Fate.NOT_DONE

    def places(self, sent: Sent) -> Iterator[str]:
        """Yield the places at which an accepted message must be."""
        subscriptions = self.topics.get(sent.address)
        if subscriptions is None:
            yield sent.address
            return
        yield from (name for name, since in subscriptions.items() if sent.first_ns >= since)

    def may_be_at(self, sent: Sent, place: str) -> bool:
        """Return whether the message may be there; a subscription may begin while it is sent."""
        return place in self.topics.get(sent.address, (sent.address,))

    def is_consumed(self, receipt: Receipt) -> Fate:
        """Return whether the delivery consumed the message, as far as the consumer can know."""
        if not receipt.accepted:
            return Fate.NOT_DONE
        return self.fate_of(receipt.transaction) if receipt.transaction else Fate.IN_DOUBT

    def seen(self, place: str, subject: str) -> list[Receipt]:
        """Return the message's deliveries at that place, in order."""
        return self.receipts.get((place, subject), [])
