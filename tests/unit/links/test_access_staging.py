"""Queries of sinks belong to a user: others stage nothing for them."""

from __future__ import annotations

import pytest

from broker.links.staging import ATTEMPT, BATCH, PARTITION, QUERY
from broker.security.access import AccessRules
from storage.memory import MemoryStore
from tests.support.access import (
    ADA,
    CONNECTING,
    RuledUsers,
    access_of,
    refusal,
    refusal_of_attach,
    rule,
    session_as,
    things,
)
from tests.support.broker import Broker, Client
from tests.support.frames import attach_sender
from tests.support.resuming import restarted

pytestmark = [pytest.mark.requirement("SEC-04", "PIP-12"), pytest.mark.attack("Z5")]

BOB = "bob"

EDIT = "edit management:sinks"


def rules(*more: str) -> AccessRules:
    """Return rules that let each client stage in queues of its own, and `bob` do more."""
    own = [f"{verb} queue:{name}" for verb in ("send,create,stage",) for name in ("a.#", "b.#")]
    found = list(access_of(connecting=(*CONNECTING, *own)).rules)
    found += [rule(f"bob{at}", right, who=f"user:{BOB}") for at, right in enumerate(more)]
    return AccessRules([each for each in found if not each.is_built_in])


def broker_of(*more: str, store: MemoryStore | None = None) -> Broker:
    return Broker(authenticator=RuledUsers(), access=rules(*more), store=store)


def staging(client: Client, address: str, *, handle: int = 0, **changes: object) -> str | None:
    """Attach a link of a stage; return why that is not permitted, None if it is."""
    properties: dict[str, object] = {QUERY: "orders", BATCH: 1, PARTITION: 0, ATTEMPT: 6}
    properties |= {f"stage-{name}": value for name, value in changes.items()}
    attach = attach_sender(address, name=f"link {handle}", handle=handle, properties=properties)
    return refusal_of_attach(client, attach)


def staged_by(broker: Broker, user: str, address: str = "a.out") -> Client:
    """Let a user stage two messages, and leave."""
    client = session_as(broker, user)
    assert staging(client, address) is None
    client.transfer(0)
    client.transfer(1)
    client.frames()
    client.hang_up()
    return client


def staged(broker: Broker) -> int:
    return int(broker.router.staging_area.messages())


SAME = [
    pytest.param({}, id="the same attempt"),
    pytest.param({"attempt": 7}, id="another attempt"),
    pytest.param({"partition": 1}, id="another task"),
    pytest.param({"batch": 2}, id="another batch"),
]

USERS = [
    pytest.param(ADA, BOB, id="another user"),
    pytest.param(ADA, "", id="a client without a login"),
    pytest.param("", BOB, id="a user, after a client without a login"),
]


@pytest.mark.parametrize("changes", SAME)
@pytest.mark.parametrize(("first", "other"), USERS)
def test_another_user_stages_nothing_for_a_query(
    first: str, other: str, changes: dict[str, int]
) -> None:
    broker = broker_of()
    staged_by(broker, first)
    client = session_as(broker, other, "other")
    before = things(broker)
    assert staging(client, "b.q", **changes) == refusal(EDIT)
    assert things(broker) == before, "the queue is not made"
    area = broker.router.staging_area
    assert len(area.choose("orders", 1, [(0, 6, 2)])) == 1


def test_other_queries_are_free() -> None:
    broker = broker_of()
    staged_by(broker, ADA)
    assert staging(session_as(broker, BOB), "b.q", query="other") is None


def test_the_owner_goes_on() -> None:
    broker = broker_of()
    staged_by(broker, ADA)
    client = session_as(broker, ADA)
    assert staging(client, "a.out") is None
    assert staging(client, "a.more", handle=1, batch=2) is None


def test_a_user_that_may_edit_sinks_stages_for_every_query() -> None:
    broker = broker_of(EDIT)
    staged_by(broker, ADA)
    assert staging(session_as(broker, BOB), "b.q") is None
    assert staging(session_as(broker, ADA), "a.out") is None, "the owner stays"


def test_a_query_stays_with_its_owner_once_it_has_committed() -> None:
    broker = broker_of()
    staged_by(broker, ADA)
    area, batch = broker.router.staging_area, broker.journal.batch
    chosen = area.choose("orders", 1, [(0, 6, 2)])
    area.begin_commit("orders", 1, chosen, batch=batch)
    for stage in chosen:
        stage.end(batch)
    assert staging(session_as(broker, BOB), "b.q", batch=2) == refusal(EDIT)


def test_a_query_that_is_forgotten_belongs_to_the_next_user() -> None:
    broker = broker_of()
    staged_by(broker, ADA)
    area, batch = broker.router.staging_area, broker.journal.batch
    for stage in area.take_all("orders", batch):
        stage.end(batch)
    assert staging(session_as(broker, BOB), "b.q") is None
    assert staging(session_as(broker, ADA), "a.out") == refusal(EDIT)


def test_a_refused_attach_makes_nobody_the_owner() -> None:
    broker = broker_of()
    assert staging(session_as(broker, BOB), "c.q") == refusal("send queue:c.q")
    staged_by(broker, ADA)


async def test_the_owner_is_known_after_a_restart() -> None:
    store = MemoryStore()
    broker = broker_of(store=store)
    staged_by(broker, ADA)
    broker.container.run_round()
    again = await restarted(store, authenticator=RuledUsers(), access=rules())
    assert staged(again) == 2
    assert staging(session_as(again, BOB), "b.q") == refusal(EDIT)
    assert staging(session_as(again, ADA), "a.out") is None
