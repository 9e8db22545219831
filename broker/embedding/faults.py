"""What goes wrong around a broker, made to happen."""

from collections.abc import Callable
from typing import Final, final


@final
class Faults:
    """The faults that a test may ask of its broker."""

    def __init__(self, drop_connections: Callable[[], int]) -> None:
        self._drop_connections: Final = drop_connections

    def drop_connections(self) -> int:
        """Cut every connection without a word, as a network that fails; how many there were.

        What their consumers held waits in its queue again when this returns. Clients
        may connect again at once.
        """
        return self._drop_connections()
