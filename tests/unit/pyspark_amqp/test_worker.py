"""Objects that the garbage collector of a worker process skips."""

import gc
from collections.abc import Iterator

import pytest

from pyspark_amqp.worker import keep_what_is_loaded


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    keep_what_is_loaded.cache_clear()
    yield
    gc.unfreeze()


def is_looked_through(wanted: object) -> bool:
    return any(each is wanted for each in gc.get_objects())


def test_what_is_loaded_is_looked_through_no_more() -> None:
    loaded: list[object] = []
    assert is_looked_through(loaded)

    keep_what_is_loaded()

    assert not is_looked_through(loaded)


def test_what_comes_later_is_looked_through_after_the_next_task_as_well() -> None:
    keep_what_is_loaded()
    later: list[object] = []

    keep_what_is_loaded()

    assert is_looked_through(later)
