"""What unit tests share: no setting of whoever runs them gets in."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_broker_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("JMS_BROKER_")]:
        monkeypatch.delenv(name)
