"""Requests in an attach, and every reason for a refusal that is visible in the attach itself."""

import pytest

from broker.amqp.descriptors import SELECTOR_FILTER
from broker.amqp.errors import LinkFault
from broker.amqp.performatives import RECEIVER, SENDER, Attach
from broker.amqp.terminus import Source, SourceFilter, Target
from broker.amqp.types import Described, Symbol, UInt, ULong
from broker.links.attach import (
    consume_request,
    in_force,
    kind_of,
    lookup_traits,
    policy_code,
    publish_request,
    terms_of,
)
from broker.routing.errors import InvalidSelector
from broker.routing.selector import parse_selector
from broker.routing.topics.subscription import SubscriptionTraits

DELETE_ON_CLOSE = Described(ULong(0x2B), [])


def sender(target: Target | None) -> Attach:
    return Attach(name="link", handle=0, role=SENDER, target=target)


def receiver(source: Source | None, name: str = "link") -> Attach:
    return Attach(name=name, handle=0, role=RECEIVER, source=source)


def lifetime(policy: object) -> dict[str, object]:
    return {"lifetime-policy": policy}


def filtered(descriptor: int | str | None, value: object = "x") -> Source:
    """Return a source with one filter that has this descriptor."""
    one = SourceFilter(key="any-key", descriptor=descriptor, value=value, encoded=b"")
    return Source(address="q", filter=[one])


# -- kinds of nodes

KINDS = [
    pytest.param([], "", id="nothing"),
    pytest.param(["queue"], "queue", id="a queue"),
    pytest.param(["topic"], "topic", id="a topic"),
    pytest.param(["temporary-queue"], "queue", id="a temporary queue"),
    pytest.param(["temporary-topic"], "topic", id="a temporary topic"),
    pytest.param(["queue", "temporary-queue"], "queue", id="a queue, said twice"),
    pytest.param(["topic", "topic"], "topic", id="a topic, said twice"),
    pytest.param(["x-opt-strange", "queue"], "queue", id="a queue behind something unknown"),
    pytest.param(["topic", "x-opt-strange"], "topic", id="a topic before something unknown"),
    pytest.param(["QUEUE"], "", id="another spelling"),
]


@pytest.mark.requirement("DST-01", "DST-02")
@pytest.mark.parametrize(("capabilities", "kind"), KINDS)
def test_capabilities_ask_for(capabilities: list[str], kind: str) -> None:
    assert kind_of(capabilities) == kind


@pytest.mark.parametrize("capabilities", [["queue", "topic"], ["temporary-topic", "queue"]])
def test_a_node_is_not_both_queue_and_topic(capabilities: list[str]) -> None:
    with pytest.raises(LinkFault, match="queue or a topic") as refused:
        kind_of(capabilities)
    assert refused.value.condition == "amqp:invalid-field"


# -- links to send on

PUBLISHERS = [
    pytest.param(Target(address="q"), ("q", "", False, False), id="a name"),
    pytest.param(
        Target(address="q", capabilities=["queue"]), ("q", "queue", False, False), id="a queue"
    ),
    pytest.param(
        Target(address="t", capabilities=["topic"]), ("t", "topic", False, False), id="a topic"
    ),
    pytest.param(
        Target(address="q", durable=2, expiry_policy="never"),
        ("q", "", False, False),
        id="a durable target",
    ),
    pytest.param(Target(address=""), ("", "", False, False), id="an empty name, judged by routing"),
    pytest.param(Target(), (None, "", False, False), id="the anonymous relay"),
    pytest.param(
        Target(capabilities=["DISCARD_UNROUTABLE"]),
        (None, "", False, True),
        id="a relay that discards what it cannot route",
    ),
    pytest.param(
        Target(dynamic=True, capabilities=["temporary-queue"]),
        (None, "queue", True, False),
        id="a temporary queue",
    ),
    pytest.param(
        Target(
            dynamic=True,
            expiry_policy="link-detach",
            dynamic_node_properties=lifetime(DELETE_ON_CLOSE),
            capabilities=["temporary-topic"],
        ),
        (None, "topic", True, False),
        id="a temporary topic, as Qpid JMS asks for it",
    ),
    pytest.param(Target(dynamic=True), (None, "", True, False), id="a dynamic node of any kind"),
]


@pytest.mark.requirement("DST-01", "PRD-01", "TMP-01")
@pytest.mark.parametrize(("target", "asked"), PUBLISHERS)
def test_a_sender_asks_for(target: Target, asked: tuple[str | None, str, bool, bool]) -> None:
    request = publish_request(sender(target))
    assert (request.address, request.kind, request.dynamic, request.discard_unroutable) == asked


REFUSED_PUBLISHERS = [
    pytest.param(None, "amqp:invalid-field", id="no target"),
    pytest.param(
        Target(address="x", dynamic=True), "amqp:invalid-field", id="a dynamic target with a name"
    ),
    pytest.param(
        Target(address="x", capabilities=["queue", "topic"]),
        "amqp:invalid-field",
        id="a target of two kinds",
    ),
]


