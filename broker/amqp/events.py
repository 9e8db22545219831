"""Callbacks of a Connection to its owner, made while bytes are being read.

Calls, not a list of events: a peer may pipeline a transfer behind its attach,
and the attach must have been answered by then. No method may await.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.amqp.errors import NOT_IMPLEMENTED, LinkFault

if TYPE_CHECKING:
    from broker.amqp.delivery import Delivery
    from broker.amqp.incoming_link import IncomingLink
    from broker.amqp.outcomes import DeliveryState, TransactionalState
    from broker.amqp.outgoing_link import OutgoingLink
    from broker.amqp.performatives import Attach, Open
    from broker.amqp.session import Session


AFTER_END: Final = "a call of a connection that is over"


@mypyc_attr(allow_interpreted_subclasses=True)
class ConnectionOwner:
    """The owner of a connection."""

    @abstractmethod
    def output_ready(self) -> None:
        """Arrange for `data_to_send`: there is output for the first time since its last call."""

    @abstractmethod
    def deadline_changed(self) -> None:
        """Arrange for `tick`: `next_deadline_ms` has moved to an earlier moment."""

    @abstractmethod
    def authenticate(self, mechanism: str, response: bytes | None) -> None:
        """Answer with `sasl_challenge` or `sasl_outcome`, now or later (5.3.3.2).

        Input is held until then. `response` is None if the client sent no initial response.
        """

    @abstractmethod
    def challenge_answered(self, response: bytes) -> None:
        """Answer the client's response to the last challenge, as in `authenticate` (5.3.3.4)."""

    @abstractmethod
    def input_rests(self) -> None:
        """Call the connection's `go_on` in a later turn of the event loop; input waits for it."""

    @abstractmethod
    def opened(self, open: Open) -> None:
        """Answer at once with `accept` or `refuse` (2.4.1)."""

    @abstractmethod
    def incoming_attached(self, link: IncomingLink, attach: Attach) -> None:
        """Answer at once with `link.accept` or `link.refuse`: the peer is to send on `link`."""

    @abstractmethod
    def outgoing_attached(self, link: OutgoingLink, attach: Attach) -> None:
        """Answer at once with `link.accept` or `link.refuse`: the peer is to receive on `link`."""

    def session_begun(self, session: Session) -> None:
        """Handle a session that the peer has begun, and that is answered; it may be ended."""

    @abstractmethod
    def session_ended(self, session: Session) -> None:
        """Handle the end of a session whose connection continues.

        Called after the owners of its links.
        """

    @abstractmethod
    def sessions_dropped(self) -> None:
        """Handle the end of the connection, and with it of every session and link.

        Called once, after the owners of its links.
        """

    def unfinished_changed(self, size: i64) -> None:
        """Count `size` more bytes, or fewer, in deliveries of which not all frames have arrived."""

    @abstractmethod
    def transaction_failed(self, txn_id: bytes, fault: LinkFault) -> None:
        """Prevent the transaction's commit: a send or settlement within it has failed."""

    @abstractmethod
    def ended(self) -> None:
        """Handle the end of the connection by close, fault or loss.

        Called after the owners of its links.
        """

    @abstractmethod
    def failed(self, error: Exception) -> None:
        """Report a bug: `error` is no Fault. The connection closes with internal-error."""


@final
class EndedOwner(ConnectionOwner):
    """The owner of a connection that is over, in place of the one that it had.

    Owner and connection would be a reference cycle, which the cyclic garbage collector would have
    to find: with a thousand refused logins in a second it stops the event loop for 0.2 s at times.
    Output and deadlines that come after the end are for no socket any more.
    """

    def output_ready(self) -> None:
        """Do nothing."""

    def deadline_changed(self) -> None:
        """Do nothing."""

    def authenticate(self, mechanism: str, response: bytes | None) -> None:
        raise NotImplementedError(AFTER_END)

    def challenge_answered(self, response: bytes) -> None:
        raise NotImplementedError(AFTER_END)

    def input_rests(self) -> None:
        raise NotImplementedError(AFTER_END)

    def opened(self, open: Open) -> None:
        raise NotImplementedError(AFTER_END)

    def incoming_attached(self, link: IncomingLink, attach: Attach) -> None:
        raise NotImplementedError(AFTER_END)

    def outgoing_attached(self, link: OutgoingLink, attach: Attach) -> None:
        raise NotImplementedError(AFTER_END)

    def session_ended(self, session: Session) -> None:
        raise NotImplementedError(AFTER_END)

    def sessions_dropped(self) -> None:
        """Do nothing: a connection that is over before it is opened has no sessions to end."""

    def unfinished_changed(self, size: i64) -> None:
        raise NotImplementedError(AFTER_END)

    def transaction_failed(self, txn_id: bytes, fault: LinkFault) -> None:
        raise NotImplementedError(AFTER_END)

    def ended(self) -> None:
        raise NotImplementedError(AFTER_END)

    def failed(self, error: Exception) -> None:
        raise error


