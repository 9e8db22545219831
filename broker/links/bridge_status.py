"""The state of a bridge as operators see it; the bridge itself is in `broker/bridge/`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

CONNECTING: Final = "connecting"
RUNNING: Final = "running"
BLOCKED: Final = "blocked"
WAITING: Final = "waiting"
PAUSED: Final = "paused"

STATES: Final = (CONNECTING, RUNNING, BLOCKED, WAITING, PAUSED)
"""`blocked`: the other broker takes no messages for now, as its queue is full. `waiting`: an
attempt has failed, and the next one begins after a pause."""

EXACTLY_ONCE: Final = "exactly-once"
AT_LEAST_ONCE: Final = "at-least-once"

BRIDGE_PREFIX: Final = "bridge/"
"""The beginning of the names of all leases of bridges, and of their own subscriptions."""


@mypyc_attr(allow_interpreted_subclasses=True)
class BridgeControl:
    """The control of a bridge by operators."""

    @abstractmethod
    def pause(self) -> None:
        """Take no more messages until `resume`, or the next start of the broker."""

    @abstractmethod
    def resume(self) -> None:
        """Take messages again; a bridge that waits tries again at once."""


@final
class BridgeStatus:
    """One bridge. `state` is one of STATES since `since_ms` (wall time), `error` why it waits.

    `delivery` is empty until the other broker is known. `moved` messages, of `moved_bytes` bytes,
    are at the other broker and settled here, in `batches`. `held` are leased, and not settled.
    `refused` were dead-lettered, because the other broker never takes them; `looped` were dropped,
    because they had passed the bridge before. `failures` counts attempts that ended with an error.
    """

    def __init__(
        self, *, name: str, source: str, target: str, url: str, keep: str, control: BridgeControl
    ) -> None:
        self.name: Final = name
        self.source: Final = source
        self.target: Final = target
        self.url: Final = url
        self.keep: Final = keep
        self.control: Final = control
        self.state = CONNECTING
        self.since_ms: i64 = 0
        self.error = ""
        self.lease = ""
        self.delivery = ""
        self.moved: i64 = 0
        self.moved_bytes: i64 = 0
        self.batches: i64 = 0
        self.held: i64 = 0
        self.refused: i64 = 0
        self.looped: i64 = 0
        self.connects: i64 = 0
        self.failures: i64 = 0

    def is_up(self) -> bool:
        """Return whether the bridge is connected, and not paused."""
        return self.state in (RUNNING, BLOCKED)

    def enter(self, state: str, now_ms: i64, *, error: str = "") -> None:
        """Be in `state` from `now_ms` on, unless it is in it already; `error` is its reason."""
        self.error = error
        if state != self.state or self.since_ms == 0:
            self.state = state
            self.since_ms = now_ms
