"""What unit tests share: no setting of whoever runs them gets in."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def no_broker_variables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as variables:
        for name in [name for name in os.environ if name.upper().startswith("JMS_BROKER_")]:
            variables.delenv(name)
        yield