ENDED: Final = EndedOwner()


@mypyc_attr(allow_interpreted_subclasses=True)
class Intake:
    """The destination of a large delivery while its frames arrive."""

    @abstractmethod
    def take(self, data: bytes, at: i64, end: i64) -> None:
        """Take the next part, `data[at:end]`. The first is at least ENOUGH, to find the body."""

    @abstractmethod
    def complete(self, delivery_id: i64, *, settled: bool, txn_id: bytes | None) -> None:
        """Complete the delivery: like `delivered`, or like `posted` if there is a transaction."""

    @abstractmethod
    def abandon(self) -> None:
        """Discard the delivery: it will never be complete."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Supply:
    """The source of a large delivery while it is sent."""

    @abstractmethod
    def take(self) -> bytes | None:
        """Return the next piece of the delivery.

        None if it is not available yet: `link.supplied` is called when it is.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop supplying: no more pieces are needed."""


@mypyc_attr(allow_interpreted_subclasses=True)
class AbortListener:
    """Waits for the abort of a delivery whose acquisition is rolled back (core 4.4.3)."""

    @abstractmethod
    def aborted(self) -> None:
        """Take note that the abort is written, or that the link has ended."""


@mypyc_attr(allow_interpreted_subclasses=True)
class IncomingOwner:
    """The owner of a link on which the peer sends."""

    @abstractmethod
    def delivered(self, delivery_id: i64, data: bytes, at: i64, end: i64, settled: bool) -> None:
        """Handle a whole message, which lies in `data[at:end]`.

        Unless `settled`, the link must be given an outcome with `accept_delivery` or `settle`.
        Raise LinkFault to have the link detached.
        """

    @abstractmethod
    def posted(
        self, delivery_id: i64, data: bytes, at: i64, end: i64, *, settled: bool, txn_id: bytes
    ) -> None:
        """Like `delivered`, for a message that is sent within a transaction (core 4.4.1).

        Its outcome is given with `accept_posting`, or with `settle` and a TransactionalState.
        """

    def large(self) -> Intake | None:
        """Return the intake for a delivery of which STREAMED_FROM bytes have arrived.

        None if it is to stay in memory.
        """
        return None

    @abstractmethod
    def credit_low(self) -> None:
        """Grant credit if possible: half of the credit that was granted is used up."""

    def settled_by_sender(self, tag: bytes) -> None:
        """Take note that the sender has settled a delivery whose outcome the target has kept."""

    def take_back_credit(self) -> None:
        """Take back unused credit: the broker drains. Requests that end work keep theirs."""

    @abstractmethod
    def incoming_ended(self, closed: bool) -> None:
        """Handle the end of the link; `closed` if the peer sent detach(closed=true)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class OutgoingOwner:
    """The owner of a link on which the peer receives.

    `unsettled` is written by the session: the number of the link's deliveries in its unsettled map.
    """

    unsettled: i64 = 0

    @abstractmethod
    def credit_changed(self, drain: bool) -> None:
        """Send while the link has room. With `drain`, answer with `link.drained`."""

    @abstractmethod
    def accepted(self, deliveries: list[Delivery]) -> None:
        """Handle deliveries of the link that the peer has accepted; they are settled."""

    @abstractmethod
    def settled(self, delivery: Delivery, state: DeliveryState | None) -> None:
        """Handle a delivery that the peer has settled or given an outcome.

        `state` is None if the peer gave none.
        """

    @abstractmethod
    def retired(self, delivery: Delivery, state: TransactionalState, settled: bool) -> None:
        """Handle the peer's outcome of `delivery` for the end of a transaction (core 4.4.2).

        Unless `settled` it stays unsettled, until the peer or `link.settle` settles it.
        """

    def acquire_within(self, txn_id: bytes | None) -> None:
        """Acquire messages within that transaction from now on, None for none (core 4.4.3).

        Raise LinkFault if there is no such transaction, or the link takes part in none.
        """
        if txn_id is not None:
            raise LinkFault(NOT_IMPLEMENTED, "this link acquires no messages in transactions")

    @abstractmethod
    def outgoing_ended(self, closed: bool, unsettled: list[Delivery]) -> None:
        """Handle the end of the link.

        The deliveries in `unsettled`, in order, have ended with it, without an outcome.
        """
