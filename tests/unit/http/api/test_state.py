"""The alarms and the listeners of a broker over the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.api import api_of

pytestmark = pytest.mark.requirement("OPS-01")


async def test_every_alarm_is_listed_whether_it_holds_or_not(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        calm = await api.items("/alarms")
        api.broker.router.memory.is_short = True
        alarmed = await api.items("/alarms")
    names = ("disk", "disk_full", "memory", "store_away", "store_standby")
    assert calm == [{"name": name, "holds": False} for name in names]
    assert alarmed == [{"name": name, "holds": name == "memory"} for name in names]


async def test_a_listener_has_its_connections_and_the_end_of_its_certificate(
    tmp_path: Path,
) -> None:
    async with api_of(tmp_path) as api:
        client = api.broker.session("shop")
        stats = api.broker.stats.listener("amqps")
        stats.certificate_end_s = 1_800_000_000.5
        found = {each["name"]: each for each in await api.items("/listeners")}
        name = next(iter(api.broker.container.peers())).entrance.listener
        client.hang_up()
    assert found["amqps"] == {
        "name": "amqps",
        "connections": 0,
        "opened": 0,
        "closed": 0,
        "received_bytes": 0,
        "sent_bytes": 0,
        "certificate_ends_at": 1_800_000_000_500,
    }
    if name in found:
        assert found[name]["connections"] == 1
