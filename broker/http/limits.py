"""What is fixed for peers that speak HTTP. What an operator may change is in the settings."""

from typing import Final

CONNECTIONS_MAX: Final = 256
"""Open at once, streams or not: readers are tasks of a few jobs, not crowds."""
