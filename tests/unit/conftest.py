"""Fixtures of all unit tests: the environment's broker settings do not reach them."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def no_broker_variables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as variables:
        for name in [name for name in os.environ if name.upper().startswith("JMS_BROKER_")]:
            variables.delenv(name)
        yield
