"""A bridge to Apache Artemis, which is fetched by Maven."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial

import pytest

from broker.cli.client import receive
from broker.embedding import Broker
from broker.links.bridge_status import AT_LEAST_ONCE
from tests.bench.peers import peer_of
from tests.interop.conftest import not_available
from tests.support.bridges import BRIDGE, bridge_to, status_of
from tests.support.embedded import put

COUNT = 500
PATIENCE_S = 30.0


@pytest.mark.slow
@pytest.mark.requirement("BRG-02")
@pytest.mark.requirement("BRG-08")
async def test_artemis_gets_all_messages_with_ids() -> None:
    for program in ("mvn", "java"):
        if shutil.which(program) is None:
            not_available(f"{program} is not installed: no Artemis")
    artemis = peer_of("artemis")
    await asyncio.to_thread(artemis.__enter__)
    try:
        url = f"amqp://{artemis.peer}"
        async with Broker(bridge=[bridge_to(url, batch=50)]) as here:
            sent = [b"%d" % number for number in range(COUNT)]
            put(here, "q", *sent, durable=True)
            await here.until(lambda: status_of(here).moved == COUNT, within_s=PATIENCE_S)
            assert status_of(here).delivery == AT_LEAST_ONCE
            found = await asyncio.to_thread(partial(received, url))
            assert [body for body, _ in found] == sent
            ids = {annotations["x-opt-bridge-id"] for _, annotations in found}
            assert len(ids) == COUNT
            assert all(annotations["x-opt-bridges"] == [BRIDGE] for _, annotations in found)
    finally:
        await asyncio.to_thread(artemis.__exit__, None, None, None)


def received(url: str) -> list[tuple[bytes, dict[str, object]]]:
    """Receive COUNT messages; return their bodies and message annotations."""
    return [
        (bytes(each.body), {str(key): value for key, value in (each.annotations or {}).items()})  # type: ignore[arg-type]
        for each in receive(url, "there", capability="queue", count=COUNT, timeout_s=PATIENCE_S)
    ]
