"""The messages that are due at their times, on a link that has no credit."""

from __future__ import annotations

import pytest

pytest.importorskip("proton")

from proton import Connection

from broker.cli.load.clients import DueMessages
from broker.cli.load.counts import LoadCounts
from broker.cli.load.links import OutgoingMessages
from broker.cli.load.load_message import LoadMessage
from broker.cli.load.outcomes import SingleOutcomes
from broker.cli.load.plan import NO_LIMIT, SECOND_NS, SendingTimes
from tests.unit.cli.load.plans import plan_of

pytestmark = pytest.mark.requirement("OPS-18")

START_NS = 7 * SECOND_NS
END_NS = START_NS + 10 * SECOND_NS


@pytest.mark.parametrize(
    "late_ns",
    [
        pytest.param(0, id="at the end itself"),
        pytest.param(SECOND_NS, id="by a process that got no processor for a second"),
    ],
)
def test_unsent_messages_are_counted_before_the_load_is_done(late_ns: int) -> None:
    plan, counts = plan_of(rate=4.0), LoadCounts()
    link = Connection().session().sender("no credit")
    out = OutgoingMessages(link, plan.in_flight, SingleOutcomes(counts))
    message = LoadMessage(size=plan.size, run_id=plan.run_id, durable=plan.durable)
    due = DueMessages(out, message, plan, counts)
    due.begin(SendingTimes(plan, 0, START_NS))
    assert not due.send(END_NS - 1, NO_LIMIT)
    assert due.next_due_ns() == END_NS
    assert not due.is_done()
    assert not due.send(END_NS + late_ns, NO_LIMIT)
    assert due.is_done()
    assert (counts.sent, counts.unsent) == (0, 40)
