"""Every limit that the codec and the engine enforce, each with its reason.

Limits that an operator may change are attributes of `Limits`; the rest is fixed.
Those of other brokers are in `docs/design/hostile-input.md` 2.6.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

# Maximum depth of nested values. Compiled recursion has no depth check of its own: hostile
# nesting would end the process. Broker-J allows 50, JMS filters of RabbitMQ 16.
DEPTH_MAX: Final = 32

# Maximum values in one field of a performative (properties, filters, capabilities): one byte
# on the wire becomes up to 70 in memory, and no client sends more than dozens.
FIELD_VALUES_MAX: Final = 10_000

# Maximum values decoded from one body (broker/jms). At 70 bytes each, the values of a message
# take at most 70 megabytes of memory; without a limit, 128 megabytes could take 9 gigabytes.
BODY_VALUES_MAX: Final = 1_000_000

# Maximum sections of a body: they are walked, not kept, but each costs time. As RabbitMQ.
SECTIONS_MAX: Final = 10_000

# Maximum bytes before the body of a message. Routing reads these sections (annotations,
# properties): they stay in memory, and the rest of a large message does not.
SECTIONS_BEFORE_BODY_MAX: Final = 256 * 1024

# A message of more bytes than this, in more than one frame, is streamed: if the store keeps
# contents, its body is written there while it arrives, and read from there while it is sent.
STREAMED_FROM: Final = 1024 * 1024

# Maximum bytes of one streamed delivery that wait for the disk. Above it, the connection is
# not read from until no more than half of it waits.
UNSAVED_BYTES_MAX: Final = 512 * 1024

# Maximum bytes of the user-id of a message: it is compared with the client's user and with rules.
USER_ID_SIZE_MAX: Final = 1024

# Maximum bytes of a delivery-tag (core spec 2.8.7).
DELIVERY_TAG_SIZE_MAX: Final = 32

# Minimum bytes that a peer may state as its max-frame-size (core spec 2.7.1).
FRAME_SIZE_MIN: Final = 512

# Maximum bytes of a frame before open: SASL and open need no more, and nothing is known of the
# peer yet. RabbitMQ's figure.
FRAME_BEFORE_OPEN: Final[i64] = 8192

# Maximum bytes of a frame of a login, if the broker takes tokens: one has up to 16 KiB.
FRAME_OF_TOKEN_LOGIN: Final[i64] = 32 * 1024

# Maximum challenges to a client in one SASL exchange. SCRAM needs two.
SASL_CHALLENGES_MAX: Final = 8

# Maximum bytes of a challenge: a SASL frame has at most 512 (core spec 5.3.1), of which the frame's
# header, the descriptor and the headers of list and binary take up to 25.
SASL_CHALLENGE_SIZE_MAX: Final = 480

# Maximum bytes of input kept for a peer before the broker has answered its open.
BUFFER_BEFORE_OPEN: Final = 64 * 1024

# Minimum ms between two answers to flow(echo=true) of a session; echo requests in between are
# answered together (Broker-J's figure).
ECHO_INTERVAL_MS: Final = 10

# Maximum deliveries per session that a sender has not settled, if it wants to settle first
# (rcv-settle-mode second): each costs the broker memory until it does.
UNSETTLED_IN_MAX: Final = 65_536

# Maximum deliveries of one terminus that a link may resume (core 2.6.13): the tags in the unsettled
# map of a peer's attach, and those that the broker keeps. A session's window has fewer.
UNSETTLED_MAP_MAX: Final = 65_536

# Maximum transfers of a delivery: one per BYTES_PER_TRANSFER bytes of the largest message, and
# never fewer than TRANSFERS_PER_DELIVERY_MIN. It bounds the number of frames without payload.
BYTES_PER_TRANSFER: Final = 256
TRANSFERS_PER_DELIVERY_MIN: Final = 1024


# Maximum begins, attaches, detaches and ends of one connection in a turn of the event loop: the
# next frame is handled in a later turn. A read has up to some thousand of them, each some ten
# microseconds of work, and the other connections are to be served between them.
CONTROLS_AT_ONCE: Final = 100


@final
class Limits:
    """The limits that an operator can set. The defaults are those of config/broker.toml."""

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
        login_frame_max: i64 = FRAME_BEFORE_OPEN,
        resume_max_s: i64 = 300,
    ) -> None:
        self.max_frame_size: Final[i64] = max_frame_size
        self.channel_max: Final[i64] = channel_max
        self.handle_max: Final[i64] = handle_max
        self.incoming_window: Final[i64] = incoming_window
        self.max_message_size: Final[i64] = max_message_size
        # Maximum bytes in memory of all incomplete deliveries of a connection. They are whole in
        # memory if the store keeps no contents: with less room than two of the largest messages
        # need, one would then be refused while another link is in the middle of its own.
        self.partial_bytes_max: Final[i64] = partial_bytes_max
        self.handshake_timeout_ms: Final[i64] = handshake_timeout_ms
        self.idle_time_out_ms: Final[i64] = idle_time_out_ms
        # Maximum open transactions of a connection. Every transacted JMS session has one, so the
        # default is that of the number of channels.
        self.transactions_max: Final[i64] = transactions_max
        # Maximum messages sent and outcomes given within one transaction, which holds them all.
        # A transaction that has more can only be rolled back.
        self.transaction_operations_max: Final[i64] = transaction_operations_max
        self.transaction_bytes_max: Final[i64] = transaction_bytes_max
        # Measured from the first message or outcome, never from the declaration: a JMS session
        # without work has a transaction open. As Artemis.
        self.transaction_timeout_ms: Final[i64] = transaction_timeout_ms
        # How long unsettled deliveries may outlive their connection for a link to resume: no
        # peer hides the messages of a queue for longer. 0: they end with their link.
        self.resume_max_s: Final[i64] = resume_max_s
        # FRAME_OF_TOKEN_LOGIN if tokens log in.
        self.login_frame_max: Final[i64] = login_frame_max

    def early(self, is_logged_in: bool) -> i64:
        """Return the maximum bytes of a frame before the broker has sent its open."""
        return FRAME_BEFORE_OPEN if is_logged_in else self.login_frame_max

    def transfers_per_delivery(self) -> i64:
        """Return the maximum number of frames of one delivery."""
        return max(TRANSFERS_PER_DELIVERY_MIN, self.max_message_size // BYTES_PER_TRANSFER)
