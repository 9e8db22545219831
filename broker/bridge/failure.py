"""The error that ends an attempt of a bridge; another attempt follows after a pause."""

from __future__ import annotations


class BridgeError(Exception):
    """Raised when an attempt cannot go on. The text says why to the operator."""


class PausedError(BridgeError):
    """Raised when an operator pauses the bridge while it waits for an answer."""


class TargetFullError(BridgeError):
    """Raised if staged messages alone fill the target: they are too many for one commit."""
