"""Decide about each unsettled delivery when a link is attached again (core 2.6.13, 2.7.3).

Each end of a link sends its unsettled map, tag -> state, with its attach. `decide` takes the
broker's own state of one tag and the peer's, and says what the broker does.
"""

from enum import Enum

from broker.amqp.outcomes import Accepted, DeliveryState, Modified, Received, Rejected, Released
from broker.amqp.performatives import RECEIVER


class TagState(Enum):
    """The state of one tag in the unsettled map of one end."""

    ABSENT = "the map does not have the tag"
    NULL = "unsettled, no outcome is known"
    RECEIVED = "a part of the delivery has arrived"
    TERMINAL = "unsettled, with an outcome"


class Resumption(Enum):
    """The broker's part in going on with one tag."""

    FORGET = "nothing: the delivery is over, or never was"
    SETTLE = "take the outcome that is there, and settle"
    RESUME = "transfer the delivery again, as a resumed one"
    RESUME_ABORTED = "abort the delivery, and send the message anew"
    SEND_ANEW = "send the message anew, as another delivery"
    KEEP = "keep the state of the tag: the other end acts, or the next attach decides"


def tag_state(state: DeliveryState | None) -> TagState:
    """Return what `state` says of a delivery; None is null.

    A state within a transaction counts as null: the transaction decides, and a rollback undoes it.
    """
    if isinstance(state, Received):
        return TagState.RECEIVED
    if isinstance(state, (Accepted, Rejected, Released, Modified)):
        return TagState.TERMINAL
    return TagState.NULL


def decide(ours: TagState, theirs: TagState, *, role: bool, incomplete: bool) -> Resumption:
    """Return what the broker, whose `role` is SENDER or RECEIVER, does about one tag.

    `incomplete`: the peer's map may lack tags that the peer has (2.7.3), so that the absence of
    one proves nothing.
    """
    if ours is TagState.ABSENT:
        return Resumption.FORGET
    if theirs is TagState.ABSENT and incomplete:
        return Resumption.KEEP
    if role is RECEIVER:
        return _as_receiver(theirs)
    return _as_sender(ours, theirs)


def _as_sender(ours: TagState, theirs: TagState) -> Resumption:
    if ours is TagState.TERMINAL:
        return Resumption.FORGET if theirs is TagState.ABSENT else Resumption.SETTLE
    if theirs is TagState.ABSENT:
        return Resumption.SEND_ANEW
    if theirs is TagState.TERMINAL:
        return Resumption.SETTLE
    return Resumption.RESUME if theirs is TagState.NULL else Resumption.RESUME_ABORTED


def _as_receiver(theirs: TagState) -> Resumption:
    """Return the decision of the end that received: its sender settles, or has settled."""
    return Resumption.FORGET if theirs is TagState.ABSENT else Resumption.KEEP
