"""What the scenarios share."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def heap() -> Iterator[None]:
    """What is there now is out of the collector's sight, and it runs only when told to."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()
