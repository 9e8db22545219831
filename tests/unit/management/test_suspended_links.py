"""Suspended links as an operator sees them, and their end."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.amqp.performatives import RCV_SECOND, Detach
from broker.amqp.terminus import CONNECTION_CLOSE, Target
from broker.security.identity import ADMIN
from tests.support.access import OWNER, RuledUsers
from tests.support.api import PASSWORD, api_of, problem
from tests.support.broker import Broker
from tests.support.resuming import counts, holding

pytestmark = pytest.mark.requirement("OPS-01")


def site() -> Broker:
    users = RuledUsers({"": {ADMIN}})
    users.passwords = {OWNER: PASSWORD}
    return Broker(authenticator=users)


async def test_a_suspended_link_is_shown_with_its_deliveries_and_time(tmp_path: Path) -> None:
    broker = site()
    async with api_of(tmp_path, broker=broker) as api:
        assert await api.names("/suspended-links") == []
        client = holding(2, broker=broker)
        client.hang_up()
        broker.advance(10_000)
        assert await api.names("/suspended-links") == ["receiver"]
        shown = await api.get("/suspended-links/1")
        assert (shown["container_id"], shown["role"], shown["address"]) == (
            "client",
            "receiver",
            "q",
        )
        assert (shown["unsettled"], shown["remaining_ms"]) == (2, 50_000)
        assert shown["expiry_policy"] == CONNECTION_CLOSE
        assert isinstance(shown["bytes"], int)
        assert shown["bytes"] > 0


async def test_a_suspended_sender_is_shown(tmp_path: Path) -> None:
    broker = site()
    async with api_of(tmp_path, broker=broker) as api:
        client = broker.session()
        target = Target(address="q", expiry_policy=CONNECTION_CLOSE)
        client.attach_sender(target=target, rcv_settle_mode=RCV_SECOND)
        client.transfer()
        client.send(Detach(handle=0))
        shown = await api.get("/suspended-links/1")
        assert (shown["role"], shown["unsettled"], shown["remaining_ms"]) == ("sender", 1, None)


async def test_an_operator_ends_a_suspended_link(tmp_path: Path) -> None:
    broker = site()
    async with api_of(tmp_path, broker=broker) as api:
        client = holding(2, broker=broker)
        client.hang_up()
        assert (await api.ask("DELETE", "/suspended-links/1")).status == 204
        assert counts(client) == (2, 0)
        assert await api.names("/suspended-links") == []
        assert problem(await api.ask("DELETE", "/suspended-links/1"))["status"] == 404
