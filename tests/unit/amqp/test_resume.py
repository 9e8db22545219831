"""The rule of resuming deliveries: every state of ours with every state of the peer's map."""

from itertools import product

import pytest

from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    Declared,
    DeliveryState,
    Modified,
    Received,
    Rejected,
    TransactionalState,
)
from broker.amqp.performatives import RECEIVER, SENDER
from broker.amqp.resume import Resumption, TagState, decide, tag_state

A, N, R, T = TagState.ABSENT, TagState.NULL, TagState.RECEIVED, TagState.TERMINAL
FORGET, SETTLE, KEEP = Resumption.FORGET, Resumption.SETTLE, Resumption.KEEP
RESUME, ABORT, ANEW = Resumption.RESUME, Resumption.RESUME_ABORTED, Resumption.SEND_ANEW

AS_SENDER = {
    # our state: what follows the peer's absent, null, received and terminal state
    A: (FORGET, FORGET, FORGET, FORGET),
    N: (ANEW, RESUME, ABORT, SETTLE),
    R: (ANEW, RESUME, ABORT, SETTLE),
    T: (FORGET, SETTLE, SETTLE, SETTLE),
}
AS_RECEIVER = {
    A: (FORGET, FORGET, FORGET, FORGET),
    N: (FORGET, KEEP, KEEP, KEEP),
    R: (FORGET, KEEP, KEEP, KEEP),
    T: (FORGET, KEEP, KEEP, KEEP),
}
THEIRS = (A, N, R, T)

PAIRS = list(product((SENDER, RECEIVER), THEIRS, THEIRS, (False, True)))


@pytest.mark.parametrize(("role", "ours", "theirs", "incomplete"), PAIRS)
def test_every_pair_of_states_has_its_decision(
    role: bool, ours: TagState, theirs: TagState, incomplete: bool
) -> None:
    table = AS_SENDER if role is SENDER else AS_RECEIVER
    expected = table[ours][THEIRS.index(theirs)]
    if incomplete and theirs is A and ours is not A:
        expected = KEEP  # the absence proves nothing (2.7.3)
    assert decide(ours, theirs, role=role, incomplete=incomplete) is expected


@pytest.mark.parametrize(
    ("state", "counts_as"),
    [
        (None, N),
        (Received(section_number=1, section_offset=7), R),
        (ACCEPTED, T),
        (RELEASED, T),
        (Rejected(), T),
        (Modified(delivery_failed=True), T),
        (Declared(b"t"), N),
        (TransactionalState(txn_id=b"t"), N),
        (TransactionalState(txn_id=b"t", outcome=ACCEPTED), N),
    ],
)
def test_a_state_is_an_outcome_a_part_or_nothing(
    state: DeliveryState | None, counts_as: TagState
) -> None:
    assert tag_state(state) is counts_as