@pytest.mark.parametrize(("target", "condition"), REFUSED_PUBLISHERS)
def test_a_sender_is_refused(target: Target | None, condition: str) -> None:
    with pytest.raises(LinkFault) as refused:
        publish_request(sender(target))
    assert refused.value.condition == condition


# -- links to receive on

CONSUMERS = [
    pytest.param(Source(address="q"), ("q", "", False, False, False), id="a name"),
    pytest.param(
        Source(address="q", capabilities=["queue"]),
        ("q", "queue", False, False, False),
        id="a queue",
    ),
    pytest.param(
        Source(address="t", capabilities=["topic"]),
        ("t", "topic", False, False, False),
        id="a topic",
    ),
    pytest.param(
        Source(address="q", distribution_mode="copy"),
        ("q", "", False, True, False),
        id="copies",
    ),
    pytest.param(
        Source(address="q", distribution_mode="move"),
        ("q", "", False, False, False),
        id="the messages themselves",
    ),
    pytest.param(
        Source(address="t", durable=1), ("t", "", False, False, True), id="durable configuration"
    ),
    pytest.param(
        Source(address="t", durable=2, distribution_mode="copy", capabilities=["topic"]),
        ("t", "topic", False, True, True),
        id="a durable subscription, as Qpid JMS asks for it",
    ),
    pytest.param(
        Source(dynamic=True, capabilities=["temporary-queue"]),
        (None, "queue", True, False, False),
        id="a temporary queue",
    ),
    pytest.param(
        Source(dynamic=True, dynamic_node_properties=lifetime(DELETE_ON_CLOSE)),
        (None, "", True, False, False),
        id="a dynamic node of any kind",
    ),
]


@pytest.mark.requirement("DST-01", "RCV-04", "SUB-01")
@pytest.mark.parametrize(("source", "asked"), CONSUMERS)
def test_a_receiver_asks_for(
    source: Source, asked: tuple[str | None, str, bool, bool, bool]
) -> None:
    request = consume_request(receiver(source))
    assert (
        request.address,
        request.kind,
        request.dynamic,
        request.copies,
        request.traits.is_durable,
    ) == asked


REFUSED_CONSUMERS = [
    pytest.param(None, "amqp:invalid-field", id="no source: a lookup, which is judged elsewhere"),
    pytest.param(Source(), "amqp:invalid-field", id="neither name nor dynamic"),
    pytest.param(
        Source(address="x", dynamic=True), "amqp:invalid-field", id="a dynamic source with a name"
    ),
    pytest.param(
        Source(address="x", capabilities=["topic", "queue"]),
        "amqp:invalid-field",
        id="a source of two kinds",
    ),
    pytest.param(
        Source(address="x", distribution_mode="share"),
        "amqp:invalid-field",
        id="an unknown distribution mode",
    ),
]


@pytest.mark.parametrize(("source", "condition"), REFUSED_CONSUMERS)
def test_a_receiver_is_refused(source: Source | None, condition: str) -> None:
    with pytest.raises(LinkFault) as refused:
        consume_request(receiver(source))
    assert refused.value.condition == condition


# -- subscriptions

NO_FACTS = (True, False, False, False)

SUBSCRIBERS = [
    pytest.param(Source(address="t"), NO_FACTS, id="nothing said"),
    pytest.param(Source(address="t", durable=1), (True, False, False, True), id="durable 1"),
    pytest.param(Source(address="t", durable=2), (True, False, False, True), id="durable 2"),
    pytest.param(
        Source(address="t", capabilities=["topic", "shared"]),
        (True, True, False, False),
        id="shared",
    ),
    pytest.param(
        Source(address="t", capabilities=["global"]), (True, False, True, False), id="global"
    ),
    pytest.param(
        Source(address="t", durable=2, capabilities=["global", "topic", "shared"]),
        (True, True, True, True),
        id="all three",
    ),
    pytest.param(
        Source(dynamic=True, durable=2, capabilities=["shared", "global"]),
        NO_FACTS,
        id="a dynamic node, whose subscription nobody can name",
    ),
]


def said(facts: SubscriptionTraits) -> tuple[bool, bool, bool, bool]:
    return facts.has_source, facts.is_shared, facts.is_global, facts.is_durable


@pytest.mark.parametrize(("source", "expected"), SUBSCRIBERS)
def test_a_source_says_of_its_subscription(
    source: Source, expected: tuple[bool, bool, bool, bool]
) -> None:
    assert said(consume_request(receiver(source)).traits) == expected


@pytest.mark.requirement("SUB-09", "SUB-10", "SUB-11", "SUB-12")
@pytest.mark.parametrize(
    ("desired", "expected"),
    [
        pytest.param([], (False, False, False, False), id="nothing"),
        pytest.param(["global"], (False, False, True, False), id="global"),
        pytest.param(["shared"], (False, True, False, False), id="shared"),
        pytest.param(["shared", "global"], (False, True, True, False), id="both"),
    ],
)
def test_a_lookup_says_it_by_desired_capabilities(
    desired: list[str], expected: tuple[bool, bool, bool, bool]
) -> None:
    attach = Attach(name="link", handle=0, role=RECEIVER, desired_capabilities=desired)
    assert said(lookup_traits(attach)) == expected


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        pytest.param([], ["queue"], id="nothing said"),
        pytest.param(["queue"], ["queue"], id="a queue"),
        pytest.param(["temporary-queue"], ["temporary-queue"], id="a temporary queue"),
        pytest.param(["queue", "shared", "global"], ["queue"], id="what only topics have"),
    ],
)
def test_a_queue_is_what_it_is(asked: list[str], answered: list[str]) -> None:
    assert in_force(asked) == answered


