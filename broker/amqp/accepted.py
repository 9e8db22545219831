"""Deliveries that are accepted one after the other, and told to their sender in one disposition."""

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from broker.amqp.outcomes import ACCEPTED, State

NOTHING: Final[i64] = -1


@mypyc_attr(acyclic=True)
@final
class AcceptedRange:
    """The ids `first` to `last`, about which the same is to be said; `first` NOTHING for none."""

    def __init__(self) -> None:
        self.first: i64 = NOTHING
        self.last: i64 = NOTHING
        self.settled = True
        self.state: State = ACCEPTED
        self._is_plain = False

    def begin(self, delivery_id: i64, settled: bool, state: State) -> None:
        """Hold this delivery alone."""
        self.first = delivery_id
        self.last = delivery_id
        self.settled = settled
        self.state = state
        self._is_plain = state is ACCEPTED

    def clear(self) -> None:
        self.first = NOTHING
        self._is_plain = False

    def takes(self, delivery_id: i64, settled: bool) -> bool:
        """Whether the next accepted delivery continues the range; then it belongs to it."""
        if (
            self._is_plain
            and delivery_id == ((self.last + 1) & 0xFFFF_FFFF)
            and settled is self.settled
        ):
            self.last = delivery_id
            return True
        return False

    def takes_posting(self, delivery_id: i64, settled: bool, state: State) -> bool:
        """The same for a delivery of a transaction; `state`, always one object, names it."""
        if (
            state is self.state
            and self.first != NOTHING
            and delivery_id == ((self.last + 1) & 0xFFFF_FFFF)
            and settled is self.settled
        ):
            self.last = delivery_id
            return True
        return False
