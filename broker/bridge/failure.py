"""The error that ends an attempt of a bridge; another attempt follows after a pause."""

from __future__ import annotations

from typing import Final


class BridgeError(Exception):
    """Raised when an attempt cannot go on. The text says why to the operator."""


class PausedError(BridgeError):
    """Raised when an operator pauses the bridge while it waits for an answer."""


class TooLargeError(BridgeError):
    """Raised if the other broker has ended a link because a message is too large: which, is open.

    It may have ended the session or the connection instead.

    `is_known`: the message has been found, and is not sent again.
    """

    def __init__(self, reason: str, *, is_known: bool) -> None:
        super().__init__(reason)
        self.is_known: Final = is_known


class TargetFullError(BridgeError):
    """Raised if staged messages alone fill the target: they are too many for one commit."""
