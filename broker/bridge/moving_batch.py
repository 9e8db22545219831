"""A batch of a lease on its way to the other broker: the code that runs for each message."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.bridge.client_links import SendingLink
from broker.clock import Clock
from broker.message import Message
from broker.routing.entries.bridge_marks import BridgeMark, may_pass
from broker.routing.entries.entry import QueueEntry

PORTION: Final[i64] = 128
"""Maximum messages that are sent in one turn of the event loop: well below 5 ms of work."""

HEADER_BYTES: Final[i64] = 25
"""Maximum bytes of the header section that the broker writes."""

NO_ROOM: Final = "amqp:resource-limit-exceeded: its annotations have no room for those of a bridge"


@final
class BatchTerms:
    """The terms that are the same for all messages of a bridge.

    `id_prefix` begins the ids that a broker of another kind gets. With `drops_looped`, a message
    that may not pass the bridge is left out: the queue is one that only the bridge reads.
    `unsendable` has entries that are refused before they are sent, with the reason. With
    `one_at_a_time` a message is sent once the one before it has its outcome.
    """

    def __init__(
        self,
        *,
        name: str,
        clock: Clock,
        mark: BridgeMark,
        id_prefix: str,
        drops_looped: bool,
        unsendable: dict[QueueEntry, str],
    ) -> None:
        self.name: Final = name
        self.clock: Final = clock
        self.mark: Final = mark
        self.id_prefix: Final = id_prefix
        self.drops_looped: Final = drops_looped
        self.unsendable: Final = unsendable
        self.one_at_a_time = False


@final
class LargeMessage:
    """A message whose body is in the store: `head` is everything before it, with the header."""

    def __init__(self, message: Message, *, header: bytes, head: bytes, place: int) -> None:
        self.message: Final = message
        self.header: Final = header
        self.head: Final = head
        self.place: Final = place


@final
class MovingBatch:
    """The batch `number` of a lease. `sent` messages have been begun, `looped` were left out.

    `sent_bytes` are those of the messages that were sent, `not_taken` those of them that the other
    broker has rejected.
    `is_durable`: the store has the batch, so that a restart finds the same messages in it.
    `refused` has the entries that the other broker never takes, with the reason; the lease has no
    longer the first `left_out` of them. `large` is the message that has to be sent next, part by
    part, None for none.
    """

    def __init__(self, number: int, entries: list[QueueEntry]) -> None:
        self.number: Final = number
        self.entries: Final = entries
        self.link: SendingLink | None = None
        self.is_durable = False
        self.sent = 0
        self.sent_bytes = 0
        self.not_taken = 0
        self.looped = 0
        self.left_out = 0
        self.refused: Final[list[tuple[QueueEntry, str]]] = []
        self.large: LargeMessage | None = None
        self._at = 0

    def is_begun(self) -> bool:
        """Return whether all messages have been begun, or left out."""
        return self._at == len(self.entries) and self.large is None

    def is_sent(self) -> bool:
        """Return whether all messages are written, and have their outcomes if those are awaited."""
        link = self.link
        if not self.is_begun():
            return False
        return link is None or (link.is_whole() and not link.unsettled)

    def send(self, terms: BatchTerms) -> i64:
        """Send a portion of the messages, as far as there is room; return how many."""
        link = self.link
        done: i64 = 0
        if link is None or (terms.one_at_a_time and link.unsettled):
            return 0
        most: i64 = 1 if terms.one_at_a_time else PORTION
        while done < most and self._at < len(self.entries) and link.has_room():
            place = self._at
            entry = self.entries[place]
            message = entry.message
            self._at = place + 1
            done += 1
            payload = self._passing(entry, terms, link.max_message_size)
            if payload is None:
                continue
            header = message.header(0, terms.clock)
            if message.large is not None:
                self.large = LargeMessage(message, header=header, head=payload, place=place)
                break
            self.sent += 1
            self.sent_bytes += int(message.size)
            link.send(header, payload, place, message_format=message.message_format)
        return done

    def _passing(self, entry: QueueEntry, terms: BatchTerms, size_max: i64) -> bytes | None:
        """Return the marked sections of an entry, None if it is left out of the batch."""
        message = entry.message
        if terms.drops_looped and not may_pass(message, terms.name):
            self.looped += 1
            return None
        if terms.unsendable and entry in terms.unsendable:
            self.refused.append((entry, terms.unsendable[entry]))
            return None
        origin_id = f"{terms.id_prefix}{entry.stored_number}" if terms.mark.tells_id else ""
        payload = terms.mark.marked(message, origin_id)
        if payload is None:
            self.refused.append((entry, NO_ROOM))
        elif size_max > 0:
            # a message may be as large as its bytes, those of the mark, and a header
            size = message.size + i64(len(payload)) - message.encoded_size + HEADER_BYTES
            if size > size_max:
                self.refused.append((entry, _too_large(size, size_max)))
                return None
        return payload

    def count_committed(self, terms: BatchTerms) -> None:
        """Count the messages of a batch that an earlier attempt has sent and had committed.

        Before it did, it has taken what the other broker refuses out of the lease.
        """
        for entry in self.entries:
            if terms.drops_looped and not may_pass(entry.message, terms.name):
                self.looped += 1
            else:
                self.sent += 1
                self.sent_bytes += int(entry.message.size)
        self._at = len(self.entries)

    def take_large(self) -> LargeMessage | None:
        """Return the large message that is due, which counts as begun from now on."""
        large = self.large
        if large is not None:
            self.large = None
            self.sent += 1
            self.sent_bytes += int(large.message.size)
        return large

    def take_outcomes(self) -> None:
        """Take the refusals of the other broker from the link."""
        link = self.link
        if link is not None and link.refused:
            self.not_taken += len(link.refused)
            for place, why in link.refused:
                self.refused.append((self.entries[place], why))
            link.refused.clear()


def _too_large(size: i64, most: i64) -> str:
    return f"amqp:link:message-size-exceeded: {int(size)} bytes, and it takes {int(most)}"
