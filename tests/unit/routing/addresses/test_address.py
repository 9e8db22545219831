"""Addresses: which texts are valid, and the parts of each."""

import pytest

from broker.routing.addresses import address
from broker.routing.addresses.address import Address
from broker.routing.addresses.durability import Durability
from broker.routing.errors import InvalidAddress, RoutingError

VALID = {
    "one character": "q",
    "the separators of other brokers": "orders/eu.west#1*",
    "spaces": "my queue",
    "255 bytes": "x" * 255,
    "255 bytes of two-byte characters and one more": "ä" * 127 + "x",
}

INVALID = {
    "empty": "",
    "256 bytes": "x" * 256,
    "128 characters of two bytes": "ä" * 128,
    "a line break": "a\nb",
    "a null character": "a\0b",
    "delete": "a\x7fb",
    "half a surrogate pair": "a\ud800",
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID.keys())
def test_a_name_is_an_address(text: str) -> None:
    assert address.check(text) == text


@pytest.mark.attack("S4")
@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID.keys())
def test_not_every_text_is_an_address(text: str) -> None:
    with pytest.raises(InvalidAddress, match="an address"):
        address.check(text)


@pytest.mark.requirement("TMP-01")
def test_addresses_of_temporary_nodes_are_valid_and_all_different() -> None:
    made = {address.new_temporary("queue") for _ in range(1000)}
    assert len(made) == 1000
    assert all(address.is_temporary(address.check(each)) for each in made)


@pytest.mark.requirement("TMP-01")
def test_an_address_of_a_temporary_node_holds_128_random_bits() -> None:
    secret = address.new_temporary("topic").removeprefix("$tmp/topic/")
    assert len(secret) >= 22, "of 6 bits each"


def test_other_addresses_are_not_temporary() -> None:
    assert not address.is_temporary("tmp/queue/1")


NODES = [
    pytest.param("a", "queue", -1, None, id="a plain queue"),
    pytest.param("/queue/durable/a", "queue", -1, None, id="of a class"),
    pytest.param("/queue/durable/a", "topic", -1, "is no topic", id="another kind"),
    pytest.param("a/b", "topic", -1, "has no /", id="a topic with a key"),
    pytest.param("/queue/tmp/a", "queue", -1, "by the connection", id="a connection's own"),
    pytest.param("/queue/tmp/a", "queue", 7, None, id="asked for by a connection"),
]


@pytest.mark.parametrize(("name", "kind", "owner", "told"), NODES)
def test_a_node_can_be_made(name: str, kind: str, owner: int, told: str | None) -> None:
    if told is None:
        address.check_node(address.Address(name, kind), owner=owner)
        return
    with pytest.raises(RoutingError, match=told):
        address.check_node(address.Address(name, kind), owner=owner)


# text, name, key, words, beginning
PARTS = [
    pytest.param("news", "news", "", "news", "", id="a name"),
    pytest.param("news/eu.gold", "news", "eu.gold", "news", "", id="a topic and a key"),
    pytest.param("news/eu/west", "news", "eu/west", "news", "", id="a key with a separator"),
    pytest.param(
        "/topic/durable/news/eu",
        "/topic/durable/news",
        "eu",
        "news",
        "/topic/durable/",
        id="a class",
    ),
    pytest.param("$tmp/topic/abc/eu", "$tmp/topic/abc", "eu", "$tmp/topic/abc", "", id="temporary"),
]


@pytest.mark.requirement("DST-05", "DST-10")
@pytest.mark.parametrize(("text", "name", "key", "words", "begins"), PARTS)
def test_the_parts_of_an_address(text: str, name: str, key: str, words: str, begins: str) -> None:
    parsed = Address(text)
    assert (parsed.text, parsed.name, parsed.key) == (text, name, key)
    assert (parsed.words, parsed.begins) == (words, begins)


# text, capability, kind, durability
KINDS = [
    pytest.param("a", "", "", Durability.PLAIN, id="a plain name says no kind"),
    pytest.param("a", "topic", "topic", Durability.PLAIN, id="the capability says it"),
    pytest.param("/queue/durable/a", "", "queue", Durability.DURABLE, id="the class says it"),
    pytest.param("/topic/tmp/a", "", "topic", Durability.TMP, id="of the class tmp"),
    pytest.param("/queue/durable/a", "topic", "topic", Durability.DURABLE, id="they differ"),
]


@pytest.mark.requirement("DST-01", "DST-10")
@pytest.mark.parametrize(("text", "capability", "kind", "durability"), KINDS)
def test_the_kind_and_the_class_of_an_address(
    text: str, capability: str, kind: str, durability: Durability
) -> None:
    parsed = Address(text, capability)
    assert (parsed.kind, parsed.durability) == (kind, durability)


@pytest.mark.parametrize(
    ("text", "is_pattern"), [("a.*", True), ("#", True), ("a*", False), ("a/*", False)]
)
def test_a_pattern_of_topics_has_a_wildcard_for_a_word(text: str, is_pattern: bool) -> None:
    assert Address(text).is_pattern is is_pattern


def test_the_topic_of_an_address_has_no_key() -> None:
    topic = Address("news/eu").topic()
    assert (topic.text, topic.kind, topic.key) == ("news", "topic", "")
    assert topic.topic() is topic
