"""Every limit on the clients of a WebSocket listener, each with its reason.

The library adds two of its own: 8 KiB for a line of the request, and 128 headers.
"""

from __future__ import annotations

from typing import Final

HEAD_BYTES_MAX: Final = 16 * 1024
"""Maximum bytes of the HTTP request. As the HTTP server's; browsers with cookies send 4 KiB."""

HANDSHAKE_S: Final = 5.0
"""Maximum seconds from the begin of the connection to the end of the request. As for TLS."""

FRAME_BEFORE_OPEN_MAX: Final = 64 * 1024
"""Maximum payload bytes of a frame before the client has opened its AMQP connection.

The library keeps a frame until it is whole. AMQP keeps as much of a client at that time.
"""

FRAME_FACTOR: Final = 2
"""Maximum payload of a later frame, in AMQP frames of the largest size.

Clients send what they write at once as one frame: an AMQP frame, or several small ones.
"""

MESSAGE_FACTOR: Final = 16
"""Maximum payload of a message, in AMQP frames of the largest size.

Its fragments are passed on as they arrive, so a long message takes no more memory than a short one.
"""

MESSAGE_SENT_MAX: Final = 1024 * 1024
"""Maximum payload bytes of a message that the broker sends: the default of other libraries."""

FRAMES_AT_ONCE: Final = 200
"""Frames after which the rest of the input waits for the next turn of the event loop.

A frame takes about 5 µs, and the smallest has 6 bytes: a read can contain 40,000 of them.
"""

SLICE_BYTES: Final = 1024
"""Bytes that the library gets at first, since it parses all frames that it has got.

Each further slice of a read is twice as large, until one has more than FEW_FRAMES frames.
"""

FEW_FRAMES: Final = 16

CLOSE_S: Final = 2.0
"""Maximum seconds without progress until a client has answered the end of a connection."""

CLOSE_LOOKS_MAX: Final = 30
"""Maximum times CLOSE_S for a client that takes the last output slowly: a minute."""
