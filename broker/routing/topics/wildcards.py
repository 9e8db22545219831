"""Subscribers to topics by pattern, to existing topics and to those created later (DST-06)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.addresses import durability, pattern
from broker.routing.addresses.address import words_part
from broker.routing.topics.binding import Binding
from broker.routing.topics.trie import Trie

if TYPE_CHECKING:
    from broker.routing.entries.filter import ConsumerFilter
    from broker.routing.queues.queue import Queue


@final
class Wildcard:
    """A queue to be bound, with `key` and `filter`, to every topic that pattern `names` matches.

    Only topics of one class count, whose prefix is `begins` (DST-10); it is empty for no class.
    """

    def __init__(
        self, names: Binding, key: str, wanted: ConsumerFilter | None, *, begins: str = ""
    ) -> None:
        self.begins: Final = begins
        self.names: Final = names
        self.key: Final = key
        self.filter: Final = wanted
        self.start: Final = _start(names.words)

    def takes(self, name: str) -> bool:
        """Return whether the pattern covers a topic of that name."""
        words = words_part(name)
        return (
            words.startswith(self.start)
            and durability.beginning(name) == self.begins
            and pattern.matches(self.names.words, pattern.words_of(words))
        )

    def binding(self) -> Binding:
        """Return a new binding of the queue, for one of the topics."""
        return Binding(self.names.queue, self.key, self.filter)


@final
class Wildcards:
    """The patterns of subscribers, one per queue. A new topic asks here for its bindings."""

    def __init__(self) -> None:
        self._trie: Final = Trie()
        self._of: Final[dict[Queue, Wildcard]] = {}

    def count(self) -> i64:
        return i64(len(self._of))

    def has(self, queue: Queue) -> bool:
        """Return whether `queue` has a pattern, and so outlives the topics it is bound to."""
        return queue in self._of

    def add(self, wildcard: Wildcard) -> None:
        """Add a pattern. Its queue must have none yet."""
        names = wildcard.names
        self._of[names.queue] = wildcard
        self._trie.add(names.words, names)

    def remove(self, queue: Queue) -> bool:
        """Remove the pattern of `queue`; False if it had none."""
        wildcard = self._of.pop(queue, None)
        if wildcard is None:
            return False
        self._trie.remove(wildcard.names.words, wildcard.names)
        return True

    def bindings_of(self, name: str) -> list[Binding]:
        """Return the bindings for a new topic of that name."""
        begins = durability.beginning(name)
        found: list[Binding] = []
        for node in self._trie.match(pattern.words_of(words_part(name))):
            for names in node.bindings:
                wildcard = self._of[names.queue]
                if wildcard.begins == begins:
                    found.append(wildcard.binding())
        return found


def _start(words: list[str]) -> str:
    """Return the beginning of all names that `words` match, to rule out most others cheaply."""
    first: list[str] = []
    for word in words:
        if word in (pattern.ONE, pattern.MANY):
            break
        first.append(word)
    return pattern.SEPARATOR.join(first)
