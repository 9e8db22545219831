"""The reason that a consumer gives for a rejection, and where it is reported."""

import pytest

from broker.amqp.outcomes import DeliveryState, Error, Modified, Rejected
from broker.amqp.performatives import RECEIVER
from broker.links.outcome import cause_of
from tests.support.broker import Broker
from tests.support.frames import Disposition


@pytest.mark.requirement("RCV-02")
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(Rejected(), ("rejected", "", ""), id="rejected"),
        pytest.param(Rejected(Error(condition="c")), ("rejected", "c", ""), id="a condition"),
        pytest.param(
            Rejected(Error(condition="c", description="d")), ("rejected", "c", "d"), id="both"
        ),
        pytest.param(Modified(delivery_failed=True), ("rejected", "", ""), id="another outcome"),
        pytest.param(None, ("rejected", "", ""), id="none"),
    ],
)
def test_why_a_message_is_rejected(
    state: DeliveryState | None, expected: tuple[str, str, str]
) -> None:
    cause = cause_of(state)
    assert (cause.reason, cause.condition, cause.description) == expected


@pytest.mark.requirement("RCV-02", "PRD-05")
def test_a_rejected_message_says_in_its_annotations_what_its_consumer_said() -> None:
    broker = Broker()
    broker.fill("q", 1)
    client = broker.session()
    client.attach_receiver("q", credit=1)
    (before,) = client.expect_deliveries(b"0")
    why = Error(condition="shop:sold-out", description="no more of these")
    client.send(Disposition(role=RECEIVER, first=0, settled=True, state=Rejected(why)))
    client.attach_receiver("DLQ", name="dead", handle=1, credit=1)
    (after,) = client.expect_deliveries(b"0")
    for told in (b"x-opt-ORIG-QUEUE", b"shop:sold-out", b"no more of these"):
        assert told in after.payload
    assert after.payload.endswith(before.payload[before.payload.index(b"\x00\x53\x75") :])
