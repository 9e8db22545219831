"""Each verdict fails on a result that breaks it: one that passes everything would say nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

import pytest

from tests.attacks.catalogue import ATTACKS
from tests.attacks.latency import Sample, latency
from tests.attacks.plan import Attack, Reached, Site
from tests.attacks.verdict import (
    ALLOWANCE_MIB,
    COLUMNS,
    INTERPRETED_FACTOR,
    P99_MAX_MS,
    Healthy,
    Resident,
    Result,
    table,
)

QUICK: Final = latency([Sample(0.0, 1.0)], every_ms=10.0)
NONE: Final = latency([], every_ms=10.0)
LATE_MS: Final = P99_MAX_MS["request"] * 2
LATE: Final = latency([Sample(0.0, LATE_MS)], every_ms=LATE_MS)
SERVED: Final = Healthy(QUICK, QUICK, QUICK)
DELAYED: Final = Healthy(QUICK, LATE, QUICK)
MEMORY_MAX_MIB: Final = 256.0
LIMITED: Final = "amqp:resource-limit-exceeded"


async def nothing(site: Site) -> Reached:  # noqa: ARG001
    """An attack that does nothing."""
    return Reached()


ATTACK: Final = Attack(words="", work=nothing, condition=LIMITED, naming="some_max")


def result() -> Result:
    """Return the result of an attack that the broker withstood."""
    return Result(
        "attack",
        ATTACK,
        "sqlite",
        memory_max_mib=MEMORY_MAX_MIB,
        resident=Resident(40.0, MEMORY_MAX_MIB + ALLOWANCE_MIB, 300.0),
        healthy={"request": SERVED},
        reached=Reached(told=Counter({LIMITED: 2}), words={LIMITED: "as many as some_max allows"}),
    )


def test_an_attack_that_was_withstood_is_ok() -> None:
    assert result().verdict() == "ok"
    assert not result().is_failed()


BREACHES: Final = [
    pytest.param(
        {"resident": Resident(40.0, MEMORY_MAX_MIB + ALLOWANCE_MIB + 1, 40.0)},
        "RSS reached 385 MiB",
        id="too much memory",
    ),
    pytest.param({"healthy": {"request": DELAYED}}, "p99 200 ms", id="a healthy client waited"),
    pytest.param(
        {"healthy": {"request": Healthy(QUICK, NONE, QUICK)}}, "p99 inf", id="nothing was served"
    ),
    pytest.param(
        {"healthy": {"request": Healthy(QUICK, QUICK, NONE)}},
        "not one after the attack",
        id="a healthy client was not served again",
    ),
    pytest.param(
        {"healthy": {"request": Healthy(QUICK, QUICK, QUICK, ["cut off", "refused"])}},
        "cut off (and 1 errors more)",
        id="a healthy client got an error",
    ),
    pytest.param({"reached": Reached()}, f"were not told {LIMITED}", id="attackers told nothing"),
    pytest.param(
        {"reached": Reached(told=Counter({LIMITED: 1}), words={LIMITED: "too many"})},
        "does not name some_max",
        id="the setting is not named",
    ),
    pytest.param(
        {"attack": replace(ATTACK, grown_mib=259.0)},
        "RSS grew by 260.0 MiB for good, 259 are allowed",
        id="too much memory left behind",
    ),
    pytest.param(
        {"attack": replace(ATTACK, peak_mib=343.0)},
        "RSS grew by 344.0 MiB meanwhile, 343 are allowed",
        id="too much memory meanwhile",
    ),
    pytest.param({"broken": ["the broker ended with 1"]}, "ended with 1", id="the broker died"),
]


@pytest.mark.parametrize(("change", "expected"), BREACHES)
def test_a_broken_promise_fails_and_is_named(change: dict[str, object], expected: str) -> None:
    broken = replace(result(), **change)  # type: ignore[arg-type]
    assert broken.is_failed()
    assert expected in broken.verdict()


def test_growth_at_its_bounds_is_ok() -> None:
    attack = replace(ATTACK, grown_mib=260.0, peak_mib=344.0)
    assert replace(result(), attack=attack).verdict() == "ok"


def test_what_the_attacker_found_broken_fails() -> None:
    broken = result()
    broken.reached.check(holds=False, problem="3 messages were lost")
    assert broken.verdict() == "failed: 3 messages were lost"


@pytest.mark.parametrize(
    ("change", "is_late"),
    [
        pytest.param({"is_compiled": True}, True, id="compiled"),
        pytest.param({"is_compiled": False}, False, id="interpreted, which is slower"),
        pytest.param(
            {"attack": replace(ATTACK, waits_on=("sqlite",))}, False, id="all producers wait"
        ),
    ],
)
def test_bounds_on_latency(change: dict[str, object], is_late: bool) -> None:
    assert LATE_MS / P99_MAX_MS["request"] < INTERPRETED_FACTOR
    late = replace(result(), healthy={"request": DELAYED}, **change)  # type: ignore[arg-type]
    assert bool(late.delays()) is is_late
    assert not late.problems()


def test_a_table_has_a_line_for_each_kind_of_healthy_client() -> None:
    seen = replace(result(), healthy={"request": SERVED, "login": DELAYED})
    seen.reached.figures["messages sent"] = 12_345
    lines = table([seen]).splitlines()
    assert [line.count("|") for line in lines] == [len(COLUMNS) + 1] * 4
    assert "12,345 messages sent; 2 times amqp:resource-limit-exceeded" in lines[2]
    assert "| 40 | 384 | 300 |" in lines[2]
    assert lines[3].startswith("| · login |")


def test_an_attack_that_is_impossible_here_is_skipped_and_does_not_fail() -> None:
    skipped = replace(result(), skipped="no mounts of one's own", reached=Reached())
    assert skipped.verdict() == "skipped: no mounts of one's own"
    assert not skipped.is_failed()


def test_what_an_attack_reached_survives_the_way_between_processes() -> None:
    reached = Reached(figures={"sent": 3.0}, problems=["lost"])
    reached.hear(LIMITED, "first")
    reached.hear(LIMITED, "second")
    assert Reached.decoded(reached.encoded()) == reached
    assert reached.words == {LIMITED: "first"}
    site = Site(port=5672, seconds=1.5, disk="somewhere")
    assert Site.decoded(site.encoded()) == site


def test_every_attack_is_judged_by_something() -> None:
    """Each attack has bounds on latency, and the one kind of client that all attacks have."""
    for name, attack in ATTACKS.items():
        assert attack.probes[0] == "request", name
        assert set(attack.probes) <= set(P99_MAX_MS), name
        assert set(attack.waits_on) <= set(attack.stores), name
