"""Ranges of consecutive accepted deliveries, reported to their sender in one disposition."""

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from broker.amqp.outcomes import ACCEPTED, State

NOTHING: Final[i64] = -1


@mypyc_attr(acyclic=True)
@final
class AcceptedRange:
    """Delivery-ids `first` to `last` that share one `state` and one `settled` flag.

    `first` is NOTHING if the range is empty.
    """

    def __init__(self) -> None:
        self.first: i64 = NOTHING
        self.last: i64 = NOTHING
        self.settled = True
        self.state: State = ACCEPTED
        self._is_plain = False

    def begin(self, delivery_id: i64, settled: bool, state: State) -> None:
        """Make this delivery the only one of the range."""
        self.first = delivery_id
        self.last = delivery_id
        self.settled = settled
        self.state = state
        self._is_plain = state is ACCEPTED

    def clear(self) -> None:
        """Empty the range; `last`, `settled` and `state` keep their values."""
        self.first = NOTHING
        self._is_plain = False

    def takes(self, delivery_id: i64, settled: bool) -> bool:
        """Add an accepted delivery if its id is the next one; return whether it was added.

        For deliveries outside of transactions.
        """
        if (
            self._is_plain
            and delivery_id == ((self.last + 1) & 0xFFFF_FFFF)
            and settled is self.settled
        ):
            self.last = delivery_id
            return True
        return False

    def takes_posting(self, delivery_id: i64, settled: bool, state: State) -> bool:
        """Like `takes`, for a delivery within the transaction that `state` names.

        Callers pass one `state` object per transaction: it is compared by identity.
        """
        if (
            state is self.state
            and self.first != NOTHING
            and delivery_id == ((self.last + 1) & 0xFFFF_FFFF)
            and settled is self.settled
        ):
            self.last = delivery_id
            return True
        return False
