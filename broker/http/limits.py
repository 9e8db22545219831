"""Fixed limits for HTTP connections. Limits that an operator can change are in the settings."""

from typing import Final

CONNECTIONS_MAX: Final = 256
"""Maximum open connections, streaming or not: enough for the tasks of a few jobs."""

CONNECTIONS_PER_SOURCE_MAX: Final = 128
"""Maximum of these from one source (an IPv4 address or IPv6 /64): a job may run on one machine."""

LOOPBACK_RESERVE: Final = 16
"""Connections of CONNECTIONS_MAX reserved for this machine, so that administrators get in."""

HEAD_MAX_MS: Final = 5000
"""Time limit in ms for a request's head, from the connection's opening or the head's first byte."""

API_BODY_BYTES_MAX: Final = 1024 * 1024
"""Maximum bytes of the body of a request to the API."""

API_BODY_MAX_S: Final = 30
"""Time limit in s for the body of a request to the API."""

API_REQUESTS_MAX: Final = 64
"""Maximum requests to the API that are carried out at a time."""

API_REQUESTS_PER_USER_MAX: Final = 32
"""Maximum of these from one user, so that another one gets an answer."""
