"""Fixtures of the scenarios."""

import gc
from collections.abc import Iterator

import pytest

from tests.support.healthy import NoHarm


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


@pytest.fixture
def no_harm() -> Iterator[NoHarm]:
    """Return what a test of an attack proves its harmlessness with; it must have done so."""
    proof = NoHarm()
    yield proof
    assert proof.was_asked, "no healthy client was served beside the attack"
