"""Ownership of container-ids: one user does not take another's (Z11, CON-05, CON-06)."""

from __future__ import annotations

import pytest

from broker.amqp.errors import INVALID_FIELD, RESOURCE_LOCKED
from broker.amqp.performatives import Attach, Close, Open
from broker.amqp.types import UInt
from broker.security.access import AccessRules
from tests.support.access import (
    ADA,
    RuledUsers,
    access_of,
    dial_as,
    guarded,
    refusal,
    refusal_of_attach,
    refusal_of_open,
    rule,
    session_as,
)
from tests.support.broker import Broker, Client
from tests.support.frames import Header, attach_receiver, attach_sender, opening
from tests.support.subscriptions import looking_up, subscribing

pytestmark = pytest.mark.attack("Z11")

BOB = "bob"
USE = "use client-id:c"

Fields = dict[str, object]


def sole(**policies: int) -> Fields:
    """Return the fields of an open that asks for sole use of its container-id."""
    told = {f"sole-connection-{name}-policy": UInt(value) for name, value in policies.items()}
    return {"desired_capabilities": ["sole-connection-for-container"], "properties": told}


OPENS = [
    pytest.param({}, id="without a claim"),
    pytest.param(sole(), id="for sole use"),
    pytest.param(sole(detection=1), id="for sole use, weakly"),
    pytest.param(sole(enforcement=1), id="to close the existing one"),
    pytest.param(sole(enforcement=1, detection=1), id="to close the existing one, weakly"),
]


def undisturbed(holder: Client) -> bool:
    """Return whether a client got nothing, and is still served."""
    holder.expect_nothing()
    return refusal_of_attach(holder, attach_sender(name="after")) is None


def opened(broker: Broker, user: str, **fields: object) -> str | None:
    """Open a connection with the container-id `c`; return the condition of a refusal."""
    client = dial_as(broker, user)
    client.send_bytes(opening("c", **fields))
    client.expect(Header)
    client.expect(Open)
    if client.peer.is_open:
        return None
    close = client.expect_last(Close)
    assert close.error is not None
    return str(close.error.condition)


@pytest.mark.parametrize("held", OPENS)
@pytest.mark.parametrize("wanted", OPENS)
@pytest.mark.parametrize("user", [BOB, ""], ids=["another user", "a client without a login"])
def test_another_user_does_not_get_a_container_id_that_is_held(
    held: Fields, wanted: Fields, user: str
) -> None:
    broker = guarded("send,create queue:q")
    holder = session_as(broker, ADA, "c", **held)
    assert refusal_of_open(dial_as(broker, user), "c", **wanted) == refusal(USE)
    assert undisturbed(holder)
    assert broker.container.peer_count() == 1
    assert broker.stats.connections_refused == 1


@pytest.mark.parametrize("user", [ADA, BOB], ids=["a user", "another user"])
def test_a_client_without_a_login_keeps_its_container_id(user: str) -> None:
    broker = guarded()
    holder = session_as(broker, "", "c")
    assert refusal_of_open(dial_as(broker, user), "c", **sole(enforcement=1)) == refusal(USE)
    holder.expect_nothing()


SAME = [
    # requests of the holder and of the newcomer, the condition, whether the holder stays
    pytest.param({}, {}, None, True, id="both share"),
    pytest.param(sole(), {}, INVALID_FIELD, True, id="held for sole use"),
    pytest.param({}, sole(), INVALID_FIELD, True, id="wanted for sole use"),
    pytest.param({}, sole(enforcement=1), None, False, id="the existing one is closed"),
    pytest.param(sole(), sole(enforcement=1), INVALID_FIELD, True, id="the holder's policy wins"),
]


@pytest.mark.parametrize(("held", "wanted", "condition", "stays"), SAME)
def test_connections_of_one_user_follow_the_rules_of_sole_use(
    held: Fields, wanted: Fields, condition: str | None, stays: bool
) -> None:
    broker = guarded("send,create queue:q")
    holder = session_as(broker, ADA, "c", **held)
    assert opened(broker, ADA, **wanted) == condition
    if stays:
        assert undisturbed(holder)
    else:
        holder.expect_close(RESOURCE_LOCKED)


