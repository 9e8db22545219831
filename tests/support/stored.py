"""The content of a store, read from outside."""

from storage.api import Store
from storage.records import StoredMessage


async def stored_messages(store: Store, queue: str) -> list[StoredMessage]:
    """Return the stored messages of `queue` in their order."""
    held: list[StoredMessage] = []
    while part := await store.messages(int(held[-1].number) if held else 0):
        held += part
    return sorted(
        (message for message in held if message.queue == queue),
        key=lambda message: int(message.position),
    )
