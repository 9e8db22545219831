"""A broker on a free port of the loopback interface, in the test's own event loop."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.app import App
from broker.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(port=0, users_file=tmp_path / "users", stall_timeout_ms=100)


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    running = App(settings)
    await running.start()
    yield running
    await running.stop()