def test_a_container_id_is_free_once_its_user_has_left() -> None:
    broker = guarded()
    holder = session_as(broker, ADA, "c")
    holder.hang_up()
    assert opened(broker, BOB) is None


def test_a_user_with_the_right_shares_the_container_id_of_another() -> None:
    """The links of both are then one name space: the right lets a user steal them."""
    given = [rule(f"named-{user}", USE, who=f"user:{user}") for user in (ADA, BOB)]
    rules = [each for each in access_of("send,create queue:q").rules if not each.is_built_in]
    users = RuledUsers({BOB: {"application"}})
    broker = Broker(authenticator=users, access=AccessRules([*rules, *given]))
    holder = session_as(broker, BOB, "c")
    assert refusal_of_attach(holder, attach_sender()) is None
    newcomer = session_as(broker, ADA, "c")
    assert refusal_of_attach(newcomer, attach_sender()) is None
    holder.expect_detach("amqp:link:stolen")
    assert refusal_of_open(dial_as(broker, "cat"), "c") == refusal(USE)


LINKS = [
    pytest.param(attach_sender(), id="a sender"),
    pytest.param(attach_receiver(name="sender"), id="a receiver"),
    pytest.param(subscribing("durable", "sender"), id="a durable subscriber"),
    pytest.param(looking_up("", "sender"), id="a lookup"),
]


@pytest.mark.parametrize("attach", LINKS)
def test_a_link_of_the_same_name_is_another_one(attach: Attach) -> None:
    """Names of links are those of a container-id, which no other user gets."""
    users = RuledUsers({BOB: {"application"}})
    broker = Broker(authenticator=users, access=access_of("send,create queue:q"))
    holder = session_as(broker, ADA, "c")
    assert refusal_of_attach(holder, attach_sender()) is None
    other = session_as(broker, BOB, "d")
    other.send(attach)
    other.frames()
    holder.expect_nothing()
    holder.transfer(settled=True)
    assert broker.queue().contents() == 1


# -- rules that name a container-id


def naming(pattern: str, *, effect: str = "allow") -> Broker:
    """Return a broker with one rule on container-ids, for `ada`."""
    rules = [each for each in access_of().rules if not each.is_built_in]
    named = rule("named", f"use client-id:{pattern}", effect=effect)
    return Broker(authenticator=RuledUsers(), access=AccessRules([*rules, named]))


NAMED = [
    # pattern, user, container-id, whether it gets the id, which is idle
    ("c", ADA, "c", True, "its user"),
    ("c", BOB, "c", False, "another user"),
    ("c", "", "c", False, "a client without a login"),
    ("c", BOB, "d", True, "another id"),
    ("app-*", BOB, "app-1", False, "a pattern of ids"),
    ("app-*", ADA, "app-1", True, "a pattern of ids, its user"),
    ("app-*", BOB, "application", True, "an id beside the pattern"),
    ("{user}", ADA, ADA, True, "an id that is the user's name"),
    ("{user}", BOB, "x", False, "any value of a variable"),
]


@pytest.mark.parametrize(
    ("pattern", "user", "container_id", "gets_it"),
    [case[:4] for case in NAMED],
    ids=[case[4] for case in NAMED],
)
def test_an_id_that_a_rule_names_needs_the_right_even_if_it_is_idle(
    pattern: str, user: str, container_id: str, gets_it: bool
) -> None:
    broker = naming(pattern)
    told = refusal_of_open(dial_as(broker, user), container_id)
    assert told == (None if gets_it else refusal(f"use client-id:{container_id}"))
    assert broker.container.peer_count() == int(gets_it)


def test_a_deny_rule_keeps_a_user_from_an_id() -> None:
    broker = naming("c", effect="deny")
    told = refusal_of_open(dial_as(broker, ADA), "c")
    assert told == "not allowed to use client-id:c (rule named)"
    assert refusal_of_open(dial_as(broker, ADA), "d") is None
