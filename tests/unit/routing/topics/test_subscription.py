"""The table of SUB-01 to SUB-12, and the rules for sharing or changing a subscription."""

from itertools import product

import pytest

from broker.routing.addresses.address import Address
from broker.routing.addresses.identity import KEY_BYTES_MAX, SubscriptionIdentity
from broker.routing.addresses.prefixes import Prefixes
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.errors import InvalidAddress
from broker.routing.selector import parse_selector
from broker.routing.topics.subscription import (
    REFUSALS,
    AttachVerdict,
    SubscriptionKind,
    SubscriptionSpec,
    SubscriptionState,
    SubscriptionTraits,
    judge,
    row_of,
)

CLIENT = "client"
LINK = "n|x"


def facts(words: str, *, has_source: bool = True) -> SubscriptionTraits:
    """Return the traits that the words of the table name: any of `shared global durable`."""
    return SubscriptionTraits(
        has_source=has_source,
        is_shared="shared" in words,
        is_global="global" in words,
        is_durable="durable" in words,
    )


# -- the table

ROWS = [
    pytest.param("set", "", 1, SubscriptionKind.PRIVATE, None, id="SUB-01"),
    pytest.param("set", "durable", 2, SubscriptionKind.SOLE, (CLIENT, LINK, True), id="SUB-02"),
    pytest.param("set", "global", 3, SubscriptionKind.PRIVATE, None, id="SUB-03"),
    pytest.param(
        "set", "global durable", 4, SubscriptionKind.SOLE, (None, LINK, True), id="SUB-04"
    ),
    pytest.param("set", "shared", 5, SubscriptionKind.SHARED, (CLIENT, "n", False), id="SUB-05"),
    pytest.param(
        "set", "shared durable", 6, SubscriptionKind.SHARED, (CLIENT, "n", True), id="SUB-06"
    ),
    pytest.param(
        "set", "shared global", 7, SubscriptionKind.SHARED, (None, "n", False), id="SUB-07"
    ),
    pytest.param(
        "set", "shared global durable", 8, SubscriptionKind.SHARED, (None, "n", True), id="SUB-08"
    ),
    pytest.param("null", "", 9, SubscriptionKind.LOOK_UP, (CLIENT, LINK, True), id="SUB-09"),
    pytest.param("null", "global", 10, SubscriptionKind.LOOK_UP, (None, LINK, True), id="SUB-10"),
    pytest.param("null", "shared", 11, SubscriptionKind.LOOK_UP, (CLIENT, "n", True), id="SUB-11"),
    pytest.param(
        "null", "shared global", 12, SubscriptionKind.LOOK_UP, (None, "n", True), id="SUB-12"
    ),
]


@pytest.mark.requirement(*(f"SUB-{number:02}" for number in range(1, 13)), "SUB-24")
@pytest.mark.parametrize(("source", "words", "number", "use", "identity"), ROWS)
def test_the_table(
    source: str,
    words: str,
    number: int,
    use: SubscriptionKind,
    identity: SubscriptionIdentity | None,
) -> None:
    asked = facts(words, has_source=source == "set")
    row = row_of(asked, link_name=LINK, container_id=CLIENT)
    assert (row.number, row.use, row.identity) == (number, use, identity)


def test_a_lookup_means_a_durable_subscription_whatever_it_says() -> None:
    for words in ("", "shared", "global", "shared global"):
        silent = facts(words, has_source=False)
        outspoken = facts(f"{words} durable", has_source=False)
        rows = [row_of(each, link_name=LINK, container_id=CLIENT) for each in (silent, outspoken)]
        assert rows[0].number == rows[1].number
        assert rows[0].identity == rows[1].identity


NAMES = [
    pytest.param("NAME", id="the first of a container"),
    pytest.param("NAME|2", id="the second of a container"),
    pytest.param("NAME|global", id="the first without client id"),
    pytest.param("NAME|global2", id="the second without client id"),
    pytest.param("NAME|volatile1", id="a volatile one"),
    pytest.param("NAME|global-volatile1", id="a volatile one without client id"),
    pytest.param("NAME|", id="nothing behind the bar"),
    pytest.param("NAME|a|b", id="two bars"),
]


