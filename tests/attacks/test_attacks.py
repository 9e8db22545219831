"""Some attacks, for seconds: all bounds must hold except latencies, which need a quiet machine."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

import pytest

from tests.attacks.attacker import FILES_WANTED
from tests.attacks.catalogue import ATTACKS, BEFORE_LOGIN, OF_USERS, WITH_A_USER
from tests.attacks.flooding import linger
from tests.attacks.plan import MEMORY, SQLITE, Deadline
from tests.attacks.programs import Probe, peak_anew, resident_mib
from tests.attacks.run import (
    START_S,
    Setup,
    broker_for,
    healthy_clients,
    resident_of,
    run,
    site_of,
)
from tests.attacks.verdict import growth_problems, told_problems
from tests.bench.machine import raise_file_limit
from tests.interop.broker_process import command

CHEAP: Final = [
    pytest.param("hoarding", MEMORY, 2.0, id="hoarding"),
    pytest.param("transactions", SQLITE, 2.0, id="open transactions"),
    pytest.param("unfinished", SQLITE, 2.0, id="unfinished deliveries"),
    pytest.param("unread-answers", SQLITE, 10.0, id="answers that nobody reads"),
    pytest.param("logins", SQLITE, 2.0, id="wrong passwords"),
    pytest.param("half-requests", SQLITE, 2.0, id="half requests over HTTP"),
]
"""An attack whose broker closes stalled connections lasts until that happens, and then ends."""

SMALL_MIB: Final = 128


@pytest.mark.slow
@pytest.mark.parametrize(("name", "store", "seconds"), CHEAP)
async def test_a_short_attack_is_withstood(name: str, store: str, seconds: float) -> None:
    if name == "half-requests":
        pytest.importorskip("uvicorn")
    setup = Setup(
        program=command(), seconds=seconds, memory_max_mib=SMALL_MIB, rest_s=0.5, quiet_s=0.5
    )
    result = await run(name, ATTACKS[name], store, setup=setup)
    assert result.problems() == []
    assert result.resident is not None
    assert result.healthy["request"].during.count > 0


SHARES: Final = {
    "handshakes": 0.01,
    "logins-anonymous": 0.0005,
    "logins-scram": 0.002,
    "logins-plain": 0.02,
    "silent-1000": 1.0,
}
"""Attacks by numbers of connections, and the fraction of these that the suite makes."""

BOTH_LOGINS: Final = "allow_anonymous = true\n"


@pytest.mark.slow
@pytest.mark.requirement("SEC-01", "SEC-02", "SEC-05")
async def test_connections_before_their_login_take_little_memory() -> None:
    """On one broker that offers all of TLS, SCRAM, PLAIN and ANONYMOUS, one after another."""
    settings = BOTH_LOGINS + WITH_A_USER + BEFORE_LOGIN["handshakes"].settings
    some = replace(BEFORE_LOGIN["handshakes"], settings=settings)
    setup = Setup(program=command(), seconds=0)
    raise_file_limit(FILES_WANTED)
    problems: dict[str, list[str]] = {}
    with broker_for(some, MEMORY, setup) as (broker, _):
        async with healthy_clients(some, broker) as probes:
            await linger(Deadline(START_S), lambda: all(each.samples for each in probes.values()))
            for name, share in SHARES.items():
                peak_anew(broker.pid)
                before_mib = resident_mib(broker.pid)
                reached = await BEFORE_LOGIN[name].work(site_of(broker, setup, share=share))
                resident = resident_of(broker, before_mib)
                problems[name] = reached.problems + growth_problems(resident, BEFORE_LOGIN[name])
                problems[name] += [error for each in probes.values() for error in each.errors]
    assert problems == {name: [] for name in SHARES}


@pytest.mark.slow
@pytest.mark.requirement("SEC-03", "SEC-04", "SEC-10")
async def test_no_user_harms_another() -> None:
    """All attacks of users, once each, on one broker beside one healthy client."""
    some = next(iter(OF_USERS.values()))
    problems: dict[str, list[str]] = {}
    setup = Setup(program=command(), seconds=0)
    with broker_for(some, MEMORY, setup) as (broker, _):
        async with healthy_clients(some, broker) as probes:
            healthy = probes["request"]
            await linger(Deadline(START_S), lambda: bool(healthy.samples))
            site = site_of(broker, setup)
            for name, attack in OF_USERS.items():
                reached = await attack.work(site)
                problems[name] = reached.problems + told_problems(attack, reached)
                ended_s = time.monotonic()
                await linger(Deadline(START_S), lambda: _is_decided(healthy, ended_s))  # noqa: B023
                problems[name] += healthy.errors
                assert healthy.served_since(ended_s), name
    assert problems == {name: [] for name in OF_USERS}


def _is_decided(healthy: Probe, since_s: float) -> bool:
    """Return whether the client was served since that moment, or has met an error."""
    return bool(healthy.errors) or healthy.served_since(since_s)
