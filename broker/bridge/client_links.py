"""The links of a bridge to the other broker: messages and requests out, answers in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.descriptors import TRANSFER
from broker.amqp.encode import put_bool, put_descriptor, put_u32
from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED, ConnectionFault
from broker.amqp.frames import AMQP_FRAME, begin_frame, end_frame
from broker.amqp.outcomes import Accepted, DeliveryState, Received, Rejected

if TYPE_CHECKING:
    from broker.bridge.client_connection import ClientConnection

TRANSFER_OVERHEAD: Final[i64] = 40
"""Maximum bytes of a transfer frame beside its payload."""

RESPONSES: Final[i64] = 16
"""Credit for answers to requests: more than there ever are under way."""

RESPONSE_BYTES_MAX: Final[i64] = 64 * 1024
"""Maximum bytes of an answer of the other broker."""


@final
class SendingLink:
    """A link on which messages are sent. `sent` are those that have been begun.

    `is_attached`: the other broker has attached its end to a target; `is_over`: it has detached
    it, for the reason `refusal` with the error `condition`. `unsettled` has the places of messages
    without an outcome, by delivery-id; `refused` those that were not accepted, with the reason;
    `is_returned`: one of them was given back, to be sent again.
    """

    def __init__(
        self, connection: ClientConnection, name: str, handle: int, *, is_settled: bool
    ) -> None:
        self.name: Final = name
        self.handle: Final[i64] = handle
        self.is_settled: Final = is_settled
        self.is_attached = False
        self.is_over = False
        self.is_detaching = False
        self.condition = ""
        self.refusal = ""
        self.properties: dict[str, object] = {}
        self.max_message_size: i64 = 0
        self.credit: i64 = 0
        self.delivery_count: i64 = 0
        self.sent: i64 = 0
        self.unsettled: Final[dict[int, int]] = {}
        self.refused: Final[list[tuple[int, str]]] = []
        self.is_returned = False
        self._connection: Final = connection
        self._rest: bytes | None = None
        self._rest_at: i64 = 0
        self._rest_id: i64 = 0
        self._rest_format: i64 = 0
        self._is_last = True

    def has_room(self) -> bool:
        """Return whether `send` may be called."""
        connection = self._connection
        return (
            self.is_attached
            and self.credit > 0
            and self._rest is None
            and self._is_last
            and connection.window_left > 0
            and connection.has_output_room()
        )

    def send(
        self,
        header: bytes,
        payload: bytes,
        place: int,
        *,
        message_format: i64 = 0,
        last: bool = True,
    ) -> None:
        """Send a message, or the first part of it; `has_room` must be true.

        `place` is reported with its outcome, if the link does not send settled. The other parts of
        a message are sent by `add`.
        """
        connection = self._connection
        delivery_id = connection.next_delivery_id
        connection.next_delivery_id = (delivery_id + 1) & 0xFFFF_FFFF
        self.delivery_count = (self.delivery_count + 1) & 0xFFFF_FFFF
        self.credit -= 1
        self.sent += 1
        if not self.is_settled:
            self.unsettled[int(delivery_id)] = place
        size = i64(len(header)) + i64(len(payload))
        if last and size + TRANSFER_OVERHEAD <= connection.frame_size_max:
            out = connection.out
            start = begin_frame(out, AMQP_FRAME, 0)
            self._put_transfer(delivery_id, message_format, more=False)
            out.write(header)
            out.write(payload)
            end_frame(out, start)
            connection.count_transfer()
            return
        self._rest = header + payload
        self._rest_at = 0
        self._rest_id = delivery_id
        self._rest_format = message_format
        self._is_last = last
        self.go_on()

    def is_between_parts(self) -> bool:
        """Return whether the next part of an unfinished message may be added."""
        return self._rest is None and not self._is_last

    def add(self, part: bytes, *, last: bool) -> None:
        """Add a part to the unfinished message; `is_between_parts` must be true."""
        self._rest = part
        self._rest_at = 0
        self._is_last = last
        self.go_on()

    def is_whole(self) -> bool:
        """Return whether no message is unfinished."""
        return self._rest is None and self._is_last

    def go_on(self) -> bool:
        """Send more of the unfinished message, as far as there is room; return whether any was."""
        rest = self._rest
        if rest is None:
            return False
        has_written = False
        connection = self._connection
        room = connection.frame_size_max - TRANSFER_OVERHEAD
        size = i64(len(rest))
        while connection.window_left > 0 and connection.has_output_room():
            end = min(self._rest_at + room, size)
            is_end = end == size
            out = connection.out
            start = begin_frame(out, AMQP_FRAME, 0)
            self._put_transfer(
                self._rest_id, self._rest_format, more=not (is_end and self._is_last)
            )
            out.write(rest[self._rest_at : end])
            end_frame(out, start)
            connection.count_transfer()
            self._rest_at = end
            has_written = True
            if is_end:
                self._rest = None
                break
        return has_written

    def _put_transfer(self, delivery_id: i64, message_format: i64, *, more: bool) -> None:
        """Write a transfer up to its payload (2.7.5). The tag is the delivery-id."""
        out = self._connection.out
        put_descriptor(out, TRANSFER)
        out.append(0xC0)
        # handle, delivery-id, tag, message-format, settled and more, and the count of the list
        out.append(17 if message_format == 0 else 21)
        out.append(6)
        out.append(0x52)
        out.append(int(self.handle))
        out.append(0x70)
        put_u32(out, delivery_id)
        out.append(0xA0)
        out.append(4)
        put_u32(out, delivery_id)
        if message_format == 0:
            out.append(0x43)
        else:
            out.append(0x70)
            put_u32(out, message_format)
        put_bool(out, self.is_settled)
        put_bool(out, more)

    def outcome(
        self, first: i64, last: i64, state: DeliveryState | None, *, is_settled: bool
    ) -> None:
        """Take the outcome of the deliveries from `first` to `last`, as far as they are its own.

        Delivery-ids are serial numbers: `last` may be the smaller one (2.8.10). Deliveries that are
        settled without an outcome are given back.
        """
        if not is_settled and (state is None or isinstance(state, Received)):
            return
        behind = (last - first) & 0xFFFF_FFFF
        if behind > i64(len(self.unsettled)) * 4 + 1000:
            found = [each for each in self.unsettled if (i64(each) - first) & 0xFFFF_FFFF <= behind]
        else:
            found = [int((first + ahead) & 0xFFFF_FFFF) for ahead in range(behind + 1)]
        is_accepted = isinstance(state, Accepted)
        for each in found:
            place = self.unsettled.pop(each, -1)
            if place < 0 or is_accepted:
                continue
            if isinstance(state, Rejected):
                error = state.error
                why = "rejected" if error is None else f"{error.condition}: {error.description}"
                self.refused.append((place, why[:500]))
            else:
                self.is_returned = True


@final
class ReceivingLink:
    """A link on which answers arrive: `answers` has those that are whole."""

    def __init__(self, name: str, handle: int) -> None:
        self.name: Final = name
        self.handle: Final[i64] = handle
        self.is_attached = False
        self.is_over = False
        self.condition = ""
        self.refusal = ""
        self.delivery_count: i64 = 0
        self.delivery_id: i64 = 0
        self.granted: i64 = 0
        self.answers: Final[list[bytes]] = []
        self._parts: bytes = b""

    def take(self, part: bytes, *, more: bool) -> bool:
        """Take a part of an answer; return whether the answer is whole.

        Raise ConnectionFault if it is larger than RESPONSE_BYTES_MAX, or one more than the link has
        credit for, or than RESPONSES that wait here.
        """
        if self.granted <= 0 or i64(len(self.answers)) >= RESPONSES:
            raise ConnectionFault(RESOURCE_LIMIT_EXCEEDED, "more answers than requests")
        self._parts += part
        if i64(len(self._parts)) > RESPONSE_BYTES_MAX:
            raise ConnectionFault(RESOURCE_LIMIT_EXCEEDED, "an answer is too large")
        if more:
            return False
        self.answers.append(self._parts)
        self._parts = b""
        self.delivery_count = (self.delivery_count + 1) & 0xFFFF_FFFF
        self.granted -= 1
        return True
