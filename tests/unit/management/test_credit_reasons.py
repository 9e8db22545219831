"""Why a producer gets no credit: each reason by the facts that lead to it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from broker.management import credit_reasons
from broker.management.credit_reasons import (
    DISK,
    FULL,
    HAS_CREDIT,
    NO_PRODUCER,
    OUTCOMES,
    PACED,
    PASSING,
    PROMISED,
    TEXTS,
    USER_LIMIT,
    CreditFacts,
    reason_of_producer,
    reason_of_producers,
)
from broker.management.flow_reasons import DIFFERENT
from tests.support.tidy import ROOT

pytestmark = pytest.mark.requirement("OPS-21")

ALL = CreditFacts(
    credit=1,
    shortage=DISK,
    is_over_quota=True,
    room=0,
    promised=5,
    is_paced=True,
    window=10,
    unsettled=5,
)
"""A producer for which each reason applies: those that are removed leave the next one."""

REMOVED: tuple[tuple[str, dict[str, object], str], ...] = (
    ("it has credit", {}, HAS_CREDIT),
    ("a shortage of the broker", {"credit": 0}, DISK),
    ("its user has sent too much", {"shortage": None}, USER_LIMIT),
    ("others have credit for all the room", {"is_over_quota": False}, PROMISED),
    ("no room at all", {"promised": 0}, FULL),
    ("the consumers are behind", {"room": 1}, PACED),
    ("half of its window is unsettled", {"is_paced": False}, OUTCOMES),
    ("less than half is unsettled", {"unsettled": 4}, PASSING),
    ("no window", {"unsettled": 9, "window": 0}, PASSING),
    ("no limit of the node", {"room": None}, PASSING),
)


@pytest.mark.parametrize("last", range(len(REMOVED)), ids=[case for case, _, _ in REMOVED])
def test_a_producer(last: int) -> None:
    facts = ALL
    for _, changes, _ in REMOVED[: last + 1]:
        facts = replace(facts, **changes)  # type: ignore[arg-type]
    assert reason_of_producer(facts) == REMOVED[last][2]


@pytest.mark.parametrize(
    ("reasons", "reason"),
    [
        pytest.param([], NO_PRODUCER, id="no producer"),
        pytest.param([FULL, HAS_CREDIT], HAS_CREDIT, id="one has credit"),
        pytest.param([FULL, FULL], FULL, id="all have the same"),
        pytest.param([FULL, USER_LIMIT], DIFFERENT, id="each has its own"),
    ],
)
def test_a_node(reasons: list[str], reason: str) -> None:
    assert reason_of_producers(reasons) == reason


def test_each_reason_has_a_text() -> None:
    constants = {
        value
        for name, value in vars(credit_reasons).items()
        if name.isupper() and isinstance(value, str)
    }
    assert constants == TEXTS.keys()


def test_each_reason_is_on_the_page_of_operators() -> None:
    page = (ROOT / "docs" / "operations" / "producer-waits.md").read_text()
    listed = set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE))
    assert listed == TEXTS.keys() - {DIFFERENT}
