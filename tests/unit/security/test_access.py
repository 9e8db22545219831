"""Decisions about rights: a table of rules and requests that teaches how they are read."""

from __future__ import annotations

import pytest

from broker.security.access import AccessRules
from broker.security.conditions import NO_ENTRANCE
from broker.security.decision import COVER, DEFAULT, FIXED, OVERLAP, UNDECIDED, Decision
from broker.security.entrance import Entrance
from broker.security.identity import Identity
from broker.security.limits import limit_of
from broker.security.resources import Resource, resource_of
from broker.security.rules import PLACES_MAX, RULES_MAX, Rule, RuleError, rule_of

pytestmark = pytest.mark.requirement("SEC-03")


def rule(id_: str, text: str, on: str, *, who: str = "role:r", **more: object) -> Rule:
    """Return a rule: `text` is its effect and verbs, `on` its patterns, separated by spaces."""
    effect, *can = text.split()
    record = {"id": id_, "effect": effect, "who": who.split(), "can": can, "on": on.split()}
    return rule_of({**record, **more}, "rule")


def decide(
    rules: list[Rule],
    request: str,
    *,
    roles: str = "r",
    user: str = "ann",
    client_id: str = "",
    entrance: Entrance = NO_ENTRANCE,
) -> Decision:
    """Return the decision about a request, a verb and a resource."""
    verb, text = request.split()
    identity = Identity(user, roles=frozenset(roles.split()))
    return AccessRules(rules).decide(
        identity, verb, resource_of(text, verb), entrance=entrance, client_id=client_id
    )


ALLOW = rule("allow", "allow send subscribe", "queue:a.# topic:a.#")
DENY = rule("deny", "deny *", "queue:a.secret topic:a.secret.#", who="authenticated")

DECISIONS = [
    pytest.param([], "send queue:a", DEFAULT, "", id="no rule: no"),
    pytest.param([ALLOW], "send queue:a.b", COVER, "allow", id="an allow rule matches"),
    pytest.param([ALLOW], "send queue:b", DEFAULT, "", id="it does not match another name"),
    pytest.param([ALLOW], "receive queue:a.b", DEFAULT, "", id="or verb"),
    pytest.param([ALLOW, DENY], "send queue:a.secret", OVERLAP, "deny", id="deny beats allow"),
    pytest.param([DENY, ALLOW], "send queue:a.secret", OVERLAP, "deny", id="in either order"),
    pytest.param([ALLOW, DENY], "send queue:a.b", COVER, "allow", id="deny names something else"),
    pytest.param([ALLOW], "subscribe topic:a.*", COVER, "allow", id="all names of a wildcard"),
    pytest.param([ALLOW], "subscribe topic:#.b", DEFAULT, "", id="not all names of a wildcard"),
    pytest.param([ALLOW, DENY], "subscribe topic:a.*", OVERLAP, "deny", id="one denied name"),
    pytest.param([ALLOW, DENY], "subscribe topic:a.b.#", COVER, "allow", id="no denied name"),
]


@pytest.mark.parametrize(("rules", "request_", "because", "by"), DECISIONS)
def test_the_order_of_evaluation(rules: list[Rule], request_: str, because: str, by: str) -> None:
    decision = decide(rules, request_)
    assert (decision.because, decision.rule) == (because, by)
    assert decision.allowed is (because == COVER)


KEY = rule("key", "allow send subscribe", "topic:t/eu.#")
EMPTY = rule("no-key", "allow subscribe", "topic:t/eu topic:t/eu.*.#")
ANY = rule("any", "allow * ", "topic:t")
SECRET = rule("secret", "deny *", "topic:t/secret.#")

