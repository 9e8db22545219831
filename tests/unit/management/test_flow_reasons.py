"""Why a consumer gets nothing: each reason by the facts that lead to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker.management import flow_reasons
from broker.management.flow_reasons import (
    DIFFERENT,
    DRAINING,
    EMPTY,
    FLOWS,
    GROUP_HELD,
    HELD,
    NO_CONSUMER,
    NO_CREDIT,
    NOT_LOADED,
    NOT_SELECTED,
    OUTPUT_FULL,
    PAUSED,
    REFUSED,
    SCHEDULED,
    STANDS_BY,
    TEXTS,
    UNSETTLED,
    ConsumerFacts,
    QueueFacts,
    reason_of_all,
    reason_of_consumer,
    reason_of_queue,
)

pytestmark = pytest.mark.requirement("OPS-19")

READY = QueueFacts(ready=3, scheduled=2, paused=1, acquired=1, held=1, consumers=1)
SERVED = ConsumerFacts(
    has_credit=True, has_room=True, stands_by=False, examined=3, selected=3, free=3, offered=3
)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({}, FLOWS, id="messages and a consumer"),
        pytest.param({"is_draining": True}, DRAINING, id="a drain, whatever there is"),
        pytest.param({"is_blocked": True}, HELD, id="too many that cannot be moved"),
        pytest.param({"consumers": 0}, NO_CONSUMER, id="no consumer"),
        pytest.param({"ready": 0}, UNSETTLED, id="none is ready, some are unsettled"),
        pytest.param({"ready": 0, "acquired": 0}, SCHEDULED, id="none is due"),
        pytest.param({"ready": 0, "acquired": 0, "scheduled": 0}, PAUSED, id="all have failed"),
        pytest.param(
            {"ready": 0, "acquired": 0, "scheduled": 0, "paused": 0}, HELD, id="none can be moved"
        ),
        pytest.param(
            {"ready": 0, "acquired": 0, "scheduled": 0, "paused": 0, "held": 0},
            EMPTY,
            id="there is none",
        ),
    ],
)
def test_a_queue(changes: dict[str, int | bool], reason: str) -> None:
    assert reason_of_queue(replace(READY, **changes)) == reason  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({}, FLOWS, id="nothing in the way"),
        pytest.param({"stands_by": True, "has_credit": False}, STANDS_BY, id="it stands by"),
        pytest.param({"has_credit": False, "selected": 0}, NO_CREDIT, id="no credit"),
        pytest.param({"examined": 0, "selected": 0}, NOT_LOADED, id="nothing in memory"),
        pytest.param({"selected": 0, "free": 0, "offered": 0}, NOT_SELECTED, id="selector"),
        pytest.param({"free": 0, "offered": 0}, GROUP_HELD, id="groups"),
        pytest.param({"offered": 0, "has_room": False}, REFUSED, id="refused before"),
        pytest.param({"has_room": False}, OUTPUT_FULL, id="no room for more output"),
    ],
)
def test_a_consumer(changes: dict[str, int | bool], reason: str) -> None:
    assert reason_of_consumer(replace(SERVED, **changes)) == reason  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reasons", "reason"),
    [
        pytest.param([NO_CREDIT, FLOWS], FLOWS, id="one gets messages"),
        pytest.param([NO_CREDIT, NO_CREDIT], NO_CREDIT, id="all have the same"),
        pytest.param([NO_CREDIT, GROUP_HELD], DIFFERENT, id="each has its own"),
    ],
)
def test_all_consumers(reasons: list[str], reason: str) -> None:
    assert reason_of_all(reasons) == reason


def test_every_reason_has_a_text() -> None:
    reasons = {
        value
        for name, value in vars(flow_reasons).items()
        if name.isupper() and isinstance(value, str)
    }
    assert set(TEXTS) == reasons
