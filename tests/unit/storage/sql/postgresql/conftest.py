"""A PostgreSQL server, and an empty database in it."""

from __future__ import annotations

import pytest

from tests.support import postgres


@pytest.fixture
def server() -> postgres.Server:
    return postgres.server()


@pytest.fixture
def database(server: postgres.Server) -> str:
    return server.database()
