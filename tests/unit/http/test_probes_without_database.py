"""A broker is not ready while its database does not answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker.app import App
from broker.settings import given_settings
from storage.sql.postgresql import store as postgres_store
from tests.support import postgres
from tests.support.postgres_proxy import Proxy
from tests.unit.http.test_probes import state_of
from tests.unit.storage.sql.postgresql.test_store import batch_of


@pytest.mark.requirement("OPS-03")
async def test_a_broker_whose_database_does_not_answer_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "SLOW_S", 0)
    server = postgres.server()
    async with Proxy(server) as proxy:
        url = proxy.url(server.database())
        app = App(given_settings(port=0, users_file=tmp_path / "u", store=url, http={"port": 0}))
        await app.start()
        assert state_of(app) == ([], True)
        proxy.lose_requests = True
        committing = asyncio.create_task(app.store.commit(batch_of(1)))
        await proxy.lost.wait()
        assert state_of(app) == (["the store is away"], True)
        proxy.cut()
        await committing
        assert state_of(app) == ([], True)
        await app.stop()
