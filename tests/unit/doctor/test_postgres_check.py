"""The doctor's check of a PostgreSQL server: settings that lose messages, and no server."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("asyncpg")

from broker.doctor.finding import FAIL, OK
from broker.doctor.postgres_check import server_settings
from tests.support import postgres


@pytest.mark.requirement("OPS-13")
def test_the_settings_of_a_session_that_loses_messages() -> None:
    server = postgres.server()
    url = server.url("postgres")
    assert server_settings(url).level == OK
    alter = "ALTER ROLE postgres {} synchronous_commit"
    asyncio.run(server.sql(alter.format("SET") + " = off"))
    try:
        found = server_settings(url)
    finally:
        asyncio.run(server.sql(alter.format("RESET")))
    assert found.level == FAIL
    assert "synchronous_commit is off" in found.finding
    assert postgres.PASSWORD not in found.finding + found.remedy


def test_no_server() -> None:
    found = server_settings("postgresql://ann:secret@127.0.0.1:1/none")
    assert found.level == FAIL
    assert "cannot be reached" in found.finding
    assert "secret" not in found.finding
