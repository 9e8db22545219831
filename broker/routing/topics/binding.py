"""Selection of a topic's subscriptions that get a message: by its key and by their filters.

A topic keeps subscribers that take every message in one list. The others are in a trie,
by the pattern of their key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.message import Message
from broker.routing.addresses import pattern
from broker.routing.addresses.address import ADDRESS_BYTES_MAX
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.queues.judging import evaluations_in
from broker.routing.selector import Facts
from broker.routing.selector.facts import STEPS_MAX
from broker.routing.topics.trie import Trie

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue

FREE_STEPS: Final[i64] = 200_000
"""Steps for one message that go to those of a topic's filters that ask first: 20 ms, compiled."""

SHARED_STEPS: Final[i64] = 100_000
"""Steps for one message that all filters of a topic have in equal shares, in any order."""

SHARE_MIN: Final[i64] = 100
"""Steps that a filter has in any case: what one evaluation costs is as much as these."""


@final
class FilterGroup:
    """A filter that several bindings share: it is evaluated once per message for all of them.

    `judged` counts the evaluations.
    """

    def __init__(self, wanted: ConsumerFilter) -> None:
        self.filter: Final = wanted
        self.bindings: i64 = 0
        self.judged: i64 = 0
        self._latest: i64 = 0
        self._passes = False

    def passes(self, facts: Facts, number: i64) -> bool:
        """Return whether the message of that `number`, which no other message has, may pass."""
        if self._latest != number:
            self._latest = number
            self.judged += 1
            self._passes = self.filter.admits(facts)
        return self._passes


@final
class Binding:
    """A queue that gets the messages whose key matches its pattern and which pass its filter.

    An empty key matches every key, and filter None passes every message.
    """

    def __init__(self, queue: Queue, key: str = "", wanted: ConsumerFilter | None = None) -> None:
        self.queue: Final = queue
        self.key: Final = key
        self.filter: Final = wanted
        self.words: Final = pattern.normal(pattern.check(key)) if key else [pattern.MANY]
        self.takes_all: Final = wanted is None and self.words == [pattern.MANY]
        self.gate: FilterGroup | None = None

    def is_like(self, other: Binding) -> bool:
        """Return whether both give the same messages to the same queue."""
        return (
            self.queue is other.queue and self.words == other.words and self.filter == other.filter
        )


@final
class Bindings:
    """All bindings of one topic. `queues` has each queue once, in the order of first bindings.

    `are_selective`: `matching` may find fewer queues than these. Of the latest `matching`,
    `price` is what it cost in evaluations, and `given_up` are the filters that took too many steps.
    """

    def __init__(self) -> None:
        self.queues: Final[list[Queue]] = []
        self.are_selective = False
        self.trie: Final = Trie()
        self._of: Final[dict[Queue, list[Binding]]] = {}
        self._unasking: Final[dict[Queue, None]] = {}
        self.gates: Final[dict[ConsumerFilter, FilterGroup]] = {}
        self.price: i64 = 0
        self.given_up: list[ConsumerFilter] = []
        self._messages: i64 = 0
        self._paid: i64 = 0

    def has(self, binding: Binding) -> bool:
        """Return whether there is a binding like `binding`."""
        return any(each.is_like(binding) for each in self._of.get(binding.queue, []))

    def count(self, queue: Queue) -> i64:
        """Return the number of bindings that `queue` has."""
        return i64(len(self._of.get(queue, [])))

    def add(self, binding: Binding) -> None:
        """Add `binding`. The caller has checked with `has` that there is none like it."""
        queue = binding.queue
        held = self._of.get(queue)
        if held is None:
            self._of[queue] = [binding]
            self.queues.append(queue)
        else:
            held.append(binding)
        if binding.takes_all:
            self._unasking[queue] = None
            return
        if binding.filter is not None:
            gate = self.gates.get(binding.filter)
            if gate is None:
                gate = FilterGroup(binding.filter)
                self.gates[binding.filter] = gate
            gate.bindings += 1
            binding.gate = gate
        self.trie.add(binding.words, binding)
        self.are_selective = True

    def remove(self, queue: Queue) -> None:
        """Remove all bindings of `queue`."""
        for binding in self._of.pop(queue, []):
            if not binding.takes_all:
                self._remove_from_trie(binding)
        self._unasking.pop(queue, None)
        if queue in self.queues:
            self.queues.remove(queue)
        self.are_selective = not self.trie.is_empty()

    def _remove_from_trie(self, binding: Binding) -> None:
        self.trie.remove(binding.words, binding)
        gate = binding.gate
        if gate is None:
            return
        gate.bindings -= 1
        if gate.bindings == 0:
            del self.gates[gate.filter]

    def matching(self, message: Message) -> list[Queue]:
        """Return the queues that get `message`, each once, however many of its bindings match.

        The result depends on the message and the bindings alone: it may be asked for twice. So the
        steps of all filters are limited for each message, not for a time.
        """
        self._messages += 1
        self._paid = 0
        if self.given_up:
            self.given_up = []
        found = self._unasking.copy()
        facts = Facts(message)
        visited: i64 = 0
        for node in self.trie.match(key_words(message)):
            visited += i64(len(node.bindings))
            for binding in node.bindings:
                gate = binding.gate
                if gate is None or gate.passes(facts, self._messages):
                    found[binding.queue] = None
                if facts.steps > 0 and gate is not None:
                    self._pay(facts, gate)
        self.price = min(visited, i64(len(self.gates))) + evaluations_in(self._paid) - 1
        return list(found)

    def price_max(self) -> i64:
        """Return what a `matching` costs at most, in evaluations: nothing for keys alone."""
        filters = i64(len(self.gates))
        if filters == 0:
            return 0
        return filters + evaluations_in(FREE_STEPS + SHARED_STEPS + filters * SHARE_MIN)

    def _pay(self, facts: Facts, gate: FilterGroup) -> None:
        """Pay for the steps of `gate`, and limit those of the next filter.

        What a filter has beyond its share depends on those before it. So one that takes few steps
        is evaluated whatever the others take.
        """
        if facts.is_overspent():
            self.given_up.append(gate.filter)
        self._paid += facts.steps
        facts.begin()
        share = max(SHARE_MIN, SHARED_STEPS // i64(len(self.gates)))
        facts.steps_max = min(STEPS_MAX, share + max(0, FREE_STEPS - self._paid))


def key_words(message: Message) -> list[str]:
    """Return the words of a message's key: of its address, else its subject, else none (DST-05).

    A subject that is too long for a key counts as none.
    """
    key = message.key
    if key:
        return pattern.words_of(key)
    subject = message.subject()
    return pattern.words_of(subject) if pattern.is_key(subject, ADDRESS_BYTES_MAX) else []
