"""When a message's life is over (PRD-04)."""

from mypy_extensions import i64

from broker.message import NEVER


def has_expired(expires_at_ms: i64, now_ms: i64) -> bool:
    """Whether a message with that expiry is over at `now_ms`, both wall time."""
    return expires_at_ms != NEVER and now_ms >= expires_at_ms