KEYS = [
    pytest.param([KEY], "send topic:t/eu.x", COVER, id="a key"),
    pytest.param([KEY], "send topic:t/us", DEFAULT, id="another key"),
    pytest.param([KEY], "send topic:t", DEFAULT, id="no key means any key, since a subject is one"),
    pytest.param([KEY], "subscribe topic:t", DEFAULT, id="no key means messages of all keys"),
    pytest.param([KEY], "subscribe topic:t/eu.*", COVER, id="a pattern of keys"),
    pytest.param([KEY], "subscribe topic:t/#", DEFAULT, id="all keys"),
    pytest.param([EMPTY], "subscribe topic:t/eu.#", COVER, id="two patterns together"),
    pytest.param([ANY], "send topic:t/x", COVER, id="a rule without key has all keys"),
    pytest.param([ANY], "subscribe topic:t/#", COVER, id="a rule without key, all keys"),
    pytest.param([KEY], "create topic:t", DEFAULT, id="a key gives no right on the node"),
    pytest.param([ANY, SECRET], "create topic:t", COVER, id="and denies none"),
    pytest.param([ANY, SECRET], "send topic:t", OVERLAP, id="any key may be the denied one"),
    pytest.param([ANY, SECRET], "send topic:t/open", COVER, id="a key that is not denied"),
    pytest.param([ANY, SECRET], "subscribe topic:t", OVERLAP, id="all keys have the denied one"),
    pytest.param([ANY, SECRET], "subscribe topic:*/secret", OVERLAP, id="a wildcard and a key"),
]


@pytest.mark.parametrize(("rules", "request_", "because"), KEYS)
def test_keys_of_topics(rules: list[Rule], request_: str, because: str) -> None:
    assert decide(rules, request_).because == because


TOGETHER = [
    pytest.param("topic:a topic:a.*.#", "subscribe topic:a.#", COVER, id="without and with words"),
    pytest.param("topic:a topic:a.*.*.#", "subscribe topic:a.#", DEFAULT, id="one word is missing"),
    pytest.param("topic:a.b topic:a.c", "subscribe topic:a.*", DEFAULT, id="no list has all words"),
]


@pytest.mark.parametrize(("on", "request_", "because"), TOGETHER)
def test_patterns_cover_a_wildcard_together(on: str, request_: str, because: str) -> None:
    rules = [rule(f"r{number}", "allow subscribe", text) for number, text in enumerate(on.split())]
    decision = decide(rules, request_)
    assert decision.because == because
    assert decision.rule == ("r0, r1" if because == COVER else "")


WHO = [
    pytest.param("user:ann", "ann", "", True, id="the user"),
    pytest.param("user:ann", "bob", "", False, id="another user"),
    pytest.param("role:r", "ann", "r", True, id="a role of the identity"),
    pytest.param("role:r", "eve", "", True, id="a role of the file"),
    pytest.param("role:r", "ann", "s", False, id="another role"),
    pytest.param("authenticated", "ann", "", True, id="every user"),
    pytest.param("authenticated", "", "", False, id="a client without a login"),
    pytest.param("anonymous", "", "", True, id="without a login"),
    pytest.param("anonymous", "ann", "", False, id="a user is not anonymous"),
    pytest.param("role:r", "", "r", True, id="a client without a login may have roles"),
    pytest.param("user:ann", "", "user:ann", False, id="a role with the name of a user"),
    pytest.param("authenticated", "", "authenticated", False, id="a role with that name"),
]


@pytest.mark.parametrize(("who", "user", "roles", "expected"), WHO)
def test_who(who: str, user: str, roles: str, expected: bool) -> None:
    rules = AccessRules([rule("x", "allow send", "queue:q", who=who)], {"r": ["eve"]})
    identity = Identity(user, roles=frozenset(roles.split()))
    assert rules.decide(identity, "send", Resource("queue", "q")).allowed is expected


@pytest.mark.parametrize(("mechanism", "expected"), [("EXTERNAL", True), ("PLAIN", False)])
def test_a_role_for_logins_by_certificate(mechanism: str, expected: bool) -> None:
    rules = AccessRules([rule("x", "allow send", "queue:q")], {"r": ["cert:ann"]})
    identity = Identity("ann", roles=frozenset(), mechanism=mechanism)
    assert rules.decide(identity, "send", Resource("queue", "q")).allowed is expected


INSIDE = {"listener": ["amqps"], "from": ["10.0.0.0/8"], "tls": True}

WHEN = [
    pytest.param("amqps", "10.1.1.1", True, True, id="all conditions hold"),
    pytest.param("amqps", "10.1.1.1", False, False, id="no TLS"),
    pytest.param("amqps", "192.0.2.1", True, False, id="from elsewhere"),
    pytest.param("wss", "10.1.1.1", True, False, id="by another listener"),
]


@pytest.mark.parametrize(("listener", "address", "tls", "expected"), WHEN)
def test_conditions(listener: str, address: str, tls: bool, expected: bool) -> None:
    entrance = Entrance(listener=listener, kind="amqp", host=address, is_tls=tls)
    allowing = [rule("x", "allow send", "queue:q", when=INSIDE)]
    assert decide(allowing, "send queue:q", entrance=entrance).allowed is expected
    denying = [rule("all", "allow *", "queue:#"), rule("x", "deny send", "queue:q", when=INSIDE)]
    assert decide(denying, "send queue:q", entrance=entrance).allowed is not expected


