"""What is fixed for peers that speak HTTP. What an operator may change is in the settings."""

from typing import Final

CONNECTIONS_MAX: Final = 256
"""Open at once, streams or not: readers are tasks of a few jobs, not crowds."""

CONNECTIONS_PER_SOURCE_MAX: Final = 128
"""Of these from one source (an IPv4 address, an IPv6 /64): a job may run on one machine."""

LOOPBACK_RESERVE: Final = 16
"""Of CONNECTIONS_MAX only this machine gets these, so that its administrators can look."""

HEAD_MAX_MS: Final = 5000
"""A request's head must be there so long after the connection opened, or after its first byte."""
