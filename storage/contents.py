"""Contents of large messages: bodies that a store keeps in chunks, apart from their messages.

A content has a number of its own, which the broker gives. Its chunks are written as they
come, in commits before that of the message; several messages may have it in common.
"""

from typing import Final, final

CHUNK_SIZE: Final = 256 * 1024
"""All chunks of a content have this many bytes, but for the last."""

CHUNKS_MAX: Final = 1 << 16
"""A content has fewer chunks than this: 16 GiB, which no message has."""


@final
class ContentChanges:
    """What a batch has to do with contents. Few have, so a batch makes one when it is asked to.

    A content that is `held` keeps its chunks though no message has it: the broker is
    writing it, sending it, or keeps a message that is in no store. Each hold is let go once.
    """

    def __init__(self) -> None:
        self.chunks: Final[list[tuple[int, int, bytes]]] = []
        self.held: Final[list[int]] = []
        self.let_go: Final[list[int]] = []
        self.quarantined: Final[list[tuple[int, str]]] = []
        """Messages whose contents are damaged, by their numbers, and in what way."""

    def write(self, content: int, index: int, data: bytes) -> None:
        """Keep a chunk of a content."""
        self.chunks.append((content, index, data))


@final
class ContentUses:
    """Who uses which content: messages by their numbers, and the broker itself.

    What nobody uses any more is `garbage`, in the order in which it became that. Whoever
    deletes its chunks takes it out there.
    """

    def __init__(self) -> None:
        self.garbage: Final[list[int]] = []
        self._of: Final[dict[int, tuple[int, str]]] = {}
        self._uses: Final[dict[int, int]] = {}

    def content_of(self, message: int) -> int | None:
        """The number of the content that a message has."""
        found = self._of.get(message)
        return None if found is None else found[0]

    def any(self) -> bool:
        """Whether any message has a content."""
        return bool(self._of)

    def add(self, message: int, content: int, queue: str) -> None:
        """A message of `queue` has the content."""
        self._of[message] = (content, queue)
        self.hold(content)

    def hold(self, content: int) -> None:
        """One more use."""
        self._uses[content] = self._uses.get(content, 0) + 1

    def let_go(self, content: int) -> None:
        """One use less."""
        left = self._uses[content] - 1
        if left > 0:
            self._uses[content] = left
            return
        del self._uses[content]
        self.garbage.append(content)

    def remove(self, messages: list[int]) -> list[int]:
        """Messages are gone; those of them that had a content."""
        had = [message for message in messages if message in self._of] if self._of else []
        for message in had:
            content, _ = self._of.pop(message)
            self.let_go(content)
        return had

    def remove_queue(self, queue: str) -> list[int]:
        """A queue is gone with its messages; those of them that had a content."""
        return self.remove([message for message, (_, of) in self._of.items() if of == queue])
