"""Patterns of rules: their grammar, variables (Z4), and agreement with routing's patterns."""

from __future__ import annotations

import random

import pytest

from broker.routing.addresses import durability, pattern
from broker.security.patterns import (
    KEY,
    MANY,
    MANY_MAX,
    ONE,
    PATTERN_BYTES_MAX,
    PLAIN,
    STARS_MAX,
    WORDS_MAX,
    PatternError,
    RulePattern,
    Tokens,
    all_but_reserved,
    glob_matches,
    normal,
    parse,
    words_of,
)


def tokens(text: str, user: str = "ann", client_id: str = "c1") -> Tokens | None:
    filled = parse(text).filled(user, client_id)
    return None if filled is None else filled.tokens(is_keyed=True)


READ = [
    pytest.param("queue:orders.new", ("orders", "new"), id="words"),
    pytest.param("queue:orders.*.#", ("orders", ONE, MANY), id="wildcards"),
    pytest.param("queue:a*.#b.**", ("a*", "#b", "**"), id="wildcards in a longer word are literal"),
    pytest.param("queue:#.*", (ONE, MANY), id="normal form"),
    pytest.param("queue:a/b", ("a/b",), id="a slash in a queue's name"),
    pytest.param("topic:a.b", ("a", "b", KEY, MANY), id="a topic, any key"),
    pytest.param("topic:a.b/", ("a", "b", KEY, MANY), id="an empty key is any key"),
    pytest.param("topic:a/#", ("a", KEY, MANY), id="any key, in full"),
    pytest.param("topic:a/k.*", ("a", KEY, "k", ONE), id="a topic's key"),
    pytest.param("topic:a/b/c", ("a", KEY, "b/c"), id="a slash in a key"),
    pytest.param("client-id:app-*", ("app-", MANY), id="a glob"),
    pytest.param("client-id:a?[b]", ("a?[b]",), id="no other wildcard in a glob"),
    pytest.param("user-id:**", (MANY,), id="neighbouring stars are one"),
    pytest.param("subscription:c-*/n", ("c-", MANY, KEY, "n"), id="client id and name"),
    pytest.param("subscription:c/a/b", ("c", KEY, "a/b"), id="a slash in a subscription's name"),
    pytest.param("subscription:*", (MANY, KEY, MANY), id="all subscriptions"),
    pytest.param("management:*", (MANY,), id="all of management"),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_a_pattern_is_read(text: str, expected: Tokens) -> None:
    assert tokens(text) == expected


WRONG = [
    pytest.param("orders.#", "a pattern is KIND:TEXT", id="no kind"),
    pytest.param("queues:x", "a pattern is KIND:TEXT", id="an unknown kind"),
    pytest.param("queue:", "empty or not printable", id="empty"),
    pytest.param("queue:a\nb", "empty or not printable", id="a control character"),
    pytest.param("queue:\ud800", "empty or not printable", id="half a surrogate pair"),
    pytest.param("queue:#.a.#.b.#", f"at most {MANY_MAX} times #", id="three #"),
    pytest.param("queue:" + ".".join("a" * 33), f"at most {WORDS_MAX} words", id="33 words"),
    pytest.param("topic:t/" + ".".join("a" * 33), f"at most {WORDS_MAX} words", id="a long key"),
    pytest.param("client-id:*a*a*a*a*", f"more than {STARS_MAX} times *", id="five stars"),
    pytest.param("queue:" + "a" * 595, f"at most {PATTERN_BYTES_MAX} bytes", id="601 bytes"),
    pytest.param("topic:/k", "lacks the name of a topic", id="a key alone"),
    pytest.param("queue:{userid}", "{userid} is no variable", id="an unknown variable"),
    pytest.param("queue:{}", "{} is no variable", id="an empty variable"),
    pytest.param("queue:$tmp/queue/x", "the broker's own names", id="a temporary node"),
    pytest.param("topic:$sub/x", "the broker's own names", id="a subscription's store"),
    pytest.param("queue:$management", "the broker's own names", id="management"),
    pytest.param("temporary:x", "with queue, topic, dynamic or *", id="not in the list"),
    pytest.param("management:que*", "only management: with queues", id="half a name"),
    pytest.param("subscription:x", "write subscription:CLIENT/NAME", id="no client id"),
    pytest.param("subscription:/x", "write subscription:CLIENT/NAME", id="an empty client id"),
]


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_a_text_that_is_no_pattern(text: str, told: str) -> None:
    with pytest.raises(PatternError) as raised:
        parse(text)
    assert told in str(raised.value)


@pytest.mark.parametrize("kind", durability.KINDS)
@pytest.mark.parametrize("promise", durability.CLASSES)
def test_a_class_of_addresses_is_no_part_of_a_pattern(kind: str, promise: str) -> None:
    for begins in (f"/{kind}/{promise}/", f"/{promise}/{kind}/"):
        with pytest.raises(PatternError, match="without the prefix of its class"):
            parse(f"queue:{begins}x")


def test_braces_that_enclose_no_word_are_literal() -> None:
    assert tokens("queue:{a-b}.{") == ("{a-b}", "{")


VALUES = [
    pytest.param("queue:in.{user}", "ann", ("in", "ann"), id="plain"),
    pytest.param("queue:in.{user}", "#", ("in", "#"), id="a # is literal"),
    pytest.param("queue:in.{user}", "*", ("in", "*"), id="a * is literal"),
    pytest.param("queue:in.{user}.#", "a.*", ("in", "a", "*", MANY), id="in one of two words"),
    pytest.param("queue:in-{user}", "a.#", ("in-a", "#"), id="behind a text"),
    pytest.param("topic:{user}", "t/secret", ("t/secret", KEY, MANY), id="no key by a slash"),
    pytest.param("topic:{user}/k", "t/#", ("t/#", KEY, "k"), id="no other key by a slash"),
    pytest.param("client-id:{user}-*", "*", ("*-", MANY), id="in a glob"),
    pytest.param("subscription:{user}/n", "a/b", ("a/b", KEY, "n"), id="no other client id"),
    pytest.param("queue:{user}", "{client_id}", ("{client_id}",), id="no variable in a value"),
    pytest.param("queue:in.{user}", "", None, id="no value matches nothing"),
    pytest.param("queue:{user}-{client_id}", "", None, id="one value of two"),
]


@pytest.mark.attack("Z4")
@pytest.mark.parametrize(("text", "user", "expected"), VALUES)
def test_a_value_adds_no_wildcard(text: str, user: str, expected: Tokens | None) -> None:
    """Attack class Z4: names are chosen so that they would widen a pattern."""
    assert tokens(text, user) == expected


def test_a_pattern_with_a_key_matches_no_node_by_itself() -> None:
    assert parse("topic:a/k").tokens(is_keyed=False) is None
    assert parse("topic:a").tokens(is_keyed=False) == ("a",)


def test_names_without_the_broker_s_own() -> None:
    assert all_but_reserved("topic").tokens(is_keyed=False) == (PLAIN, MANY)


def test_words_and_normal_form_are_those_of_routing() -> None:
    chooser = random.Random(1)
    for _ in range(300):
        text = ".".join(chooser.choices(["a", "", "*", "#"], k=chooser.randrange(6)))
        assert words_of(text) == pattern.words_of(text)
        pieces = [{"*": ONE, "#": MANY}.get(word, word) for word in words_of(text)]
        names = {ONE: "*", MANY: "#"}
        shown = [
            names.get(each, each) if isinstance(each, int) else each for each in normal(pieces)
        ]
        assert shown == pattern.normal(pattern.words_of(text))
    assert (WORDS_MAX, MANY_MAX) == (pattern.WORDS_MAX, pattern.MANY_MAX)


GLOBS = [
    pytest.param("a*b", "ab", True, id="none between"),
    pytest.param("ab*ba", "aba", False, id="no character is used twice"),
    pytest.param("*a*", "xax", True, id="in the middle"),
    pytest.param("a*b*c", "abxc", True, id="several"),
    pytest.param("a*b*c", "acb", False, id="in their order"),
    pytest.param("*", "a/b", True, id="any characters"),
    pytest.param("a", "ab", False, id="no more than the text"),
]


@pytest.mark.parametrize(("glob", "text", "expected"), GLOBS)
def test_globs(glob: str, text: str, expected: bool) -> None:
    found = tokens(f"client-id:{glob}")
    assert found is not None
    assert glob_matches(found, text) is expected


def test_a_pattern_keeps_the_operator_s_spelling() -> None:
    found = parse("queue:in.{user}.#").filled("ann", "")
    assert isinstance(found, RulePattern)
    assert found.text == "queue:in.{user}.#"
    assert not found.has_variables()
