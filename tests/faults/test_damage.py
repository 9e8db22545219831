"""F7: from damaged files the store never returns bytes that were not stored (P10)."""

from __future__ import annotations

import pytest

from tests.faults.damage import DAMAGES, Outcome, broken, lines, run

COUNT = 40


@pytest.mark.slow
@pytest.mark.requirement("PRD-05")
async def test_nothing_damaged_is_delivered() -> None:
    found = await run(count=COUNT, seed=1)
    print(*lines(found), sep="\n")
    assert broken(found) == []
    for damage in DAMAGES:
        assert found[damage.name].counts["tried"] == COUNT
    flips = found["bit flipped in the database"].counts
    assert flips["noticed"] + flips["refused"] > 0
    assert flips["gone without a word"] == 0
    assert flips["served"] > 0


def test_a_verdict_says_what_must_not_be() -> None:
    outcome = Outcome()
    outcome.add("harmless", "nothing")
    assert broken({"a": outcome}) == []
    assert lines({"a": outcome})[0].startswith("passed: F7")
    outcome.add("wrongly delivered", "message 3")
    outcome.add("wrongly delivered", "message 4")
    assert broken({"a": outcome}) == ["a: wrongly delivered: message 3"]
    assert lines({"a": outcome})[0].startswith("FAILED: F7")
