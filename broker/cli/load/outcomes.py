"""The outcomes of messages that a link of the load sends, alone or in transactions (core 4)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, final

from cproton import PN_ACCEPTED, pn_delivery_remote_state
from proton import Delivery, Described, Message, symbol

from broker.cli.ending import ClientError
from broker.cli.load.plan import NO_LIMIT

if TYPE_CHECKING:
    from proton import Sender

    from broker.cli.load.counts import LoadCounts

TRANSACTIONAL_STATE: Final = 0x34


class Outcomes(Protocol):
    """The outcomes of the messages of one link."""

    @property
    def room(self) -> int:
        """Return how many messages may be sent now."""

    @property
    def are_known(self) -> bool:
        """Return whether no outcome is missing for messages that the broker has settled."""

    def begun(self, c_delivery: Any) -> None:
        """Prepare the delivery of a message that is about to be sent."""

    def settled(self, c_delivery: Any) -> None:
        """Count the outcome of a delivery that the broker has settled."""

    def complete(self, *, at_end: bool) -> None:
        """Do what follows messages that were sent, `at_end` if there will be no more."""


@final
class SingleOutcomes:
    """The outcomes of messages without transactions."""

    room: Final = NO_LIMIT
    are_known: Final = True

    def __init__(self, counts: LoadCounts) -> None:
        self._counts: Final = counts

    def begun(self, c_delivery: Any) -> None:
        """Do nothing: the delivery of a message without a transaction has no state."""

    def settled(self, c_delivery: Any) -> None:
        if pn_delivery_remote_state(c_delivery) == PN_ACCEPTED:
            self._counts.accepted += 1
        else:
            self._counts.refused += 1

    def complete(self, *, at_end: bool) -> None:
        """Do nothing: each message is complete by itself."""


@final
class TransactedOutcomes:
    """The outcomes of messages that are sent in transactions of `size` messages.

    Messages count as accepted when the broker has committed their transaction.
    """

    def __init__(self, coordinator: Sender, size: int, counts: LoadCounts) -> None:
        self._coordinator: Final = coordinator
        self._size: Final = size
        self._counts: Final = counts
        self._commands: Final[deque[tuple[Delivery, bool]]] = deque()
        """The commands that are not answered, and whether each is a commit."""
        self._id: Any = None
        self._begun = 0
        self._taken = 0
        self._declare()

    @property
    def room(self) -> int:
        self._read_answers()
        return 0 if self._id is None else self._size - self._begun

    @property
    def are_known(self) -> bool:
        self._read_answers()
        return not self._taken and not self._begun

    def begun(self, c_delivery: Any) -> None:
        """Put the message into the transaction."""
        delivery = delivery_of(c_delivery)
        delivery.local.data = [self._id]
        delivery.update(TRANSACTIONAL_STATE)
        self._begun += 1

    def settled(self, c_delivery: Any) -> None:
        """Count a message that is not part of the transaction as refused."""
        if pn_delivery_remote_state(c_delivery) == TRANSACTIONAL_STATE:
            self._taken += 1
        else:
            self._counts.refused += 1

    def complete(self, *, at_end: bool) -> None:
        """Commit a transaction that has all its messages, or some of them and no more follow."""
        if self._begun >= self._size or (at_end and self._begun > 0):
            self._command("amqp:discharge:list", [self._id, False], is_commit=True)
            self._id, self._begun = None, 0
            self._declare()

    def _declare(self) -> None:
        self._command("amqp:declare:list", [None], is_commit=False)

    def _command(self, descriptor: str, fields: list[Any], *, is_commit: bool) -> None:
        command = Message(inferred=True, body=Described(symbol(descriptor), fields))
        delivery = self._coordinator.send(command)
        assert isinstance(delivery, Delivery)  # an int for raw bytes only
        self._commands.append((delivery, is_commit))

    def _read_answers(self) -> None:
        """Process the coordinator's answers. Raise ClientError if it refused a command."""
        while self._commands and self._commands[0][0].settled:
            delivery, is_commit = self._commands.popleft()
            if delivery.remote_state == Delivery.REJECTED:
                raise ClientError(_refusal(delivery, "commit" if is_commit else "declare"))
            if is_commit:
                # the broker settles the messages of a transaction before its commit
                self._counts.accepted += self._taken
                self._taken = 0
            else:
                (self._id,) = delivery.remote.data or (None,)
            delivery.settle()


def delivery_of(c_delivery: Any) -> Delivery:
    """Return Proton's object for a delivery of C."""
    delivery: Delivery = cast("Any", Delivery).wrap(c_delivery)
    return delivery


def _refusal(delivery: Delivery, command: str) -> str:
    condition = delivery.remote.condition
    told = "" if condition is None else f": {condition.name}: {condition.description}"
    return f"the broker refused to {command} a transaction{told}"
