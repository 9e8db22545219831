"""The interface of a connection's socket."""

from __future__ import annotations

from abc import abstractmethod

from mypy_extensions import i64, mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Transport:
    """The socket of a peer, as far as `Peer` controls it."""

    @abstractmethod
    def write(self, chunks: list[bytes]) -> None:
        """Send `chunks` in order, as soon as the socket takes them."""

    def entered(self) -> None:
        """Note that the client has logged in, or has opened its connection without a login."""

    def unsent_bytes(self) -> i64:
        """Return the number of bytes that the socket has not taken yet."""
        return 0

    @abstractmethod
    def pause(self) -> None:
        """Read nothing more from the socket until `resume`."""

    @abstractmethod
    def resume(self) -> None:
        """Read from the socket again."""

    def abort(self) -> None:
        """Close the socket at once, and discard unsent bytes."""

    @abstractmethod
    def close(self) -> None:
        """Close the socket once everything has been sent."""
