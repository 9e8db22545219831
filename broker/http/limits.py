"""What is fixed for peers that speak HTTP. What an operator may change is in the settings."""

from typing import Final

CONNECTIONS_MAX: Final = 256
"""Open at once, streams or not: readers are tasks of a few jobs, not crowds."""

SLICES_MAX: Final = 256
"""Parts that a queue may be read in: each is a task of whoever reads them."""
