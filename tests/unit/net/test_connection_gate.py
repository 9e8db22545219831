"""The connection that gives way to a new one: tables of sources, and a model in random steps."""

import random
from collections import Counter

import pytest

from broker.net.connection_gate import (
    CONNECTIONS_MAX,
    UNAUTHENTICATED_MAX,
    UNAUTHENTICATED_SOURCE_MAX,
    ConnectionGate,
    ConnectionLimits,
    Entry,
)

LIMITS = ConnectionLimits(connections=8, unauthenticated=5, unauthenticated_of_source=3)

CASES = [
    # sources of the connections without a login, those with one, the new one's source, the entry
    pytest.param("", 0, "a", Entry[int](admitted=True), id="the first"),
    pytest.param("aab", 0, "a", Entry[int](admitted=True), id="room for all"),
    pytest.param(
        "aaab",
        0,
        "a",
        Entry(admitted=True, displaced=0, limit=UNAUTHENTICATED_SOURCE_MAX),
        id="the oldest of a source at its limit",
    ),
    pytest.param(
        "abbcc",
        0,
        "a",
        Entry(admitted=True, displaced=1, limit=UNAUTHENTICATED_MAX),
        id="the oldest of the largest source",
    ),
    pytest.param(
        "ab",
        6,
        "c",
        Entry(admitted=True, displaced=0, limit=CONNECTIONS_MAX),
        id="one without a login where others have one",
    ),
    pytest.param(
        "", 8, "a", Entry[int](admitted=False, limit=CONNECTIONS_MAX), id="none that gives way"
    ),
    pytest.param(
        "aaa", 0, "local", Entry[int](admitted=True), id="another source than that at its limit"
    ),
]


@pytest.mark.parametrize(("present", "others", "source", "expected"), CASES)
def test_what_gives_way_to_a_new_connection(
    present: str, others: int, source: str, expected: Entry[int]
) -> None:
    gate = ConnectionGate[int](LIMITS)
    for number, each in enumerate(present):
        gate.admit(number, each, is_local=False, present=0)
    entry = gate.admit(99, source, is_local=False, present=others + len(present))
    assert entry == expected
    gained = int(entry.admitted) - int(entry.displaced is not None)
    assert len(gate) == len(present) + gained


@pytest.mark.parametrize(
    ("is_local", "limits_loopback", "displaced"),
    [(True, False, None), (True, True, 0), (False, False, 0)],
    ids=["this machine excepted", "this machine as any other", "another machine"],
)
def test_this_machine_may_be_excepted(
    is_local: bool, limits_loopback: bool, displaced: int | None
) -> None:
    limits = ConnectionLimits(unauthenticated_of_source=1, limits_loopback=limits_loopback)
    gate = ConnectionGate[int](limits)
    gate.admit(0, "a", is_local=is_local, present=0)
    assert gate.admit(1, "a", is_local=is_local, present=1).displaced == displaced


def test_0_is_no_limit() -> None:
    gate = ConnectionGate[int](
        ConnectionLimits(connections=0, unauthenticated=0, unauthenticated_of_source=0)
    )
    for number in range(100):
        assert gate.admit(number, "a", is_local=False, present=number) == Entry(admitted=True)


def test_a_connection_that_has_logged_in_gives_way_no_more() -> None:
    gate = ConnectionGate[int](ConnectionLimits(unauthenticated_of_source=2))
    for number in range(2):
        gate.admit(number, "a", is_local=False, present=number)
    gate.leave(0)
    gate.leave(0)
    assert gate.admit(2, "a", is_local=False, present=2).displaced is None
    assert gate.admit(3, "a", is_local=False, present=3).displaced == 1


@pytest.mark.parametrize("seed", range(20))
def test_random_steps_agree_with_a_search(seed: int) -> None:
    """The gate finds the largest source without a search; this model searches."""
    chosen = random.Random(seed)
    gate = ConnectionGate[int](LIMITS)
    model: dict[int, str] = {}
    for number in range(500):
        if model and chosen.random() < 0.4:
            left = chosen.choice(list(model))
            del model[left]
            gate.leave(left)
            continue
        source = chosen.choice("abcd")
        sizes = Counter(model.values())
        displaced = gate.admit(number, source, is_local=False, present=len(model)).displaced
        if sizes[source] >= LIMITS.unauthenticated_of_source:
            assert displaced == next(each for each, of in model.items() if of == source)
        elif len(model) >= LIMITS.unauthenticated:
            assert displaced is not None
            of = model[displaced]
            assert sizes[of] == max(sizes.values())
            assert displaced == next(each for each in model if model[each] == of)
        else:
            assert displaced is None
        if displaced is not None:
            del model[displaced]
        model[number] = source
        assert len(gate) == len(model)
