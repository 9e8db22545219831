"""Open transactions as an operator sees them, and their rollback."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from broker.amqp.performatives import Detach
from broker.management.transactions import ROLLED_BACK
from broker.security.identity import ADMIN
from tests.support.access import OWNER, RuledUsers
from tests.support.api import PASSWORD, api_of, problem
from tests.support.broker import Broker
from tests.support.transactions import Controller

pytestmark = pytest.mark.requirement("OPS-01")


def site() -> Broker:
    users = RuledUsers({"": {ADMIN}})
    users.passwords = {OWNER: PASSWORD}
    return Broker(authenticator=users)


async def test_a_transaction_is_shown_with_its_size_and_time(tmp_path: Path) -> None:
    broker = site()
    async with api_of(tmp_path, broker=broker) as api:
        assert await api.names("/transactions") == []
        controller = Controller(broker, "shop")
        controller.client.attach_sender("q")
        txn_id = controller.declare()
        assert await api.names("/transactions") == [txn_id.hex()]
        (identity,) = await api.names("/transactions", "identity")
        path = f"/transactions/{quote(str(identity), safe='')}"
        declared = await api.get(path)
        assert (declared["operations"], declared["bytes"], declared["remaining_ms"]) == (0, 0, 0)
        controller.post(txn_id)
        broker.advance(1000)
        begun = await api.get(path)
        assert (begun["container_id"], begun["operations"]) == ("shop", 1)
        assert isinstance(begun["bytes"], int)
        assert begun["bytes"] > 0
        limit_ms = int(broker.container.limits.transaction_timeout_ms)
        assert begun["remaining_ms"] == limit_ms - 1000
        connection = begun["connection"]
        assert await api.names(f"/transactions?connection={connection}") == [txn_id.hex()]
        assert await api.names("/transactions?connection=99") == []
        controller.commit(txn_id)
        assert await api.names("/transactions") == []
        assert (await api.ask("GET", path)).status == 404


async def test_a_transaction_is_rolled_back(tmp_path: Path) -> None:
    broker = site()
    async with api_of(tmp_path, broker=broker) as api:
        controller = Controller(broker, "shop")
        controller.client.attach_sender("q")
        controller.post(controller.declare())
        (identity,) = await api.names("/transactions", "identity")
        path = f"/transactions/{quote(str(identity), safe='')}"
        assert (await api.ask("DELETE", path)).status == 204
        detached = controller.client.expect(Detach)
        assert detached.error is not None
        assert detached.error.description == ROLLED_BACK
        assert await api.names("/transactions") == []
        assert int(broker.router.queues["q"].backlogs.waiting) == 0
        assert problem(await api.ask("DELETE", path))["status"] == 404
