"""Every limit that the codec and the engine enforce, each with its reason.

What an operator may change is an attribute of `Limits`; the rest is fixed.
Precedents are those of reference/reliability.md 2.6.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

# Compiled recursion has no depth check of its own: hostile nesting would end the
# process. Broker-J allows 50, JMS filters of RabbitMQ 16.
DEPTH_MAX: Final = 32

# Values in one field of a performative (properties, filters, capabilities): one byte
# on the wire becomes up to 70 in memory, and no client sends more than dozens.
FIELD_VALUES_MAX: Final = 10_000

# Values that are made of one body (broker/jms): at 70 bytes each, what a message of a
# megabyte may cost in memory is 70, and not that of 128 megabytes 9 gigabytes.
BODY_VALUES_MAX: Final = 1_000_000

# Body sections are walked, not kept, but every one costs time. As RabbitMQ.
SECTIONS_MAX: Final = 10_000

# What routing reads of a message (annotations, properties) must lie within this much
# of its start: it stays in memory, and the rest of a large message does not.
SECTIONS_BEFORE_BODY_MAX: Final = 256 * 1024

# A message of more than this, in more than one frame, streams: where the store keeps
# contents, its body is written there as it comes, and read again as it goes.
STREAMED_FROM: Final = 1024 * 1024

# Bytes of one streamed delivery that may wait for the disk. The connection is not read
# from until half of them have been committed.
UNSAVED_BYTES_MAX: Final = 512 * 1024

# Core spec 2.8.7.
DELIVERY_TAG_SIZE_MAX: Final = 32

# The least max-frame-size that a peer may name (core spec 2.7.1).
FRAME_SIZE_MIN: Final = 512

# Nobody needs more for SASL and open; RabbitMQ's figure. Nothing is known of the peer yet.
FRAME_BEFORE_OPEN: Final[i64] = 8192

# All that a peer may have waiting in our buffers before it is authenticated.
BUFFER_BEFORE_OPEN: Final = 64 * 1024

# Answers to flow(echo=true) are gathered for so long, per session (Broker-J's figure).
ECHO_INTERVAL_MS: Final = 10

# Deliveries that a sender has not settled, where it wants to settle first (rcv-settle-mode
# second), per session: each costs us memory until it does.
UNSETTLED_IN_MAX: Final = 65_536

# A delivery may have one transfer per so many bytes of the largest message, and never
# fewer than the second figure: frames without payload must end some time.
BYTES_PER_TRANSFER: Final = 256
TRANSFERS_PER_DELIVERY_MIN: Final = 1024


# Begins, attaches, detaches and ends of one connection in a turn of the event loop: the next
# frame is handled in a later turn. A read has up to some thousand of them, each some ten
# microseconds of work, and the other connections are to be served between them.
CONTROLS_AT_ONCE: Final = 100


@final
class Limits:
    """What an operator may allow a peer. The defaults are those of config/broker.toml."""

    def __init__(
        self,
        *,
        max_frame_size: i64 = 1024 * 1024,
        channel_max: i64 = 1023,
        handle_max: i64 = 4095,
        incoming_window: i64 = 2048,
        max_message_size: i64 = 128 * 1024 * 1024,
        partial_bytes_max: i64 = 256 * 1024 * 1024,
        handshake_timeout_ms: i64 = 10_000,
        idle_time_out_ms: i64 = 60_000,
        transactions_max: i64 = 1024,
        transaction_operations_max: i64 = 100_000,
        transaction_bytes_max: i64 = 64 * 1024 * 1024,
        transaction_timeout_ms: i64 = 300_000,
    ) -> None:
        self.max_frame_size: Final[i64] = max_frame_size
        self.channel_max: Final[i64] = channel_max
        self.handle_max: Final[i64] = handle_max
        self.incoming_window: Final[i64] = incoming_window
        self.max_message_size: Final[i64] = max_message_size
        # Deliveries of a connection that are not complete yet, all together, as far as they are
        # in memory: whole where the store keeps no contents, and less than two of the largest
        # would then refuse one of them while another link is in the middle of its own.
        self.partial_bytes_max: Final[i64] = partial_bytes_max
        self.handshake_timeout_ms: Final[i64] = handshake_timeout_ms
        self.idle_time_out_ms: Final[i64] = idle_time_out_ms
        # Of a connection at a time. Every transacted JMS session has one, so as channel_max.
        self.transactions_max: Final[i64] = transactions_max
        # Messages sent, and outcomes given, within one transaction: it holds them all. One
        # that has more can only be rolled back.
        self.transaction_operations_max: Final[i64] = transaction_operations_max
        self.transaction_bytes_max: Final[i64] = transaction_bytes_max
        # From the first of them, never from the declaration: a JMS session without work has
        # a transaction open. As Artemis.
        self.transaction_timeout_ms: Final[i64] = transaction_timeout_ms

    def transfers_per_delivery(self) -> i64:
        """How many frames one delivery may take."""
        return max(TRANSFERS_PER_DELIVERY_MIN, self.max_message_size // BYTES_PER_TRANSFER)
