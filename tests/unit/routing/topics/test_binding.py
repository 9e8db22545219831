"""Bindings: which subscriptions get a message, by key and filter, each once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.message import Message, Origin
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.errors import InvalidAddress
from broker.routing.queues.queue import Queue
from broker.routing.topics.binding import Binding, Bindings, key_words
from tests.support.encoded import NULL, listed, section, string
from tests.support.routing import Routing
from tests.support.topics import KEYS, PATTERNS, stands_for

pytestmark = pytest.mark.requirement("DST-05")


def keyed(key: str = "", *, subject: str = "", publisher: str = "") -> Message:
    encoded = bytes.fromhex(section(0x73, listed(NULL, NULL, NULL, string(subject))))
    return Message(
        encoded=encoded if subject else b"",
        durable=False,
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=0,
        origin=Origin(publisher, key),
    )


@pytest.fixture(scope="module")
def queues() -> list[Queue]:
    routing = Routing()
    return [routing.queue(name) for name in "abcdef"]


def bound(*bindings: Binding) -> Bindings:
    all_of_them = Bindings()
    for each in bindings:
        all_of_them.add(each)
    return all_of_them


def names(found: list[Queue]) -> str:
    return "".join(queue.address for queue in found)


def test_without_keys_everybody_gets_everything(queues: list[Queue]) -> None:
    a, b, c, *_ = queues
    bindings = bound(Binding(a), Binding(b, "#"), Binding(c, "#.#"))
    assert not bindings.are_selective
    assert names(bindings.queues) == names(bindings.matching(keyed("x"))) == "abc"


def test_a_subscriber_without_a_key_gets_everything(queues: list[Queue]) -> None:
    a, b, c, *_ = queues
    bindings = bound(Binding(a, "x.*"), Binding(b), Binding(c, "y"))
    assert bindings.are_selective
    assert names(bindings.matching(keyed("x.y"))) == "ba"
    assert names(bindings.matching(keyed("y"))) == "bc"
    assert names(bindings.matching(keyed())) == "b"


def test_a_queue_gets_a_message_once_whatever_it_is_bound_with(queues: list[Queue]) -> None:
    a, b, *_ = queues
    bindings = bound(
        Binding(a, "x.*"), Binding(a, "#.y"), Binding(b, "#.x.#"), Binding(b), Binding(b, "x.y")
    )
    assert names(bindings.matching(keyed("x.y"))) == "ba"
    assert names(bindings.queues) == "ab"
    assert (bindings.count(a), bindings.count(b)) == (2, 3)


KEYS_OF_MESSAGES = {
    "the address's": (keyed("a.b", subject="c"), ["a", "b"]),
    "else the subject": (keyed(subject="c.d"), ["c", "d"]),
    "else none": (keyed(), []),
    "a subject of too many words": (keyed(subject="." * 32), []),
    "a subject that looks like a pattern": (keyed(subject="*.#"), ["*", "#"]),
}


@pytest.mark.parametrize(
    ("message", "expected"), KEYS_OF_MESSAGES.values(), ids=KEYS_OF_MESSAGES.keys()
)
def test_the_key_of_a_message(message: Message, expected: list[str]) -> None:
    assert key_words(message) == expected


def test_a_subject_of_more_than_255_characters_is_no_key() -> None:
    subject = bytes.fromhex("b100000100") + b"x" * 256
    fields = b"\x40\x40\x40" + subject
    encoded = b"\x00\x53\x73\xd0" + (len(fields) + 4).to_bytes(4) + b"\0\0\0\x04" + fields
    long = Message(
        encoded=encoded, durable=False, priority=4, ttl_ms=-1, arrived_ms=0, expires_at_ms=0
    )
    assert (len(long.subject()), key_words(long)) == (256, [])


@given(
    patterns=st.lists(st.tuples(st.integers(0, 5), PATTERNS), max_size=12),
    keys=st.lists(KEYS, min_size=1, max_size=4),
    gone=st.sets(st.integers(0, 5)),
)
def test_it_is_as_if_each_binding_were_asked(
    queues: list[Queue], patterns: list[tuple[int, str]], keys: list[str], gone: set[int]
) -> None:
    bindings = bound(*[Binding(queues[at], text) for at, text in patterns])
    for at in gone:
        bindings.remove(queues[at])
    left = [(at, text or "#") for at, text in patterns if at not in gone]
    for key in keys:
        expected = {queues[at].address for at, text in left if stands_for(text, key)}
        found = bindings.matching(keyed(key))
        assert sorted(names(found)) == sorted(expected)


def test_filters_judge_once_for_all_who_have_them(queues: list[Queue]) -> None:
    a, b, c, d, *_ = queues
    bindings = bound(
        Binding(a, "", ConsumerFilter(None, "me")),
        Binding(b, "x", ConsumerFilter(None, "me")),
        Binding(c, "#.x", ConsumerFilter(None, "me")),
        Binding(d),
    )
    (gate,) = bindings.gates.values()
    assert names(bindings.matching(keyed("x", publisher="me"))) == "d"
    assert gate.judged == 1
    assert sorted(names(bindings.matching(keyed("x", publisher="you")))) == list("abcd")
    assert gate.judged == 2
    for queue in (a, b, c):
        bindings.remove(queue)
    assert not bindings.gates
    assert not bindings.are_selective


def test_filters_are_asked_only_of_messages_with_the_right_key(queues: list[Queue]) -> None:
    bindings = bound(Binding(queues[0], "x", ConsumerFilter(None, "me")))
    (gate,) = bindings.gates.values()
    assert bindings.matching(keyed("y", publisher="you")) == []
    assert gate.judged == 0


SAME = {
    "the same": ("x.*", None, "x.*", None, True),
    "the same meaning": ("#.*", None, "*.#", None, True),
    "no key, and every key": ("", None, "#", None, True),
    "another key": ("x", None, "y", None, False),
    "an equal filter": ("", ConsumerFilter(None, "c"), "", ConsumerFilter(None, "c"), True),
    "another filter": ("", ConsumerFilter(None, "c"), "", ConsumerFilter(None, "d"), False),
    "a filter and none": ("", ConsumerFilter(None, "c"), "", None, False),
}


@pytest.mark.parametrize(
    ("key", "wanted", "other_key", "other_wanted", "expected"), SAME.values(), ids=SAME.keys()
)
def test_two_bindings_of_a_queue_are_like(
    queues: list[Queue],
    key: str,
    wanted: ConsumerFilter | None,
    other_key: str,
    other_wanted: ConsumerFilter | None,
    expected: bool,
) -> None:
    one = Binding(queues[0], key, wanted)
    other = Binding(queues[0], other_key, other_wanted)
    assert one.is_like(other) is expected
    assert bound(one).has(other) is expected
    assert not one.is_like(Binding(queues[1], key, wanted))


def test_a_key_that_is_no_pattern_binds_nothing(queues: list[Queue]) -> None:
    with pytest.raises(InvalidAddress):
        Binding(queues[0], "#.#.#")
