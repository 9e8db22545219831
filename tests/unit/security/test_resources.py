"""Kinds, verbs and texts of resources."""

from __future__ import annotations

import pytest

from broker.security.resources import (
    ALL_VERBS,
    NAMES,
    OWNED_VERBS,
    VERB_SETS,
    VERBS,
    Resource,
    ResourceError,
    names_with,
    resource_of,
)


def test_sets_of_verbs_have_verbs_of_queues() -> None:
    for verbs in VERB_SETS.values():
        assert set(verbs) <= set(VERBS["queue"])
    assert len(set(ALL_VERBS)) == len(ALL_VERBS)


def test_kinds_with_closed_lists_have_verbs() -> None:
    assert set(NAMES) < set(VERBS)
    assert set(OWNED_VERBS) & set(VERBS["temporary"]) == {"receive"}, "a rule gives no other"
    assert names_with("temporary", "receive") == ("dynamic",)
    assert names_with("temporary", "send") == ("queue", "topic")
    assert names_with("management", "view") == NAMES["management"]


TEXTS = [
    pytest.param(Resource("queue", "orders.new"), "queue:orders.new", id="queue"),
    pytest.param(Resource("topic", "news", "eu"), "topic:news/eu", id="topic with a key"),
    pytest.param(Resource("subscription", "c/1", "x"), "subscription:c/1/x", id="subscription"),
    pytest.param(Resource("subscription", "c", ""), "subscription:c/", id="without a name"),
]


@pytest.mark.parametrize(("resource", "expected"), TEXTS)
def test_the_text_of_a_resource(resource: Resource, expected: str) -> None:
    assert resource.text() == expected


READ = [
    pytest.param("queue:a/b", "send", ("queue", "a/b", "", False), id="a queue with a slash"),
    pytest.param("topic:a/b.c", "send", ("topic", "a", "b.c", False), id="topic and key"),
    pytest.param("topic:a.*", "subscribe", ("topic", "a.*", "", True), id="a pattern"),
    pytest.param(
        "subscription:c/a/b", "use", ("subscription", "c", "a/b", False), id="name with /"
    ),
    pytest.param("management:*", "view", ("management", "*", "", False), id="all of management"),
    pytest.param("temporary:queue", "receive", ("temporary", "queue", "", False), id="temporary"),
    pytest.param("temporary:dynamic", "receive", ("temporary", "dynamic", "", False), id="dynamic"),
]


@pytest.mark.parametrize(("text", "verb", "expected"), READ)
def test_a_resource_is_read(text: str, verb: str, expected: tuple[str, str, str, bool]) -> None:
    found = resource_of(text, verb)
    assert (found.kind, found.name, found.key, found.is_pattern) == expected


WRONG = [
    pytest.param("orders", "send", "write KIND:NAME", id="no kind"),
    pytest.param("table:x", "send", "write KIND:NAME", id="an unknown kind"),
    pytest.param("queue:", "send", "lacks a name", id="no name"),
    pytest.param("queue:x", "subscribe", "queue has no verb 'subscribe', only: send", id="verb"),
    pytest.param("management:all", "view", "only: queues, topics", id="an unknown name"),
    pytest.param("subscription:x", "use", "subscription:CLIENT/NAME", id="no client id"),
]


@pytest.mark.parametrize(("text", "verb", "told"), WRONG)
def test_a_text_that_is_no_resource(text: str, verb: str, told: str) -> None:
    with pytest.raises(ResourceError) as raised:
        resource_of(text, verb)
    assert told in str(raised.value)
