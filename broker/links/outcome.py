"""Meaning of an outcome for the queue (core 3.4, RCV-02, RCV-08), which `Queue` carries out."""

from typing import assert_never

from broker.amqp.errors import NOT_ALLOWED, Fault, LinkFault
from broker.amqp.outcomes import (
    Accepted,
    Declared,
    DeliveryState,
    Modified,
    Outcome,
    Received,
    Rejected,
    Released,
    TransactionalState,
)
from broker.routing.entries.dead_letter import REJECTED, REJECTED_UNSAID, Cause
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import Disposal
from storage.batch import Batch


def disposal(state: Outcome | Declared | TransactionalState) -> Disposal:
    """Return the disposal for an outcome; raise LinkFault for a state that is none."""
    match state:
        case Accepted():
            return Disposal.REMOVE
        case Released():
            return Disposal.RELEASE
        case Rejected():
            return Disposal.DEAD_LETTER
        case Modified():
            return _disposal_of_modified(state)
        case Declared() | TransactionalState():
            # outcomes within a transaction have been handled before (`retirement.py`)
            raise LinkFault(NOT_ALLOWED, "a delivery state that is no outcome")
        case _:
            assert_never(state)


def _disposal_of_modified(modified: Modified) -> Disposal:
    if modified.undeliverable_here:
        return Disposal.FAIL_ELSEWHERE if modified.delivery_failed else Disposal.ELSEWHERE
    return Disposal.FAIL if modified.delivery_failed else Disposal.RELEASE


def cause_of(state: DeliveryState | None) -> Cause:
    """Return the cause that a consumer gives for a rejection; REJECTED_UNSAID if none (3.4.3)."""
    if not isinstance(state, Rejected) or state.error is None:
        return REJECTED_UNSAID
    error = state.error
    return Cause(REJECTED, error.condition, error.description or "")


def dispose(
    entry: QueueEntry, state: DeliveryState | None, batch: Batch, *, default: Outcome | None
) -> LinkFault | None:
    """Carry out what the consumer of `entry` has settled it with, outside of any transaction.

    Return what is wrong with `state`, None if nothing is: the entry leaves its consumer all the
    same. No state, or one that is not final, means the `default` outcome of the source (3.5.3).
    """
    wanted = abandonment(default)
    fault: LinkFault | None = None
    try:
        if state is not None and not isinstance(state, Received):
            wanted = disposal(state)
        if isinstance(state, Modified) and state.message_annotations is not None:
            entry.queue.annotate(entry, state.message_annotations, batch)
    except Fault as other:  # the client's annotations are malformed, or too many
        fault = LinkFault(other.condition, other.description)
    entry.sent_to = None
    entry.queue.dispose(entry, wanted, batch, cause=cause_of(state))
    return fault


def abandonment(default_outcome: Outcome | None) -> Disposal:
    """Return the disposal of a delivery that ended without an outcome (RCV-08).

    It is settled so, or ended with its link. The source's default-outcome decides, `released` if
    it names none. A failure raises delivery-count, but does not count towards the redelivery
    limit: no consumer has said that the message is bad. "Undeliverable here" is ignored: a link
    that has ended does not need it.
    """
    if default_outcome is None:
        return Disposal.RELEASE
    wanted = disposal(default_outcome)
    if wanted is Disposal.FAIL or wanted is Disposal.FAIL_ELSEWHERE:
        return Disposal.COUNT
    if wanted is Disposal.ELSEWHERE:
        return Disposal.RELEASE
    return wanted