@pytest.mark.requirement("SUB-35")
@pytest.mark.parametrize("link_name", NAMES)
@pytest.mark.parametrize("has_source", [True, False], ids=["a subscriber", "a lookup"])
@pytest.mark.parametrize("words", ["shared", "shared global", "shared durable"])
def test_the_name_of_a_shared_subscription_ends_at_the_bar(
    link_name: str, has_source: bool, words: str
) -> None:
    row = row_of(facts(words, has_source=has_source), link_name=link_name, container_id=CLIENT)
    assert row.identity is not None
    assert row.identity[1] == "NAME"


@pytest.mark.requirement("SUB-35")
@pytest.mark.parametrize("link_name", NAMES)
@pytest.mark.parametrize("has_source", [True, False], ids=["a subscriber", "a lookup"])
@pytest.mark.parametrize("words", ["durable", "global durable"])
def test_the_name_of_an_unshared_subscription_is_the_whole_link_name(
    link_name: str, has_source: bool, words: str
) -> None:
    row = row_of(facts(words, has_source=has_source), link_name=link_name, container_id=CLIENT)
    assert row.identity is not None
    assert row.identity[1] == link_name


def test_a_container_cannot_pass_for_the_global_name_space() -> None:
    for container_id in ("", "None", "global", "_global_"):
        own = row_of(facts("durable"), link_name="n", container_id=container_id)
        everybodys = row_of(facts("global durable"), link_name="n", container_id=container_id)
        assert own.identity != everybodys.identity


