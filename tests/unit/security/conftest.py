"""Fixtures of the tests of users and passwords."""

import pytest


@pytest.fixture(autouse=True)
def verifiers_once() -> None:
    """Make verifiers anew each time, as the broker does."""
