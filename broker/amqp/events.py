"""What a Connection tells its owner, as calls made while bytes are being read.

Calls, not a list of events: a peer may pipeline a transfer behind its attach,
and the attach must have been answered by then. No method may await.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from mypy_extensions import i64, mypyc_attr

if TYPE_CHECKING:
    from broker.amqp.delivery import Delivery
    from broker.amqp.errors import LinkFault
    from broker.amqp.incoming_link import IncomingLink
    from broker.amqp.outcomes import DeliveryState, TransactionalState
    from broker.amqp.outgoing_link import OutgoingLink
    from broker.amqp.performatives import Attach, Open
    from broker.amqp.session import Session


@mypyc_attr(allow_interpreted_subclasses=True)
class ConnectionOwner:
    """The owner of a connection."""

    @abstractmethod
    def output_ready(self) -> None:
        """There is something to send, for the first time since `data_to_send`."""

    @abstractmethod
    def deadline_changed(self) -> None:
        """`next_deadline_ms` has moved to an earlier moment."""

    @abstractmethod
    def authenticate(self, mechanism: str, response: bytes) -> None:
        """Answer with `sasl_outcome`, now or later; input waits until then (5.3.3.2)."""

    @abstractmethod
    def input_rests(self) -> None:
        """Call the connection's `go_on` in a later turn of the event loop; input waits for it."""

    @abstractmethod
    def opened(self, open: Open) -> None:
        """Answer at once with `accept` or `refuse` (2.4.1)."""

    @abstractmethod
    def incoming_attached(self, link: IncomingLink, attach: Attach) -> None:
        """The peer will send on `link`. Answer at once with `link.accept` or `link.refuse`."""

    @abstractmethod
    def outgoing_attached(self, link: OutgoingLink, attach: Attach) -> None:
        """The peer will receive on `link`. Answer at once with `link.accept` or `link.refuse`."""

    @abstractmethod
    def session_ended(self, session: Session) -> None:
        """A session is over, all of its links have been told; its connection goes on."""

    @abstractmethod
    def sessions_dropped(self) -> None:
        """The connection ends, and with it every session and link; told once, after them."""

    def unfinished_changed(self, size: i64) -> None:
        """Count `size` more bytes, or fewer, in deliveries of which not all frames have come."""

    @abstractmethod
    def transaction_failed(self, txn_id: bytes, fault: LinkFault) -> None:
        """Something that was sent or settled within that transaction has come to nothing."""

    @abstractmethod
    def ended(self) -> None:
        """The connection is over, by close, fault or loss; all links have been told before."""

    @abstractmethod
    def failed(self, error: Exception) -> None:
        """A bug: an exception that is no Fault. The connection closes with internal-error."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Intake:
    """Where a large delivery goes while it comes."""

    @abstractmethod
    def take(self, data: bytes, at: i64, end: i64) -> None:
        """More of it lies in `data[at:end]`. The first time it is ENOUGH to find the body."""

    @abstractmethod
    def complete(self, delivery_id: i64, *, settled: bool, txn_id: bytes | None) -> None:
        """That was all: as `delivered`, or `posted` where there is a transaction."""

    @abstractmethod
    def abandon(self) -> None:
        """No more will come: there was no such delivery."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Supply:
    """Where a large delivery comes from while it goes."""

    @abstractmethod
    def take(self) -> bytes | None:
        """What comes next, None where it is not there yet: `link.supplied` is called then."""

    @abstractmethod
    def close(self) -> None:
        """Nothing more is wanted."""


@mypyc_attr(allow_interpreted_subclasses=True)
class IncomingOwner:
    """The owner of a link on which the peer sends."""

    @abstractmethod
    def delivered(self, delivery_id: i64, data: bytes, at: i64, end: i64, settled: bool) -> None:
        """A whole message lies in `data[at:end]`. Unless `settled`, `link.settle` is owed."""

    @abstractmethod
    def posted(
        self, delivery_id: i64, data: bytes, at: i64, end: i64, *, settled: bool, txn_id: bytes
    ) -> None:
        """As `delivered`, of a message that is sent within a transaction (core 4.4.1)."""

    def large(self) -> Intake | None:
        """Where a delivery goes of which STREAMED_FROM bytes have come; None: into memory."""
        return None

    @abstractmethod
    def credit_low(self) -> None:
        """Half of the credit that was granted is used up."""

    @abstractmethod
    def incoming_ended(self, closed: bool) -> None:
        """The link is over; `closed`: the peer said so with detach(closed=true)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class OutgoingOwner:
    """The owner of a link on which the peer receives.

    `unsettled` belongs to the session: how many deliveries of the link its unsettled map has.
    """

    unsettled: i64 = 0

    @abstractmethod
    def credit_changed(self, drain: bool) -> None:
        """There may be room for deliveries now. With `drain`, answer with `link.drained`."""

    @abstractmethod
    def accepted(self, deliveries: list[Delivery]) -> None:
        """The peer has accepted these deliveries of the link; they are settled."""

    @abstractmethod
    def settled(self, delivery: Delivery, state: DeliveryState | None) -> None:
        """The peer is done with `delivery`, in `state` where it says one."""

    @abstractmethod
    def retired(self, delivery: Delivery, state: TransactionalState, settled: bool) -> None:
        """The peer gives `delivery` an outcome for the end of a transaction (core 4.4.2).

        Unless `settled` it stays unsettled, for the peer or `link.settle` to end.
        """

    @abstractmethod
    def outgoing_ended(self, closed: bool, unsettled: list[Delivery]) -> None:
        """The link is over; these deliveries ended with it, in their order, without an outcome."""
