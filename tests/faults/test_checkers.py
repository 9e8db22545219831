"""Tests of the checkers: histories with one planted fault each, and histories without faults."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from tests.faults.checkers import CHECKERS, judge
from tests.faults.history import Action, Event, Phase, Recorder
from tests.faults.reading import Reading

CLOCK = count(1)

History = list[Event]


def event(phase: Phase, action: Action, subject: str, **facts: object) -> Event:
    return Event(next(CLOCK), phase, action, subject, **facts)  # type: ignore[arg-type]


def sent(subject: str, told: Phase | None = Phase.OK, **facts: object) -> History:
    """Return the events of a message sent to `q`, with what its sender was told."""
    place = {"place": "q", "crc": 7} | facts
    invoked = event(Phase.INVOKE, Action.SEND, subject, **place)
    return [invoked, *([event(told, Action.SEND, subject)] if told else [])]


def got(subject: str, *, accepted: bool | None = True, **facts: object) -> History:
    """Return the events of a message received from `q`; `accepted` None leaves it unsettled."""
    place = {"place": "q", "by": "c#1"} | {key: facts[key] for key in facts if key != "transaction"}
    history = [event(Phase.OK, Action.RECEIVE, subject, **({"crc": 7} | place))]
    if accepted is not None:
        said = {key: facts.get(key, place.get(key, "")) for key in ("place", "by", "transaction")}
        phase = Phase.INVOKE if accepted else Phase.FAIL
        history.append(event(phase, Action.SETTLE, subject, **said))
    return history


def ended(transaction: str, *phases: Phase) -> History:
    return [event(phase, Action.COMMIT, transaction) for phase in phases]


def down() -> History:
    return [event(phase, Action.OUTAGE, "broker") for phase in (Phase.INVOKE, Phase.OK)]


ASKED = Phase.INVOKE

PLANTED = [
    pytest.param("lost", [*sent("p.1")], id="an accepted message that nobody sees"),
    pytest.param(
        "lost",
        [*sent("p.1", place="t"), *got("p.1", place="t/one")],
        id="one subscription does not get what is published",
    ),
    pytest.param(
        "lost",
        [*sent("p.1", transaction="x"), *ended("x", ASKED, Phase.OK)],
        id="a message of a committed transaction that nobody sees",
    ),
    pytest.param(
        "lost-middle", [*sent("p.1"), *sent("p.2"), *got("p.2")], id="a hole before a later message"
    ),
    pytest.param("unexpected", [*got("p.1")], id="a message that nobody sent"),
    pytest.param(
        "unexpected", [*sent("p.1"), *got("p.1"), *got("p.1", place="r")], id="one at a wrong place"
    ),
    pytest.param(
        "duplicate-unflagged",
        [*sent("p.1"), *got("p.1"), *got("p.1")],
        id="a second delivery that says it is the first",
    ),
    pytest.param(
        "duplicate-unflagged",
        [*sent("p.1", None), *sent("p.1"), *got("p.1"), *got("p.1"), *got("p.1")],
        id="three of a message that was sent twice",
    ),
    pytest.param(
        "consumed-then-delivered",
        [
            *sent("p.1"),
            *got("p.1", transaction="x"),
            *ended("x", ASKED, Phase.OK),
            *got("p.1", flagged=True),
        ],
        id="one that a commit has consumed comes back, flagged or not",
    ),
    pytest.param(
        "reordered",
        [*sent("p.1"), *sent("p.2"), *got("p.2"), *got("p.1")],
        id="the second message comes first",
    ),
    pytest.param(
        "reordered",
        [
            *sent("p.1"),
            *sent("p.2"),
            *got("p.1", accepted=False),
            *got("p.2", by="alone"),
            *got("p.1", by="alone", flagged=True),
        ],
        id="what was given back comes late to who is alone",
    ),
    pytest.param(
        "torn-tx",
        [
            *sent("p.1", transaction="x"),
            *sent("p.2", transaction="x"),
            *ended("x", ASKED),
            *got("p.1"),
        ],
        id="half of what a transaction in doubt sent is there",
    ),
    pytest.param(
        "torn-tx",
        [
            *sent("a.1"),
            *got("a.1", transaction="x"),
            *sent("p.1", transaction="x"),
            *ended("x", ASKED),
            *got("a.1", flagged=True),
            *got("p.1"),
        ],
        id="what a transaction in doubt sent is there, and what it consumed as well",
    ),
    pytest.param(
        "torn-tx",
        [*sent("p.1", transaction="x"), *ended("x", Phase.FAIL), *got("p.1")],
        id="what was rolled back is there",
    ),
    pytest.param(
        "torn-tx",
        [*sent("a.1"), *got("a.1", transaction="x"), *ended("x", Phase.FAIL)],
        id="what was consumed in vain does not come back",
    ),
    pytest.param(
        "accepted-then-missing",
        [*sent("p.1"), *got("p.1", accepted=None), *down()],
        id="seen once, not settled, and never again",
    ),
    pytest.param(
        "accepted-then-missing",
        [*sent("p.1"), *got("p.1", accepted=False)],
        id="given back, and never seen again",
    ),
    pytest.param(
        "rejected-then-delivered",
        [*sent("p.1", Phase.FAIL), *got("p.1")],
        id="a message that was refused",
    ),
    pytest.param(
        "rejected-then-delivered",
        [*sent("p.1", transaction="x"), *got("p.1")],
        id="a message of a transaction that nobody committed",
    ),
    pytest.param("corrupt-body", [*sent("p.1"), *got("p.1", crc=8)], id="another body"),
]

TOPICS = {"t": {"t/one": 0, "t/two": 0}}


def reading(history: History) -> Reading:
    return Reading(history, topics=TOPICS, alone=frozenset({"alone"}))


@pytest.mark.parametrize(("checker", "history"), PLANTED)
def test_a_planted_fault_is_found(checker: str, history: History) -> None:
    assert list(CHECKERS[checker](reading(history)))
    assert not judge(reading(history)).holds


def test_every_checker_has_found_something() -> None:
    assert {param.values[0] for param in PLANTED} == set(CHECKERS)


FINE = [
    pytest.param([*sent("p.1"), *sent("p.2"), *got("p.1"), *got("p.2")], id="in order, once"),
    pytest.param([*sent("p.1", None)], id="sent without an answer, and not there"),
    pytest.param([*sent("p.1", Phase.INFO), *got("p.1")], id="sent without an answer, and there"),
    pytest.param(
        [*sent("p.1"), *got("p.1"), *down(), *got("p.1", flagged=True)],
        id="an acknowledgement that a crash forgot, flagged",
    ),
    pytest.param(
        [*sent("p.1", None), *sent("p.1"), *got("p.1"), *got("p.1")], id="sent twice, there twice"
    ),
    pytest.param(
        [
            *sent("p.1", transaction="x"),
            *sent("p.2", transaction="x"),
            *ended("x", ASKED),
            *got("p.1"),
            *got("p.2"),
        ],
        id="a transaction in doubt that happened",
    ),
    pytest.param(
        [*sent("p.1", transaction="x"), *ended("x", ASKED)],
        id="a transaction in doubt that did not happen",
    ),
    pytest.param(
        [
            *sent("a.1"),
            *got("a.1", transaction="x"),
            *sent("p.1", transaction="x"),
            *ended("x", ASKED),
            *down(),
            *got("a.1", flagged=True),
        ],
        id="a move in doubt that did not happen",
    ),
    pytest.param(
        [*sent("p.1", priority=4), *sent("p.2", priority=9), *got("p.2"), *got("p.1")],
        id="a higher priority goes first",
    ),
    pytest.param(
        [*sent("p.1", place="t"), *got("p.1", place="t/one"), *got("p.1", place="t/two")],
        id="published to two subscriptions",
    ),
    pytest.param(
        [
            *sent("p.1"),
            *sent("p.2"),
            *got("p.1", accepted=False),
            *got("p.2"),
            *got("p.1", flagged=True),
        ],
        id="what was given back comes late to who is not alone",
    ),
]


@pytest.mark.parametrize("history", FINE)
def test_nothing_is_found_where_all_is_well(history: History) -> None:
    assert list(judge(reading(history)).problems()) == []


def test_the_figures_of_a_verdict() -> None:
    history = [
        *sent("p.1"),
        *sent("p.2", None),
        *got("p.1"),
        *down(),
        *got("p.1", flagged=True),
    ]
    verdict = judge(reading(history))
    assert verdict.line() == (
        "attempts 2 / acked 1 / lost 0 / dup(flagged) 1 / dup(unflagged) 0 / reordered 0"
        " / torn 0 / indeterminate 1 / max-unavailability-ms 0"
    )
    assert 0 < verdict.unavailable_ms < 1


def test_a_recorder_notes_in_order_and_writes_for_people(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.note(Phase.INVOKE, Action.SEND, "p.1", place="q", crc=7)
    recorder.note(Phase.OK, Action.SEND, "p.1")
    first, second = recorder.events
    assert first.at_ns <= second.at_ns
    assert (first.phase, first.place, first.crc) == (Phase.INVOKE, "q", 7)
    recorder.write(tmp_path / "history")
    lines = [json.loads(line) for line in (tmp_path / "history").read_text().splitlines()]
    assert [(line["action"], line["phase"]) for line in lines] == [
        ("send", "invoke"),
        ("send", "ok"),
    ]
