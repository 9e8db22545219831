"""Which consumer gets the next message: those with room, in turn."""

from typing import final

from mypy_extensions import i64

from broker.routing.party import Consumer


@final
class Turn:
    """The consumers of a queue that may have room, taking turns.

    One that turns out to have none leaves the round until it reports room
    again, so that idle consumers cost nothing.
    """

    def __init__(self) -> None:
        self._round: list[Consumer] = []
        self._at: i64 = 0

    def join(self, consumer: Consumer) -> None:
        """`consumer` may have room. It comes last in the round."""
        if consumer not in self._round:
            self._round.append(consumer)

    def leave(self, consumer: Consumer) -> None:
        """`consumer` has no room, or has gone."""
        if consumer in self._round:
            index = i64(self._round.index(consumer))
            del self._round[index]
            if index < self._at:
                self._at -= 1

    def next(self) -> Consumer | None:
        """The consumer whose turn it is and that has room, or None where nobody has."""
        members = self._round
        while members:
            if self._at >= i64(len(members)):
                self._at = 0
            consumer = members[self._at]
            if consumer.has_room():
                self._at += 1
                return consumer
            del members[self._at]
        return None

    def size(self) -> i64:
        """How many are in the round."""
        return i64(len(self._round))
