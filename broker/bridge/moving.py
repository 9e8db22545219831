"""The work of a bridge while it is connected, in steps that each take well below 5 ms."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from broker.amqp.errors import INTERNAL_ERROR, MESSAGE_SIZE_EXCEEDED, RESOURCE_LIMIT_EXCEEDED
from broker.bridge.client_links import SendingLink
from broker.bridge.connection import ANSWER_S, BridgeConnection
from broker.bridge.failure import BridgeError, TargetFullError, TooLargeError
from broker.bridge.large_sending import LargeSending
from broker.bridge.moving_batch import MovingBatch
from broker.bridge.remote_sink import RemoteSink
from broker.links.staging import ATTEMPT, BATCH, PARTITION, QUERY
from broker.routing.entries.entry import QueueEntry

if TYPE_CHECKING:
    from broker.bridge.bridge import Bridge


class Moving:
    """Moves the batches of `bridge` over one connection.

    With a `sink` they are staged and committed; without one each message is settled by its outcome.
    """

    def __init__(
        self, bridge: Bridge, connection: BridgeConnection, sink: RemoteSink | None
    ) -> None:
        self._bridge: Final = bridge
        self._source: Final = bridge.source
        self._connection: Final = connection
        self._engine: Final = connection.engine
        self._sink: Final = sink
        self._commit: int | None = None
        self._commit_until_s = 0.0
        self._attach_until_s = 0.0
        self._large: LargeSending | None = None
        self._large_batch: MovingBatch | None = None
        self._terms: Final = bridge.terms(is_sink=sink is not None)

    def is_idle(self) -> bool:
        """Return whether no messages are leased."""
        return not self._source.batches

    def is_blocked(self) -> bool:
        """Return whether the other broker grants no credit for the messages that wait."""
        return any(
            batch.link is not None and batch.link.credit <= 0 and not batch.is_begun()
            for batch in self._source.batches
        )

    def step(self) -> bool:
        """Do what can be done now, up to a portion; return whether there may be more of it."""
        self._terms.one_at_a_time = self._sink is None and self._source.one_at_a_time
        self._finish_first()
        if not self._bridge.takes_no_more():
            self._source.ask()
        return self._send()

    # -- the end of a batch

    def _finish_first(self) -> None:
        """Commit the first batch if it is sent; settle it once the other broker has it."""
        while self._source.batches:
            batch = self._source.batches[0]
            batch.take_outcomes()
            if self._commit is None:  # a commit ends the stage, and so the link
                self._check(batch)
            if not batch.is_sent() or not self._is_stored(batch) or not self._is_there(batch):
                return
            self._settle(batch)

    def _is_stored(self, batch: MovingBatch) -> bool:
        """Take what is refused out of the lease; return whether the store has `batch` as it is."""
        if batch.is_durable and len(batch.refused) > batch.left_out:
            self._bridge.leave_out(batch)
        return batch.is_durable

    def _is_there(self, batch: MovingBatch) -> bool:
        """Return whether the other broker has `batch`; have it committed, if that is needed."""
        sink = self._sink
        if sink is None or batch.sent == 0:
            return True
        if self._commit is not None:
            if self._has_committed(sink, batch, self._commit):
                self._commit = None
                self._commit_until_s = 0.0
                return True
        elif sink.can_ask():
            self._commit = sink.commit(batch.number, self._source.fencing_token, batch.sent)
        self._check_time_of_commit()
        return False

    def _has_committed(self, sink: RemoteSink, batch: MovingBatch, number: int) -> bool:
        """Return whether that COMMIT of `batch` is answered; BridgeError if it is refused.

        The link may have ended while the COMMIT was on its way: that is the reason, then.
        """
        try:
            return sink.has_committed(number)
        except BridgeError:
            self._check(batch)
            raise

    def _check_time_of_commit(self) -> None:
        """Raise BridgeError if the COMMIT under way, or that is due, has no answer in time."""
        if self._commit_until_s == 0.0:
            self._commit_until_s = monotonic() + ANSWER_S
        elif monotonic() > self._commit_until_s:
            raise BridgeError(f"no answer of the other broker to COMMIT for {ANSWER_S:g} s")

    def _settle(self, batch: MovingBatch) -> None:
        link = batch.link
        if link is not None:
            self._engine.detach(link)
        self._source.settle(batch)
        self._bridge.has_moved(batch)

    def _check(self, batch: MovingBatch) -> None:
        """Raise BridgeError if the link of `batch` has ended, or messages were given back."""
        link = batch.link
        if link is None:
            return
        to = self._bridge.settings.to
        if link.is_over:
            reason = f"to {to}: {link.refusal or 'the other broker detached the link'}"
            if link.condition == RESOURCE_LIMIT_EXCEEDED and self._sink is not None:
                raise TargetFullError(reason)
            if link.condition == MESSAGE_SIZE_EXCEEDED:
                entries = self._without_outcome(batch, link)
                is_known = self._notes_too_large(entries, link.refusal)
                raise TooLargeError(reason, is_known=is_known)
            raise BridgeError(reason)
        if not link.is_attached and monotonic() > self._attach_until_s:
            raise BridgeError(f"to {to}: no answer to the attach for {ANSWER_S:g} s")
        if link.is_returned:
            raise BridgeError(f"to {to}: the other broker has given messages back")
        if link.is_attached and self._sink is not None and QUERY not in link.properties:
            raise BridgeError(f"to {to}: the other broker stages nothing")

    def check_end(self) -> None:
        """Raise BridgeError if the connection, or its session, has ended.

        Raise TooLargeError if a message is the reason: some brokers end more than its link.
        """
        engine = self._engine
        if engine.condition == MESSAGE_SIZE_EXCEEDED:
            entries: list[QueueEntry] = []
            for batch in self._source.batches:
                if batch.link is not None:
                    entries += self._without_outcome(batch, batch.link)
            is_known = self._notes_too_large(entries, engine.failure)
            raise TooLargeError(engine.failure, is_known=is_known)
        self._connection.check()

    def _notes_too_large(self, entries: list[QueueEntry], why: str) -> bool:
        """Note the message that was too large if it is the only one of `entries`."""
        if len(entries) != 1:
            return False
        self._bridge.unsendable[entries[0]] = why
        return True

    def _without_outcome(self, batch: MovingBatch, link: SendingLink) -> list[QueueEntry]:
        """Return the messages for which the other broker may have ended `link`.

        All of a batch that is staged: it has an outcome as a whole, at its COMMIT.
        """
        if self._sink is not None:
            return batch.entries
        return [batch.entries[place] for place in link.unsettled.values()]

    # -- sending

    def _send(self) -> bool:
        """Send a portion of the first batch that has not been begun as a whole."""
        if self._engine.failure:
            return False  # `check_end` looks at what was sent before
        for batch in self._source.batches[: self._source.ahead]:
            if not batch.is_begun() or batch is self._large_batch:
                return self._send_of(batch)
            if batch.link is not None and not batch.link.is_whole():
                return batch.link.go_on()
        return False

    def _send_of(self, batch: MovingBatch) -> bool:
        link = batch.link
        if link is None:
            link = batch.link = self._attached(batch)
        self._check(batch)
        if self._large is not None:
            return self._go_on_with_large(self._large, batch)
        has_written = link.go_on()
        sent = batch.send(self._terms)
        if batch.large is not None and link.has_room():
            self._begin_large(batch, link)
        return has_written or sent > 0

    def _attached(self, batch: MovingBatch) -> SendingLink:
        self._attach_until_s = monotonic() + ANSWER_S
        properties: dict[str, object] = {}
        if self._sink is not None:
            properties = {
                QUERY: self._source.name,
                BATCH: batch.number,
                PARTITION: 0,
                ATTEMPT: self._source.fencing_token,
            }
        return self._engine.sender(
            f"bridge-batch-{batch.number}",
            self._bridge.settings.to,
            properties,
            settled=self._sink is not None,
        )

    # -- large messages

    def _begin_large(self, batch: MovingBatch, link: SendingLink) -> None:
        large, contents = batch.take_large(), self._bridge.container.contents
        assert large is not None
        body = large.message.large
        assert body is not None
        if contents is None:
            raise BridgeError("the store of this broker keeps no large bodies")
        link.send(
            large.header,
            large.head,
            large.place,
            message_format=large.message.message_format,
            last=False,
        )
        self._large_batch = batch
        self._large = LargeSending(large, body, link, contents=contents, changed=self._bridge.wake)

    def _go_on_with_large(self, large: LargeSending, batch: MovingBatch) -> bool:
        if large.damage:
            entry = batch.entries[large.place]
            self._bridge.unsendable[entry] = f"{INTERNAL_ERROR}: {large.damage}"
            raise BridgeError(f"a message cannot be read: {large.damage}")
        has_written = large.step()
        if large.is_done():
            self._large = self._large_batch = None
            return True
        return has_written
