"""Application-properties added to encoded messages, and removed from them."""

import pytest

from broker.amqp.errors import Fault
from broker.amqp.sections import split
from broker.amqp.types import Int
from broker.routing.entries.application_properties import with_properties
from broker.routing.selector import parse_selector
from tests.support.frames import message
from tests.support.routing import new_message

NONE: frozenset[str] = frozenset()

MESSAGES = {
    "without any": message(b"body"),
    "behind annotations": message(b"body", annotations={"x-opt-a": 1}),
    "behind annotations and properties": message(b"body", to="q", annotations={"x-opt-a": 1}),
}


@pytest.mark.parametrize("encoded", MESSAGES.values(), ids=MESSAGES.keys())
def test_properties_are_added_and_taken_out_again(encoded: bytes) -> None:
    changed = with_properties(encoded, [("a", "x"), ("b", Int(2))], without=NONE)
    assert parse_selector("a = 'x' AND b = 2").matches(new_message(changed))
    sections, before = split(changed, 0, len(changed)), split(encoded, 0, len(encoded))
    assert changed[sections.body :] == encoded[before.body :]
    assert with_properties(changed, [], without=frozenset({"a", "b"})) == encoded


def test_a_senders_own_stay_but_for_those_of_the_same_names() -> None:
    encoded = message(properties={"own": "kept", "a": "theirs"})
    changed = with_properties(encoded, [("a", "ours")], without=frozenset({"a"}))
    assert parse_selector("own = 'kept' AND a = 'ours'").matches(new_message(changed))
    left = with_properties(changed, [], without=frozenset({"a"}))
    assert left == message(properties={"own": "kept"})


def test_a_message_without_a_body_at_hand() -> None:
    """The body of a large message is stored elsewhere."""
    encoded = message(to="q")
    before = split(encoded, 0, len(encoded)).body
    changed = with_properties(encoded[:before], [("a", "x")], without=NONE)
    assert with_properties(changed, [], without=frozenset({"a"})) == encoded[:before]


def test_what_cannot_be_read_is_a_fault() -> None:
    with pytest.raises(Fault):
        with_properties(b"\x00\x53\x74\xc1\x04\x02\xa1\x01a", [("a", "x")], without=NONE)
    with pytest.raises(Fault):
        with_properties(b"\x00\x53\x74\x45", [("a", "x")], without=NONE)
