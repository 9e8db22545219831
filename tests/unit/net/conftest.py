"""A broker on a free port of the loopback interface, in the test's own event loop."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.app import App
from broker.settings import MEMORY, Settings


@pytest.fixture
def stall_timeout_ms() -> int:
    """Return a time-out in ms that does not cut off any test because the machine is busy."""
    return 60_000


@pytest.fixture
def settings(tmp_path: Path, stall_timeout_ms: int) -> Settings:
    return Settings(
        port=0, users_file=tmp_path / "users", store=MEMORY, stall_timeout_ms=stall_timeout_ms
    )


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    running = App(settings)
    await running.start()
    yield running
    await running.stop()
