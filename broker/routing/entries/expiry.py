"""Expiry of messages (PRD-04)."""

from mypy_extensions import i64

from broker.message import NEVER


def has_expired(expires_at_ms: i64, now_ms: i64) -> bool:
    """Return whether a message with that expiry has expired at `now_ms`, both wall-clock time."""
    return expires_at_ms != NEVER and now_ms >= expires_at_ms
