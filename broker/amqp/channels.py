"""The sessions of one connection, and the channel of each in both directions (core 2.5.1)."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.deadlines import NO_DEADLINE, earlier
from broker.amqp.errors import (
    FRAMING_ERROR,
    NOT_ALLOWED,
    RESOURCE_LIMIT_EXCEEDED,
    ConnectionFault,
)
from broker.amqp.lifecycle import SessionState
from broker.amqp.session import Session


@final
class Channels:
    """Sessions by the peer's channel. The broker uses the same number if it is free."""

    def __init__(self, channel_max: i64) -> None:
        self.remote_channel_max: i64 = 0
        self.sessions: list[Session | None] = []
        self._channel_max: Final[i64] = channel_max
        self._ours: Final[set[int]] = set()

    def session(self, channel: i64) -> Session | None:
        """Return the session on `channel`; None if the broker ended it and awaits the peer's end.

        Raise ConnectionFault if `channel` is out of range or has no session.
        """
        if channel < i64(len(self.sessions)):
            session = self.sessions[channel]
            if session is not None:
                return session if session.state is SessionState.MAPPED else None
        self.check_range(channel)
        raise ConnectionFault(NOT_ALLOWED, f"no session on channel {channel}")

    def mapped(self) -> list[Session]:
        """Return the sessions that neither end has ended."""
        return [
            session
            for session in self.sessions
            if session is not None and session.state is SessionState.MAPPED
        ]

    def hold_unsettled(self) -> bool:
        """Return whether the peer has deliveries of any session that it has not settled."""
        for session in self.sessions:
            if session is not None and session.unsettled_out.count > 0:
                return True
        return False

    def room_again(self) -> None:
        """Let every session continue to send: the output has room."""
        for session in self.sessions:
            if session is not None:
                session.room_again()

    def tick(self, now_ms: i64) -> None:
        """Answer the echo requests that are due, in every session."""
        for session in self.sessions:
            if session is not None:
                session.echoes.tick(session, now_ms)

    def echo_due_ms(self) -> i64:
        """Return when the first session must answer an echo; NO_DEADLINE if none must."""
        found: i64 = NO_DEADLINE
        for session in self.sessions:
            if session is not None:
                found = earlier(found, session.echoes.due_ms)
        return found

    def check_range(self, channel: i64) -> None:
        """Raise ConnectionFault if `channel` is above the broker's channel-max (2.7.1)."""
        if channel > self._channel_max:
            raise ConnectionFault(FRAMING_ERROR, f"channel {channel} is above {self._channel_max}")

    def claim(self, channel: i64) -> i64:
        """Return the broker's channel number for the session that the peer begins on `channel`.

        Raise ConnectionFault if `channel` is out of range or in use, or no number is left.
        """
        self.check_range(channel)
        if channel < i64(len(self.sessions)) and self.sessions[channel] is not None:
            raise ConnectionFault(NOT_ALLOWED, f"channel {channel} has a session")
        ours = int(channel)
        if channel > self.remote_channel_max or ours in self._ours:
            ours = 0
            while ours in self._ours:
                ours += 1
            if ours > self.remote_channel_max:
                raise ConnectionFault(
                    RESOURCE_LIMIT_EXCEEDED, "no channel is left within channel-max"
                )
        self._ours.add(ours)
        return ours

    def add(self, session: Session) -> None:
        """Add a session whose numbers have been claimed."""
        while i64(len(self.sessions)) <= session.channel:
            self.sessions.append(None)
        self.sessions[session.channel] = session

    def remove(self, channel: i64) -> Session | None:
        """Remove and return the session on `channel`, and free its numbers."""
        session = self.sessions[channel]
        self.sessions[channel] = None
        if session is not None:
            self._ours.discard(int(session.our_channel))
        return session

    def remove_all(self) -> list[Session]:
        """Remove and return every session."""
        sessions = [session for session in self.sessions if session is not None]
        self.sessions = []
        self._ours.clear()
        return sessions
