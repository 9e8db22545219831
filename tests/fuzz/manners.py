"""Checks of the broker's output for any input: the order of frames, and permitted conditions."""

from __future__ import annotations

from typing import Final

from broker.amqp import errors
from broker.amqp.performatives import Attach, Begin, Close, Detach, End, Flow, Open
from tests.support.frames import Disposition, Frame, Header, Transfer, frames_in

GENERAL: Final = {
    value
    for name, value in vars(errors).items()
    if name.isupper() and isinstance(value, str) and value.count(":") == 1
} - {errors.INTERNAL_ERROR}
"""The conditions of 2.8.15 that any error may have; an internal error is a bug."""

OF_CONNECTION: Final = GENERAL | {
    errors.CONNECTION_FORCED,
    errors.FRAMING_ERROR,
    errors.CONNECTION_REDIRECT,
}
OF_SESSION: Final = GENERAL | {
    errors.WINDOW_VIOLATION,
    errors.ERRANT_LINK,
    errors.HANDLE_IN_USE,
    errors.UNATTACHED_HANDLE,
}
OF_LINK: Final = GENERAL | {
    errors.DETACH_FORCED,
    errors.TRANSFER_LIMIT_EXCEEDED,
    errors.MESSAGE_SIZE_EXCEEDED,
    errors.LINK_REDIRECT,
    errors.STOLEN,
}


class Manners:
    """Checks the output of one connection; AssertionError if the broker may not write it."""

    def __init__(self, *, frame_size_max: int = 0xFFFF_FFFF) -> None:
        self.closed = False
        self._frame_size_max: Final = frame_size_max
        self._sessions: dict[int, set[int]] = {}

    def check(self, data: bytes, *, begun: dict[int, set[int]] | None = None) -> None:
        """Check all frames in `data`; `begun` has the attached handles of each existing session."""
        self._sessions = begun or {}
        for frame in frames_in(data):
            assert not self.closed, "a frame behind close"
            assert frame.size <= self._frame_size_max, "a frame larger than the peer takes"
            if not isinstance(frame.body, Header):
                self._frame(frame)

    def _frame(self, frame: Frame) -> None:
        body = frame.body
        if isinstance(body, Close):
            self.closed = True
            assert frame.channel == 0
            assert body.error is None or body.error.condition in OF_CONNECTION, body.error
        elif isinstance(body, Begin):
            assert frame.channel not in self._sessions, "a channel begins twice"
            self._sessions[frame.channel] = set()
        elif isinstance(body, End):
            assert body.error is None or body.error.condition in OF_SESSION, body.error
            assert self._sessions.pop(frame.channel, None) is not None, "end of no session"
        elif isinstance(body, Attach | Detach | Flow | Transfer | Disposition):
            assert frame.channel in self._sessions, f"{type(body).__name__} without a session"
            self._of_session(body, self._sessions[frame.channel])
        elif isinstance(body, Open):
            assert frame.channel == 0

    def _of_session(
        self, body: Attach | Detach | Flow | Transfer | Disposition, handles: set[int]
    ) -> None:
        if isinstance(body, Attach):
            assert body.handle not in handles, "a handle is attached twice"
            handles.add(int(body.handle))
        elif isinstance(body, Detach):
            assert body.error is None or body.error.condition in OF_LINK, body.error
            assert body.handle in handles, "detach of no link"
            handles.remove(int(body.handle))
        elif isinstance(body, Transfer):
            assert body.handle in handles, "a transfer on no link"
        elif isinstance(body, Flow):
            assert body.handle < 0 or body.handle in handles, "a flow of no link"
