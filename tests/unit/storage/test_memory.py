"""Behaviour of the memory store alone; `tests/contract` has what all stores share."""

from storage.batch import Batch
from storage.memory import MemoryStore
from storage.records import StoredMessage
from tests.support.stored import stored_messages


def test_it_needs_no_waiting() -> None:
    store = MemoryStore()
    assert store.name == "memory"
    assert store.commits_at_once


async def test_it_forgets_with_the_process() -> None:
    store = MemoryStore()
    batch = Batch()
    message = StoredMessage(
        number=1,
        queue="q",
        position=1,
        encoded=b"x",
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=0,
        deliver_at_ms=0,
        delivery_count=0,
    )
    batch.append(message)
    store.commit_now(batch)
    assert await stored_messages(store, "q") == [message], "the very object: nothing was written"
    assert await stored_messages(MemoryStore(), "q") == []
