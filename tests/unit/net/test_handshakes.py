"""The gate of handshakes: its limits, its turns, and which connection gives way."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.net.handshakes import HandshakeGate, HandshakeLimits

pytestmark = pytest.mark.attack("A7")

SMALL: Final = HandshakeLimits(
    running=4, running_per_source=2, pending=10, pending_per_source=5, undisturbed_s=0.5
)


def wait(gate: HandshakeGate[str], source: str, *items: str) -> None:
    """Let connections of `source` wait for their handshakes."""
    for item in items:
        assert gate.admit(item, source) is None
        gate.mark_readable(item)


def begun(gate: HandshakeGate[str], now_s: float = 0.0) -> list[str]:
    """Begin all handshakes that may begin."""
    found = []
    while (item := gate.begin(now_s)) is not None:
        found.append(item)
    return found


def test_the_limits_of_a_listener() -> None:
    limits = HandshakeLimits()
    assert (limits.running, limits.running_per_source, limits.seconds) == (256, 32, 5.0)
    assert (limits.pending, limits.pending_per_source) == (5000, 2500)


def test_the_33rd_handshake_of_a_source_waits_while_another_source_begins() -> None:
    gate: HandshakeGate[str] = HandshakeGate(HandshakeLimits())
    wait(gate, "a", *(f"a{at}" for at in range(33)))
    assert len(begun(gate)) == 32
    assert not gate.is_waiting(), "it waits for its own source"
    wait(gate, "b", "b0")
    assert begun(gate) == ["b0"]
    gate.leave("a7")
    assert begun(gate) == ["a32"]


def test_the_257th_handshake_waits() -> None:
    gate: HandshakeGate[str] = HandshakeGate(HandshakeLimits())
    for source in range(9):
        wait(gate, f"s{source}", *(f"{source}.{at}" for at in range(32)))
    assert len(begun(gate)) == gate.running == 256
    assert gate.is_waiting()
    gate.leave("0.0")
    assert len(begun(gate)) == 1


def test_a_silent_connection_takes_no_place() -> None:
    gate: HandshakeGate[str] = HandshakeGate(SMALL)
    gate.admit("silent", "a")
    assert begun(gate) == []
    assert (len(gate), gate.running) == (1, 0)


def test_sources_with_fewer_handshakes_come_first_and_equal_ones_in_turn() -> None:
    gate: HandshakeGate[str] = HandshakeGate(SMALL)
    wait(gate, "a", "a1", "a2", "a3")
    wait(gate, "b", "b1", "b2")
    wait(gate, "c", "c1")
    assert begun(gate) == ["a1", "b1", "c1", "a2"]
    gate.leave("c1")
    assert begun(gate) == ["b2"]
    gate.leave("a2")
    assert begun(gate) == ["a3"]


def test_new_connections_of_a_source_do_not_cost_it_its_turn() -> None:
    gate: HandshakeGate[str] = HandshakeGate(SMALL)
    wait(gate, "a", "a1")
    wait(gate, "b", "b1")
    wait(gate, "a", "a2")
    gate.admit("a3", "a")
    assert gate.begin(0.0) == "a1"


@pytest.mark.parametrize(
    ("running", "waiting", "now_s", "expected"),
    [
        pytest.param("aabb", "c", 0.5, "a0", id="the oldest of a greatest source"),
        pytest.param("aabb", "c", 0.4, None, id="it has just begun"),
        pytest.param("aab", "c", 0.5, None, id="there is a place"),
        pytest.param("abcd", "a", 9.0, None, id="the waiting one has as many"),
        pytest.param("abcd", "e", 9.0, "a0", id="the waiting one has none"),
        pytest.param("aabb", "a", 9.0, None, id="the waiting one is at its own limit"),
        pytest.param("aabc", "b", 9.0, "a0", id="the waiting one has fewer"),
    ],
)
def test_displacement(running: str, waiting: str, now_s: float, expected: str | None) -> None:
    gate: HandshakeGate[str] = HandshakeGate(SMALL)
    for at, source in enumerate(running):
        wait(gate, source, f"{source}{at}")
    assert len(begun(gate)) == len(running)
    wait(gate, waiting, "waiting")
    assert gate.displace(now_s) == expected
    if expected is not None:
        assert begun(gate, now_s) == ["waiting"]


def test_nothing_is_displaced_for_nothing() -> None:
    gate: HandshakeGate[str] = HandshakeGate(SMALL)
    for source in "abcd":
        wait(gate, source, source)
    begun(gate)
    assert gate.displace(99.0) is None


@pytest.mark.parametrize(
    ("silent", "waiting", "expected"),
    [
        pytest.param(2, 1, "silent0", id="the oldest silent one first"),
        pytest.param(0, 3, "waiting2", id="then a waiting one"),
    ],
)
def test_the_limit_of_one_source(silent: int, waiting: int, expected: str) -> None:
    gate: HandshakeGate[str] = HandshakeGate(SMALL)
    wait(gate, "a", "running0", "running1")
    begun(gate)
    for at in range(waiting):
        wait(gate, "a", f"waiting{at + 2 if not silent else at}")
    for at in range(silent):
        assert gate.admit(f"silent{at}", "a") is None
    assert gate.admit("last", "a") == expected
    assert len(gate) == SMALL.pending_per_source


def test_running_handshakes_go_last() -> None:
    gate: HandshakeGate[str] = HandshakeGate(
        HandshakeLimits(running=9, running_per_source=2, pending=9, pending_per_source=2)
    )
    wait(gate, "a", "a0", "a1")
    assert begun(gate) == ["a0", "a1"]
    assert gate.admit("a2", "a") == "a0"
    assert gate.running == 1


def test_the_limit_of_all_is_paid_by_the_source_with_the_most() -> None:
    gate: HandshakeGate[str] = HandshakeGate(SMALL)
    for source, count in (("a", 3), ("b", 4), ("c", 3)):
        for at in range(count):
            assert gate.admit(f"{source}{at}", source) is None
    assert gate.admit("d0", "d") == "b0"
    assert len(gate) == SMALL.pending


def test_leaving_twice_is_leaving_once() -> None:
    gate: HandshakeGate[str] = HandshakeGate(SMALL)
    wait(gate, "a", "a0")
    begun(gate)
    gate.leave("a0")
    gate.leave("a0")
    gate.leave("never came")
    assert (len(gate), gate.running) == (0, 0)


EVENTS: Final = st.lists(
    st.tuples(st.sampled_from(["admit", "read", "begin", "displace", "leave"]), st.integers(0, 30)),
    max_size=120,
)


@given(EVENTS)
def test_no_limit_is_ever_exceeded_and_nothing_is_lost(events: list[tuple[str, int]]) -> None:
    gate: HandshakeGate[int] = HandshakeGate(SMALL)
    stages: dict[int, str] = {}
    for now_s, (event, number) in enumerate(events):
        source = str(number % 4)
        if event == "admit" and number not in stages:
            gone = gate.admit(number, source)
            if gone is not None:
                assert stages.pop(gone)
            stages[number] = "silent"
        elif event == "read" and stages.get(number) == "silent":
            gate.mark_readable(number)
            stages[number] = "waiting"
        elif event == "begin" and (first := gate.begin(float(now_s))) is not None:
            assert stages[first] == "waiting"
            stages[first] = "running"
        elif event == "displace" and (gone := gate.displace(float(now_s))) is not None:
            assert stages.pop(gone) == "running"
        elif event == "leave":
            gate.leave(number)
            stages.pop(number, None)
        assert len(gate) == len(stages) <= SMALL.pending
        running = Counter(str(item % 4) for item, at in stages.items() if at == "running")
        assert gate.running == running.total() <= SMALL.running
        assert max(running.values(), default=0) <= SMALL.running_per_source
        pending = Counter(str(item % 4) for item in stages)
        assert max(pending.values(), default=0) <= SMALL.pending_per_source
    waiting = [item for item, at in stages.items() if at == "waiting"]
    while waiting:
        for item in [item for item, at in stages.items() if at == "running"]:
            gate.leave(item)
            del stages[item]
        first = gate.begin(0.0)
        assert first in waiting, "a waiting connection begins when places are free"
        stages[first] = "running"
        waiting.remove(first)
