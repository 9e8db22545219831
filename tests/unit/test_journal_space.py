"""The bytes and memory of changes that are not yet on the disk."""

from broker.journal import PAGE_BYTES_MAX
from tests.unit.test_journal import Awaited, append, settle


async def test_what_is_not_on_the_disk_is_counted() -> None:
    awaited = Awaited()
    assert awaited.journal.unwritten_bytes() == 0
    append(awaited.journal, 1, b"12345")
    awaited.journal.flush()
    await settle()
    assert awaited.journal.unwritten_bytes() == 5, "under way"
    append(awaited.journal, 2, bytes(PAGE_BYTES_MAX + 1))
    awaited.journal.flush()
    append(awaited.journal, 3, b"123")
    assert awaited.journal.unwritten_bytes() == 5 + PAGE_BYTES_MAX + 1 + 3, "full, and open"
    assert awaited.journal.unwritten_memory() > awaited.journal.unwritten_bytes()
    awaited.journal.flush()
    for _ in range(3):
        awaited.store.let_through()
        await settle()
    assert awaited.journal.unwritten_bytes() == awaited.journal.unwritten_memory() == 0
    awaited.journal.close()
    await awaited.running