OWN = "subscription:{client_id}/* queue:in.{user}.#"

VARIABLES = [
    pytest.param("use subscription:c1/news", "ann", "c1", True, id="its own client id"),
    pytest.param("use subscription:c2/news", "ann", "c1", False, id="another client id"),
    pytest.param("use subscription:c2/news", "ann", "*", False, id="a wildcard as client id"),
    pytest.param("use subscription:c1/news", "ann", "", False, id="no client id"),
    pytest.param("send queue:in.ann.x", "ann", "", True, id="its own name"),
    pytest.param("send queue:in.bob.x", "#", "", False, id="a wildcard as user"),
    pytest.param("send queue:in.bob.x", "*", "", False, id="another wildcard as user"),
]


@pytest.mark.parametrize(("request_", "user", "client_id", "expected"), VARIABLES)
def test_variables(request_: str, user: str, client_id: str, expected: bool) -> None:
    rules = [rule("own", "allow use send", OWN)]
    assert decide(rules, request_, user=user, client_id=client_id).allowed is expected


FIXED_RULES = [
    pytest.param(Resource("queue", "$tmp/queue/x"), "send", "admin", False, id="a guessed name"),
    pytest.param(Resource("queue", "$sub/durable/c/n"), "receive", "admin", False, id="a store"),
    pytest.param(Resource("queue", "$management"), "send", "admin", False, id="no queue"),
    pytest.param(Resource("temporary", "queue"), "receive", "application", False, id="another's"),
    pytest.param(Resource("temporary", "queue"), "purge", "admin", True, id="by the right to edit"),
    pytest.param(Resource("temporary", "topic"), "subscribe", "topics", True, id="of topics"),
    pytest.param(Resource("temporary", "queue"), "browse", "topics", False, id="not of queues"),
]

DYNAMIC = [
    pytest.param([], "ann", "", True, id="the creator without rules"),
    pytest.param([], "bob", "", False, id="another user without rules"),
    pytest.param([], None, "", False, id="no creator is known"),
    pytest.param([], "bob", "admin", True, id="an administrator"),
    pytest.param(["allow receive temporary:dynamic"], "bob", "", True, id="by a rule"),
    pytest.param(["allow receive temporary:*"], "bob", "", True, id="by a wildcard"),
    pytest.param(["allow receive queue:#"], "bob", "", False, id="by a rule on queues"),
    pytest.param(["allow send temporary:queue"], "ann", "", False, id="the creator with rules"),
    pytest.param(
        ["allow receive temporary:*", "deny receive temporary:dynamic"], "ann", "", False, id="deny"
    ),
]


@pytest.mark.requirement("TMP-04")
@pytest.mark.parametrize(("lines", "creator", "role", "expected"), DYNAMIC)
def test_receiving_from_dynamic_nodes(
    lines: list[str], creator: str | None, role: str, expected: bool
) -> None:
    made = [
        rule(f"r{number}", " ".join(line.split()[:-1]), line.split()[-1], who="user:ann")
        for number, line in enumerate(lines)
    ]
    roles = frozenset({role} if role else ())
    resource = Resource("temporary", "dynamic", creator=creator)
    decision = AccessRules(made).decide(Identity("ann", roles=roles), "receive", resource)
    assert decision.allowed is expected


@pytest.mark.parametrize(("resource", "verb", "role", "expected"), FIXED_RULES)
def test_fixed_rules(resource: Resource, verb: str, role: str, expected: bool) -> None:
    rules = AccessRules([rule("topics", "allow edit", "management:topics", who="role:topics")])
    decision = rules.decide(Identity("ann", roles=frozenset({role})), verb, resource)
    assert (decision.allowed, decision.because) == (expected, FIXED)


def test_a_list_of_names_is_allowed_only_as_a_whole() -> None:
    part = [rule("a", "allow view", "management:*"), rule("b", "deny view", "management:users")]
    assert decide(part, "view management:*").rule == "b"
    assert decide(part[:1], "view management:*").because == COVER
    assert (
        decide([rule("q", "allow send", "temporary:queue")], "send temporary:*").because == DEFAULT
    )


