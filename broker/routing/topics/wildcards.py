"""Subscribers of topics by pattern: of those that exist, and of those that come (DST-06)."""

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
    """A queue is to be bound, with `key` and `filter`, to every topic of which `names` says so.

    Of those topics whose addresses begin so: of one class (DST-10), or of none.
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
        """Whether a topic of that name is meant."""
        words = words_part(name)
        return (
            words.startswith(self.start)
            and durability.beginning(name) == self.begins
            and pattern.matches(self.names.words, pattern.words_of(words))
        )

    def binding(self) -> Binding:
        """What one of the topics gets."""
        return Binding(self.names.queue, self.key, self.filter)


@final
class Wildcards:
    """The patterns of subscribers, one a queue. A topic that is made asks for its bindings."""

    def __init__(self) -> None:
        self._trie: Final = Trie()
        self._of: Final[dict[Queue, Wildcard]] = {}

    def count(self) -> i64:
        return i64(len(self._of))

    def has(self, queue: Queue) -> bool:
        """Whether `queue` goes on without any of the topics it is bound to."""
        return queue in self._of

    def add(self, wildcard: Wildcard) -> None:
        """The first of its queue."""
        names = wildcard.names
        self._of[names.queue] = wildcard
        self._trie.add(names.words, names)

    def remove(self, queue: Queue) -> bool:
        """`queue` has no pattern any more; False where it had none."""
        wildcard = self._of.pop(queue, None)
        if wildcard is None:
            return False
        self._trie.remove(wildcard.names.words, wildcard.names)
        return True

    def bindings_of(self, name: str) -> list[Binding]:
        """What a new topic of that name is bound to."""
        begins = durability.beginning(name)
        found: list[Binding] = []
        for node in self._trie.match(pattern.words_of(words_part(name))):
            for names in node.bindings:
                wildcard = self._of[names.queue]
                if wildcard.begins == begins:
                    found.append(wildcard.binding())
        return found


def _start(words: list[str]) -> str:
    """How every name begins that `words` stand for: most are told apart by that."""
    first: list[str] = []
    for word in words:
        if word in (pattern.ONE, pattern.MANY):
            break
        first.append(word)
    return pattern.SEPARATOR.join(first)
