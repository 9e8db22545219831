"""Session windows (core 2.5.6): how many more transfer frames may be received and sent."""

from typing import final

from mypy_extensions import i64

from broker.amqp import serial
from broker.amqp.errors import WINDOW_VIOLATION, SessionFault


@final
class IncomingWindow:
    """The number of transfers that the broker lets the peer send."""

    def __init__(self, size: i64, next_id: i64) -> None:
        self.size: i64 = size
        self.left: i64 = size
        self.next_id: i64 = next_id

    def take(self) -> None:
        """Count a transfer from the peer. Raise SessionFault if it had no window left for it."""
        if self.left <= 0:
            raise SessionFault(WINDOW_VIOLATION, f"more than {self.size} transfers in the window")
        self.left -= 1
        self.next_id = (self.next_id + 1) & 0xFFFF_FFFF

    def wants_refill(self) -> bool:
        """Return whether to announce the window again, before the peer stalls."""
        return self.left <= self.size >> 1

    def refill(self) -> i64:
        """Return the window to announce; the whole of it is open from now on."""
        self.left = self.size
        return self.size

    def announced(self, next_outgoing_id: i64) -> None:
        """Take over the id of the peer's next transfer.

        Raise SessionFault if it is lower than before (2.5.6).
        """
        if serial.ahead(next_outgoing_id, self.next_id) < 0:
            raise SessionFault(
                WINDOW_VIOLATION,
                f"next-outgoing-id went back from {self.next_id} to {next_outgoing_id}",
            )
        self.next_id = next_outgoing_id


@final
class OutgoingWindow:
    """The number of transfers that the broker may send, of those that the peer offered."""

    def __init__(self, offered: i64) -> None:
        self.left: i64 = offered
        self.next_id: i64 = 0

    def offered(self, peer_next_incoming_id: i64, peer_window: i64) -> None:
        """Take over the window of a flow frame. Transfers that are in transit use it up.

        An absent id (-1) means that the peer has not seen the broker's begin: it counts from 0.
        Raise SessionFault if the id is of a transfer that was never sent.
        """
        seen = i64(0) if peer_next_incoming_id < 0 else peer_next_incoming_id
        in_flight = serial.ahead(self.next_id, seen)
        if in_flight < 0:
            raise SessionFault(WINDOW_VIOLATION, f"transfer {seen} was never sent")
        self.left = max(i64(0), peer_window - in_flight)

    def send(self) -> None:
        """Use up one transfer. Call only while `left` is positive."""
        self.next_id = (self.next_id + 1) & 0xFFFF_FFFF
        self.left -= 1
