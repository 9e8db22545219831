"""Fixtures of the scenarios."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def heap() -> Iterator[None]:
    """Switch the cyclic garbage collector off and hide all objects that exist now from it.

    It then runs only if a test calls it, and looks only at objects made since. They stay hidden: to
    look at them again before each test would take seconds.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
