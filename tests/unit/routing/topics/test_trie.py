"""The patterns that match a key, and the number of nodes visited to find them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.routing.addresses.pattern import words_of
from broker.routing.queues.queue import Queue
from broker.routing.topics.binding import Binding
from broker.routing.topics.trie import Trie
from tests.support.routing import Routing
from tests.support.topics import KEYS, PATTERNS, stands_for

pytestmark = pytest.mark.requirement("DST-06")


@pytest.fixture(scope="module")
def queue() -> Queue:
    return Routing().queue()


def filled(queue: Queue, *patterns: str) -> tuple[Trie, list[Binding]]:
    trie = Trie()
    bindings = [Binding(queue, each) for each in patterns]
    for each in bindings:
        trie.add(each.words, each)
    return trie, bindings


def found(trie: Trie, key: str) -> list[str]:
    return [binding.key for node in trie.match(words_of(key)) for binding in node.bindings]


@given(patterns=st.lists(PATTERNS.filter(bool), max_size=8), keys=st.lists(KEYS, max_size=4))
def test_it_finds_each_pattern_once(queue: Queue, patterns: list[str], keys: list[str]) -> None:
    trie, bindings = filled(queue, *patterns)
    for key in keys:
        expected = sorted(each for each in patterns if stands_for(each, key))
        assert sorted(found(trie, key)) == expected
    kept = bindings[: len(bindings) // 2]
    for binding in bindings[len(kept) :]:
        trie.remove(binding.words, binding)
    for key in keys:
        expected = sorted(each.key for each in kept if stands_for(each.key, key))
        assert sorted(found(trie, key)) == expected
    for binding in kept:
        trie.remove(binding.words, binding)
    assert trie.is_empty()


def test_what_is_not_there_can_be_taken_out(queue: Queue) -> None:
    trie, _ = filled(queue, "a.b")
    for other in ("a.b", "a.*", "b", "a.b.c"):
        binding = Binding(queue, other)
        trie.remove(binding.words, binding)
    assert found(trie, "a.b") == ["a.b"]


@pytest.mark.parametrize("others", [1000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_patterns_that_do_not_match_cost_nothing(queue: Queue, others: int) -> None:
    """The number of nodes visited is the same as with only the two patterns that match."""
    kept = ["stock.eu.*", "#.x"]
    trie, _ = filled(queue, *kept)
    assert found(trie, "stock.eu.x") == ["stock.eu.*", "#.x"]
    few = trie.visited
    for number in range(others // 2):
        for each in (f"stock.us.{number}.*", f"place{number}.#"):
            binding = Binding(queue, each)
            trie.add(binding.words, binding)
    assert found(trie, "stock.eu.x") == ["stock.eu.*", "#.x"]
    assert trie.visited == few < 10


def test_hashes_on_a_long_key_are_bounded(queue: Queue) -> None:
    """The worst case of two `#`: each node is visited once per word, never per rest of the key."""
    patterns = [f"#.a.{'*.' * stars}#.z" for stars in range(14)]
    trie, _ = filled(queue, *patterns)
    nodes = sum(len(words_of(each)) for each in patterns)
    assert found(trie, ".".join(["a"] * 32)) == []
    assert 0 < trie.visited <= nodes * 33
    assert len(found(trie, ".".join(["a"] * 31 + ["z"]))) == 14
