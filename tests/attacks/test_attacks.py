"""Some attacks, for seconds: all bounds must hold except latencies, which need a quiet machine."""

from __future__ import annotations

from typing import Final

import pytest

from tests.attacks.catalogue import ATTACKS
from tests.attacks.plan import MEMORY, SQLITE
from tests.attacks.run import Setup, run
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