# -- filters; their table is in test_filters.py


def test_the_filters_of_the_source_are_read() -> None:
    request = consume_request(receiver(filtered(SELECTOR_FILTER, "x = 1")))
    assert request.filters.selector == parse_selector("x = 1")
    with pytest.raises(InvalidSelector):
        consume_request(receiver(filtered(SELECTOR_FILTER, "x =")))


# -- lifetimes of dynamic nodes

POLICIES = [
    pytest.param(DELETE_ON_CLOSE, 0x2B, id="by number"),
    pytest.param(Described(Symbol("amqp:delete-on-no-links:list"), []), 0x2C, id="by symbol"),
    pytest.param(Described(Symbol("amqp:delete-on-close"), []), -1, id="half a symbol"),
    pytest.param(Described(ULong(0x2B), None), -1, id="a described null"),
    pytest.param(Described(ULong(0x2B), [1]), -1, id="a list with something in it"),
    pytest.param(ULong(0x2B), -1, id="a number alone"),
    pytest.param(Symbol("amqp:delete-on-close:list"), -1, id="a symbol alone"),
    pytest.param(None, -1, id="nothing"),
]


@pytest.mark.parametrize(("policy", "code"), POLICIES)
def test_the_descriptor_of_a_lifetime_policy(policy: object, code: int) -> None:
    assert policy_code(policy) == code


LIFETIMES = [
    pytest.param({}, None, id="none said"),
    pytest.param(lifetime(DELETE_ON_CLOSE), None, id="delete on close"),
    pytest.param(
        lifetime(Described(Symbol("amqp:delete-on-close:list"), [])),
        None,
        id="delete on close by symbol",
    ),
    pytest.param({"supported-dist-modes": Symbol("move")}, None, id="another property"),
    pytest.param(lifetime(None), None, id="null"),
    pytest.param(lifetime(Described(ULong(0x2C), [])), None, id="delete on no links"),
    pytest.param(lifetime(Described(ULong(0x2D), [])), None, id="delete on no messages"),
    pytest.param(lifetime(Described(ULong(0x2E), [])), None, id="delete on neither"),
    pytest.param(
        lifetime(Described(Symbol("amqp:delete-on-no-messages:list"), [])),
        None,
        id="delete on no messages by symbol",
    ),
    pytest.param(lifetime(Described(ULong(0x2F), [])), "amqp:invalid-field", id="unknown number"),
    pytest.param(
        lifetime(Described(Symbol("forever"), [])), "amqp:invalid-field", id="unknown symbol"
    ),
    pytest.param(
        lifetime(Described(ULong(0x28), [])), "amqp:invalid-field", id="something else's number"
    ),
    pytest.param(
        lifetime(Described(ULong(0x2B), [True])), "amqp:invalid-field", id="a policy with fields"
    ),
    pytest.param(lifetime(UInt(0x2B)), "amqp:invalid-field", id="a plain number"),
]


@pytest.mark.requirement("TMP-01", "TMP-02")
@pytest.mark.parametrize("role", [SENDER, RECEIVER], ids=["target", "source"])
@pytest.mark.parametrize(("properties", "condition"), LIFETIMES)
def test_a_dynamic_node_lives(
    role: bool, properties: dict[str, object], condition: str | None
) -> None:
    def ask() -> bool:
        if role is SENDER:
            target = Target(dynamic=True, dynamic_node_properties=properties)
            return publish_request(sender(target)).dynamic
        source = Source(dynamic=True, dynamic_node_properties=properties)
        return consume_request(receiver(source)).dynamic

    if condition is None:
        assert ask()
        return
    with pytest.raises(LinkFault) as refused:
        ask()
    assert refused.value.condition == condition


# -- how long a subscription lasts

LASTING = [
    pytest.param(Source(), (0, "session-end", 0), id="volatile, left out"),
    pytest.param(
        Source(expiry_policy="link-detach", timeout=3), (0, "link-detach", 3), id="volatile, told"
    ),
    pytest.param(
        Source(durable=2, tells_expiry_policy=False), (2, "never", 0), id="durable, left out"
    ),
    pytest.param(
        Source(durable=1, expiry_policy="session-end", timeout=3),
        (1, "session-end", 3),
        id="durable, told",
    ),
]


@pytest.mark.requirement("SUB-25")
@pytest.mark.parametrize(("source", "expected"), LASTING)
def test_how_long_a_subscription_is_to_last(source: Source, expected: tuple[int, str, int]) -> None:
    terms = terms_of(source)
    assert (terms.durability, terms.expiry_policy, terms.timeout_s) == expected
