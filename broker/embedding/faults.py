"""Faults that a test can cause, such as lost connections."""

from collections.abc import Callable
from typing import Final, final


@final
class Faults:
    """The faults that a test can cause in its broker."""

    def __init__(self, drop_connections: Callable[[], int]) -> None:
        self._drop_connections: Final = drop_connections

    def drop_connections(self) -> int:
        """Cut every connection without a close, like a network failure; return their number.

        Messages that their consumers had not settled are back in their queues when this returns.
        Clients may reconnect at once.
        """
        return self._drop_connections()