CLIENT_IDS = [
    pytest.param("app-1", True, id="a glob names it"),
    pytest.param("ann", True, id="some user's"),
    pytest.param("web", False, id="only the role admin names all"),
]


@pytest.mark.parametrize(("client_id", "expected"), CLIENT_IDS)
def test_client_ids_that_rules_name(client_id: str, expected: bool) -> None:
    named = rule("x", "allow use", "client-id:app-* client-id:a{user}")
    assert AccessRules([named]).names_client_id(client_id) is expected


ANY_RIGHT = [
    pytest.param("r", "send", "queue", True, id="one name is enough"),
    pytest.param("r", "send", "topic", False, id="another kind"),
    pytest.param("r", "receive", "queue", False, id="another verb"),
    pytest.param("s", "send", "queue", False, id="another role"),
    pytest.param("r", "use", "subscription", True, id="a kind with globs"),
]


@pytest.mark.parametrize(("role", "verb", "kind", "expected"), ANY_RIGHT)
def test_some_right_on_a_kind(role: str, verb: str, kind: str, expected: bool) -> None:
    rules = AccessRules([rule("x", "allow send use", "queue:in.{user} subscription:c/*")])
    identity = Identity("ann", roles=frozenset({role}))
    assert rules.may_any(identity, verb, kind) is expected


def test_a_condition_counts_for_some_right() -> None:
    rules = AccessRules([rule("x", "allow send", "queue:q", when={"tls": True})])
    identity = Identity("ann", roles=frozenset({"r"}))
    assert not rules.may_any(identity, "send", "queue")
    assert rules.may_any(
        identity,
        "send",
        "queue",
        entrance=Entrance(listener="a", kind="amqp", host="", is_tls=True),
    )


def test_each_set_has_a_higher_version() -> None:
    assert AccessRules().version < AccessRules().version


def test_roles_of_a_token_that_no_rule_names_cost_nothing() -> None:
    token = Identity("ann", roles=frozenset(f"r{number}" for number in range(5000)))
    assert AccessRules([rule("x", "allow send", "queue:q", who="role:r7")]).principals(token) == [
        "authenticated",
        "user:ann",
        "role:r7",
    ]


