"""Contents of large messages: bodies that a store keeps in chunks, apart from their messages.

A content has a number of its own, which the broker assigns. Its chunks are written as they
arrive, in commits before that of the message; several messages may share one content.
"""

from typing import Final, final

CHUNK_SIZE: Final = 256 * 1024
"""Bytes of each chunk of a content, except the last, which may be shorter."""

CHUNKS_MAX: Final = 1 << 16
"""Maximum chunks of a content, exclusive: 16 GiB, more than any message has."""


@final
class ContentChanges:
    """Content changes of one `Batch`. Few batches have any, so a batch creates this on demand.

    A content that is `held` keeps its chunks even if no stored message has it: the broker is
    writing it, sending it, or keeps a message that is in no store. Each hold is let go once.
    """

    def __init__(self) -> None:
        self.chunks: Final[list[tuple[int, int, bytes]]] = []
        self.held: Final[list[int]] = []
        self.let_go: Final[list[int]] = []
        self.quarantined: Final[list[tuple[int, str]]] = []
        """Numbers of messages whose contents are damaged, each with the reason."""

    def write(self, content: int, index: int, data: bytes) -> None:
        """Add the chunk `index` of `content`."""
        self.chunks.append((content, index, data))


@final
class ContentUses:
    """Uses of contents: by messages, known by their numbers, and by the broker itself.

    Contents without uses are in `garbage`, in the order in which they became unused. The caller
    that deletes the chunks of a content removes it from there.
    """

    def __init__(self) -> None:
        self.garbage: Final[list[int]] = []
        self._of: Final[dict[int, tuple[int, str]]] = {}
        self._uses: Final[dict[int, int]] = {}

    def content_of(self, message: int) -> int | None:
        """Return the number of the content that a message has, None if it has none."""
        found = self._of.get(message)
        return None if found is None else found[0]

    def any(self) -> bool:
        """Return whether any message has a content."""
        return bool(self._of)

    def add(self, message: int, content: int, queue: str) -> None:
        """Note that a message of `queue` uses the content."""
        self._of[message] = (content, queue)
        self.hold(content)

    def hold(self, content: int) -> None:
        """Count one more use of the content."""
        self._uses[content] = self._uses.get(content, 0) + 1

    def let_go(self, content: int) -> None:
        """Count one use less of the content; without uses it becomes garbage."""
        left = self._uses[content] - 1
        if left > 0:
            self._uses[content] = left
            return
        del self._uses[content]
        self.garbage.append(content)

    def remove(self, messages: list[int]) -> list[int]:
        """Note that messages are gone. Return those of them that had a content."""
        had = [message for message in messages if message in self._of] if self._of else []
        for message in had:
            content, _ = self._of.pop(message)
            self.let_go(content)
        return had

    def remove_queue(self, queue: str) -> list[int]:
        """Note that a queue is gone with its messages. Return those that had a content."""
        return self.remove([message for message, (_, of) in self._of.items() if of == queue])
