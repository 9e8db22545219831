"""Answers to flow(echo=true) of one session (core 2.7.4), at most one in ECHO_INTERVAL_MS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.lifecycle import LinkState
from broker.amqp.limits import ECHO_INTERVAL_MS
from broker.amqp.link import Link

if TYPE_CHECKING:
    from broker.amqp.session import Session

NO_ECHO: Final[i64] = -1


@final
class Echoes:
    """The echo requests of a session that are not answered yet.

    `due_ms` is when the next answer is due, NO_ECHO if none is. Callers pass the session, which
    would be in a reference cycle if it were kept here.
    """

    def __init__(self) -> None:
        self.due_ms: i64 = NO_ECHO
        self._last_ms: i64 = NO_ECHO
        self._links: list[Link] = []

    def request(self, session: Session, link: Link | None, now_ms: i64) -> None:
        """Answer with a flow, of `link` if given; later if the last is less than 10 ms ago.

        `docs/design/hostile-input.md` C14 says why.
        """
        if link is not None and link.state is LinkState.ATTACHED and link not in self._links:
            self._links.append(link)
        if self._last_ms >= 0 and now_ms - self._last_ms < ECHO_INTERVAL_MS:
            if self.due_ms == NO_ECHO:
                self.due_ms = self._last_ms + ECHO_INTERVAL_MS
                session.connection.deadline_at(self.due_ms)
            return
        self._answer(session, now_ms)

    def tick(self, session: Session, now_ms: i64) -> None:
        """Answer the requests to `session` that are due."""
        if self.due_ms != NO_ECHO and now_ms >= self.due_ms:
            self._answer(session, now_ms)

    def _answer(self, session: Session, now_ms: i64) -> None:
        self.due_ms = NO_ECHO
        self._last_ms = now_ms
        links = self._links
        self._links = []
        if not links:
            session.put_flow()
        for link in links:
            link.put_flow()

    def forget(self, link: Link) -> None:
        """Answer no request of `link`, which has ended."""
        if link in self._links:
            self._links.remove(link)

    def clear(self) -> None:
        """Drop all requests: the links of the session have ended."""
        self._links = []
