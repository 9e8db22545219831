"""The proof that this broker leads its group: a statement of the session that holds the lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from storage.sql.postgresql.session import Session

NEVER: Final = -(2**62)
"""A moment before all others."""


@final
class Proof:
    """The last moment of which it is proved, `us` on the steady clock, or NEVER.

    `when_void` is called when it counts no longer: the lock is free once its session has ended.
    """

    def __init__(self) -> None:
        self.us = NEVER
        self.when_void: Callable[[], None] = lambda: None

    def add(self, session: Session, sent_us: int) -> None:
        """Note that what `session` has sent at `sent_us` found that this broker leads."""
        if session.is_open:
            self.us = max(self.us, sent_us)

    def void(self) -> None:
        """Note that the session with the lock has ended, or is about to be ended."""
        self.us = NEVER
        self.when_void()