TOO_MUCH = [
    pytest.param([ALLOW, ALLOW], "rule allow: the id is given twice", id="an id twice"),
    pytest.param([ALLOW] * (RULES_MAX + 1), f"at most {RULES_MAX} are allowed", id="10,001 rules"),
    pytest.param(
        [
            rule(
                f"r{number}",
                "allow send",
                " ".join(f"queue:q{each}" for each in range(64)),
                who=" ".join(f"user:u{each}" for each in range(64)),
            )
            for number in range(PLACES_MAX // 64**2 + 1)
        ],
        f"more than {PLACES_MAX} pairs",
        id="places",
    ),
]


@pytest.mark.parametrize(("rules", "told"), TOO_MUCH)
def test_limits_of_a_set(rules: list[Rule], told: str) -> None:
    with pytest.raises(RuleError) as raised:
        AccessRules(rules)
    assert told in str(raised.value)


LIMITS = [
    pytest.param("topic:" + ".".join(["*"] * 33), id="33 words"),
    pytest.param("topic:#.a.#.b.#", id="three #"),
    pytest.param("topic:t/#.a.#.b.#", id="three # in the key"),
]


@pytest.mark.parametrize("text", LIMITS)
def test_what_exceeds_a_limit_is_refused(text: str) -> None:
    rules = AccessRules()
    client = Identity("ada", roles=frozenset({"application"}))
    decision = rules.decide(client, "subscribe", resource_of(text, "subscribe"))
    assert (decision.allowed, decision.because) == (False, UNDECIDED)


@pytest.mark.parametrize(
    ("text", "verb", "allowed"),
    [
        pytest.param("queue:a.b", "send", True, id="a queue"),
        pytest.param("topic:a.*.#", "subscribe", True, id="topics by a pattern"),
        pytest.param("subscription:c/s", "end", True, id="a subscription"),
        pytest.param("management:*", "edit", True, id="all of management"),
        pytest.param("queue:$sub/x", "send", False, id="a name of the broker's own"),
    ],
)
def test_an_admin_may_do_everything_unless_a_rule_denies_it(
    text: str, verb: str, allowed: bool
) -> None:
    admin = Identity("root", roles=frozenset({"admin"}))
    resource = resource_of(text, verb)
    assert AccessRules().decide(admin, verb, resource).allowed is allowed
    denied = rule("no", "deny *", text.replace("$sub/x", "x"), who="user:root")
    assert not AccessRules([denied]).decide(admin, verb, resource).allowed


OPS = "role:ops"
MONITOR = "role:monitor"

LIMITED = [
    pytest.param(OPS, "allow", {"monitor"}, False, id="a role of the rules file it does not name"),
    pytest.param(OPS, "allow", {"ops"}, True, id="a role of the rules file that it names"),
    pytest.param(OPS, "allow", {"boss"}, False, id="a role of others"),
    pytest.param(MONITOR, "allow", {"monitor"}, True, id="a role of the users file that it names"),
    pytest.param(MONITOR, "allow", {"ops"}, False, id="one that it does not name"),
    pytest.param("role:boss", "allow", {"boss"}, False, id="a role that its user lacks"),
    pytest.param("user:tok", "allow", {"monitor", "ops"}, False, id="its user"),
    pytest.param("authenticated", "allow", set(), True, id="what every login has"),
    pytest.param(OPS, "deny", {"monitor"}, False, id="deny a role of the rules file"),
    pytest.param(MONITOR, "deny", {"ops"}, False, id="deny a role of the users file"),
    pytest.param("user:tok", "deny", {"monitor"}, False, id="deny its user"),
]


@pytest.mark.parametrize("request_", ["send queue:q", "view management:queues"])
@pytest.mark.parametrize(("who", "effect", "only", "allowed"), LIMITED)
def test_a_login_that_is_limited_to_some_roles(
    who: str, effect: str, only: set[str], allowed: bool, request_: str
) -> None:
    verb, text = request_.split()
    rules = [rule("it", f"{effect} {verb}", text, who=who)]
    if effect == "deny":
        rules.append(rule("else", f"allow {verb}", text, who="authenticated"))
    access = AccessRules(rules, {"ops": ["tok"], "boss": ["ann"]})
    roles = frozenset({"monitor"}) if "monitor" in who else frozenset({"idle"})
    resource = resource_of(text, verb)
    whole = Identity("tok", roles=roles)
    part = Identity("tok", roles=roles, limited_to=frozenset(only))
    assert access.decide(part, verb, resource).allowed is allowed
    assert access.decide(whole, verb, resource).allowed or not allowed
    explained = access.explain(part, verb, resource).decision
    assert explained == ("allowed" if allowed else "refused")
    if effect == "allow":
        assert access.may_any(part, verb, resource.kind) is allowed


@pytest.mark.parametrize(
    ("only", "allowed"), [(None, True), ({"admin"}, True), ({"monitor"}, False)]
)
def test_an_admin_that_is_limited_to_another_role_is_none(
    only: set[str] | None, allowed: bool
) -> None:
    limited_to = None if only is None else frozenset(only)
    roles = frozenset({"admin", "monitor"})
    admin = Identity("root", roles=roles, limited_to=limited_to)
    for text, verb in (("queue:q", "send"), ("management:users", "edit")):
        assert AccessRules().decide(admin, verb, resource_of(text, verb)).allowed is allowed


@pytest.mark.parametrize(("only", "allowed"), [(None, True), ({"monitor"}, False)])
def test_a_limited_login_does_not_receive_as_the_creator_of_a_dynamic_node(
    only: set[str] | None, allowed: bool
) -> None:
    limited_to = None if only is None else frozenset(only)
    client = Identity("ann", roles=frozenset({"monitor"}), limited_to=limited_to)
    dynamic = Resource("temporary", "dynamic", creator="ann")
    assert AccessRules().decide(client, "receive", dynamic).allowed is allowed


@pytest.mark.parametrize("who", ["user:tok", "role:monitor", "role:ops"])
def test_limits_of_a_user_hold_for_a_login_that_is_limited_to_some_roles(who: str) -> None:
    limit = limit_of({"who": [who], "connections": 3}, 1)
    access = AccessRules(roles={"ops": ["tok"]}, limits=[limit])
    part = Identity("tok", roles=frozenset({"monitor"}), limited_to=frozenset())
    assert access.limits_of(part).most("connections") == 3


def test_the_roles_that_the_rules_file_gives_to_a_user() -> None:
    access = AccessRules(roles={"ops": ["tok", "ann"], "boss": ["ann"]})
    assert access.file_roles_of("tok") == {"ops"}
    assert access.file_roles_of("eve") == frozenset()