LONGEST = "é" * (KEY_BYTES_MAX // 2) + "x"


@pytest.mark.parametrize(
    ("link_name", "container_id"),
    [
        pytest.param(LONGEST + "x", CLIENT, id="the name"),
        pytest.param("n", LONGEST + "x", id="the container-id"),
        pytest.param(LONGEST + "x|y", CLIENT, id="the name before the bar"),
        pytest.param("n\0", CLIENT, id="a name with what no database keeps"),
    ],
)
def test_what_is_kept_by_name_has_a_name_that_can_be_kept(
    link_name: str, container_id: str
) -> None:
    with pytest.raises(InvalidAddress):
        row_of(facts("shared durable"), link_name=link_name, container_id=container_id)
    assert row_of(facts(""), link_name=link_name, container_id=container_id).identity is None


def test_a_name_of_the_greatest_length_is_taken() -> None:
    row = row_of(facts("shared"), link_name=LONGEST + "|" + LONGEST, container_id=LONGEST)
    assert row.identity == (LONGEST, LONGEST, False)


# -- facts

WORDS = ["", "shared", "global", "durable", "shared global", "shared durable", "global durable"]


@pytest.mark.parametrize(("one", "other"), list(product(WORDS, WORDS)))
def test_facts_differ_where_one_of_them_does(one: str, other: str) -> None:
    assert facts(one).differ_from(facts(other)) is (one != other)


@pytest.mark.parametrize(
    ("source", "differ"), [("durable", False), ("", True), ("shared durable", True)]
)
def test_a_lookup_means_durable_ones(source: str, differ: bool) -> None:
    lookup = facts("", has_source=False)
    assert facts(source).differ_from(lookup) is differ
    assert lookup.differ_from(facts(source)) is differ


# -- the order of judgement

DURABLE = facts("durable")
SHARED = facts("shared durable")
LOOKUP = facts("", has_source=False)


def there(**more: object) -> SubscriptionState:
    return SubscriptionState(exists=True, **more)  # type: ignore[arg-type]


JUDGED = [
    # lookups
    pytest.param(LOOKUP, SubscriptionState(), AttachVerdict.MISSING, id="a lookup of nothing"),
    pytest.param(LOOKUP, there(), AttachVerdict.FOUND, id="a lookup"),
    pytest.param(LOOKUP, there(consumers=3), AttachVerdict.FOUND, id="a lookup of one in use"),
    pytest.param(LOOKUP, there(is_shared=True), AttachVerdict.FOUND, id="a lookup of a shared one"),
    pytest.param(
        LOOKUP,
        there(link=DURABLE, consumers=1, holds=True),
        AttachVerdict.LINK_IN_USE,
        id="a lookup by a name that its consumer has",
    ),
    pytest.param(
        LOOKUP,
        there(link=LOOKUP),
        AttachVerdict.LINK_IN_USE,
        id="a lookup by a name that another has",
    ),
    pytest.param(
        LOOKUP,
        SubscriptionState(link=facts("")),
        AttachVerdict.MISSING,
        id="a lookup of nothing by a name that a live link has",
    ),
    # links of the same name
    pytest.param(
        DURABLE,
        SubscriptionState(link=SHARED),
        AttachVerdict.LINK_MEANS_ANOTHER,
        id="a live link is shared",
    ),
    pytest.param(
        DURABLE,
        SubscriptionState(link=facts("global durable")),
        AttachVerdict.LINK_MEANS_ANOTHER,
        id="a live link is global",
    ),
    pytest.param(
        facts("global durable"),
        SubscriptionState(link=DURABLE),
        AttachVerdict.LINK_MEANS_ANOTHER,
        id="a live link is the container's own",
    ),
    pytest.param(
        facts(""),
        SubscriptionState(link=DURABLE),
        AttachVerdict.LINK_MEANS_ANOTHER,
        id="a live link is durable",
    ),
    pytest.param(
        DURABLE,
        there(link=SHARED, is_shared=True, consumers=5, wants_the_same=False),
        AttachVerdict.LINK_MEANS_ANOTHER,
        id="the live link is judged first",
    ),
    pytest.param(
        facts(""),
        SubscriptionState(link=facts("")),
        AttachVerdict.BEGIN,
        id="a steal of a private one",
    ),
    pytest.param(
        DURABLE,
        there(link=DURABLE, consumers=1, holds=True),
        AttachVerdict.RESUME,
        id="a steal of an unshared one",
    ),
    pytest.param(
        SHARED,
        there(link=SHARED, is_shared=True, consumers=2, holds=True),
        AttachVerdict.RESUME,
        id="a steal of one share",
    ),
    pytest.param(
        DURABLE,
        there(link=DURABLE, consumers=1, holds=True, wants_the_same=False),
        AttachVerdict.WANTED_OTHERWISE,
        id="a steal that would drop the backlog",
    ),
    pytest.param(
        DURABLE,
        there(link=LOOKUP),
        AttachVerdict.RESUME,
        id="a steal from a lookup, which holds nothing",
    ),
    # beginnings
    pytest.param(DURABLE, SubscriptionState(), AttachVerdict.BEGIN, id="the first unshared"),
    pytest.param(SHARED, SubscriptionState(), AttachVerdict.BEGIN, id="the first of many"),
    # sharing
    pytest.param(
        SHARED, there(), AttachVerdict.NOT_SHARED, id="shared where an unshared one rests"
    ),
    pytest.param(
        SHARED, there(consumers=1), AttachVerdict.NOT_SHARED, id="shared where one is in use"
    ),
    pytest.param(
        DURABLE,
        there(is_shared=True),
        AttachVerdict.SHARED_BY_OTHERS,
        id="unshared where one rests",
    ),
    pytest.param(
        DURABLE,
        there(is_shared=True, wants_the_same=False),
        AttachVerdict.SHARED_BY_OTHERS,
        id="unshared, to another topic",
    ),
    pytest.param(
        SHARED, there(is_shared=True, consumers=9), AttachVerdict.RESUME, id="the tenth that shares"
    ),
    # subscriptions in use
    pytest.param(DURABLE, there(), AttachVerdict.RESUME, id="an unshared one that comes back"),
    pytest.param(
        DURABLE, there(consumers=1), AttachVerdict.CONSUMED_BY_ANOTHER, id="an unshared one in use"
    ),
    pytest.param(
        DURABLE,
        there(consumers=1, wants_the_same=False),
        AttachVerdict.CONSUMED_BY_ANOTHER,
        id="an unshared one in use, to another topic",
    ),
    # changes
    pytest.param(
        DURABLE,
        there(wants_the_same=False),
        AttachVerdict.BEGIN_ANEW,
        id="another topic, nobody there",
    ),
    pytest.param(
        SHARED,
        there(is_shared=True, wants_the_same=False),
        AttachVerdict.BEGIN_ANEW,
        id="another topic, nobody there to share with",
    ),
    pytest.param(
        SHARED,
        there(is_shared=True, wants_the_same=False, consumers=1),
        AttachVerdict.WANTED_OTHERWISE,
        id="another topic, somebody there",
    ),
]


@pytest.mark.requirement("SUB-21", "SUB-22", "SUB-26", "SUB-37", "SUB-38", "SUB-40")
@pytest.mark.parametrize(("asked", "state", "verdict"), JUDGED)
def test_an_attach_is_judged(
    asked: SubscriptionTraits, state: SubscriptionState, verdict: AttachVerdict
) -> None:
    assert judge(asked, state) is verdict


def test_every_verdict_can_be_reached() -> None:
    assert {case.values[2] for case in JUDGED} == set(AttachVerdict)
    assert set(REFUSALS) < set(AttachVerdict)


# -- what a subscription wants


SELECTIVE = ConsumerFilter(parse_selector("x = 1"))

INTERESTS = [
    pytest.param(
        SubscriptionSpec(Address("t")), SubscriptionSpec(Address("t")), True, id="the same topic"
    ),
    pytest.param(
        SubscriptionSpec(Address("t")), SubscriptionSpec(Address("T")), False, id="another topic"
    ),
    pytest.param(
        SubscriptionSpec(Address("t")),
        SubscriptionSpec(Address("t/#")),
        True,
        id="every key, said and not said",
    ),
    pytest.param(
        SubscriptionSpec(Address("t/")), SubscriptionSpec(Address("t")), True, id="an empty key"
    ),
    pytest.param(
        SubscriptionSpec(Address("t/a")), SubscriptionSpec(Address("t/b")), False, id="another key"
    ),
    pytest.param(
        SubscriptionSpec(Address("t/a")), SubscriptionSpec(Address("t")), False, id="a key and none"
    ),
    pytest.param(
        SubscriptionSpec(Address("a.#.*")),
        SubscriptionSpec(Address("a.*.#")),
        True,
        id="one pattern in two ways",
    ),
    pytest.param(
        SubscriptionSpec(Address("a.b")),
        SubscriptionSpec(Address("a/b")),
        False,
        id="a topic and a key",
    ),
    pytest.param(
        SubscriptionSpec(Address("/topic/durable/t")),
        SubscriptionSpec(Prefixes().parse("/durable/topic/t")),
        True,
        id="a class in two ways",
    ),
    pytest.param(
        SubscriptionSpec(Address("/topic/durable/t")),
        SubscriptionSpec(Address("t")),
        False,
        id="a class and none",
    ),
    pytest.param(
        SubscriptionSpec(Address("t"), SELECTIVE),
        SubscriptionSpec(Address("t")),
        False,
        id="a filter and none",
    ),
    pytest.param(
        SubscriptionSpec(Address("t"), SELECTIVE),
        SubscriptionSpec(Address("t"), ConsumerFilter(parse_selector("x = 1"))),
        True,
        id="the same filter",
    ),
    pytest.param(
        SubscriptionSpec(Address("t"), SELECTIVE),
        SubscriptionSpec(Address("t"), ConsumerFilter(parse_selector("x = 2"))),
        False,
        id="another selector",
    ),
    pytest.param(
        SubscriptionSpec(Address("t"), ConsumerFilter(None, "one")),
        SubscriptionSpec(Address("t"), ConsumerFilter(None, "other")),
        False,
        id="another's own messages left out",
    ),
]


@pytest.mark.requirement("SUB-21")
@pytest.mark.parametrize(("one", "other", "alike"), INTERESTS)
def test_interests_are_alike_where_they_take_the_same_messages(
    one: SubscriptionSpec, other: SubscriptionSpec, alike: bool
) -> None:
    assert one.is_like(other) is alike
    assert other.is_like(one) is alike
