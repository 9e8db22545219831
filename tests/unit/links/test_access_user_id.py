"""The user-id of messages: a client names its own user, and others only with the right to."""

from __future__ import annotations

import pytest

from broker.amqp.errors import DECODE_ERROR, RESOURCE_LIMIT_EXCEEDED, UNAUTHORIZED_ACCESS
from broker.amqp.limits import USER_ID_SIZE_MAX
from broker.amqp.outcomes import Accepted, Rejected, TransactionalState
from broker.security.identity import ADMIN, Identity
from tests.support.access import (
    ADA,
    OWNER,
    RecordedRules,
    RuledUsers,
    access_of,
    guarded,
    recorded,
    refusal,
    refusal_of_message,
    session_as,
)
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, message
from tests.support.large import StreamingBroker, large, pieces
from tests.support.transactions import Controller

pytestmark = [pytest.mark.requirement("SEC-10"), pytest.mark.attack("Z8")]

SENDING = "send,create queue:q"
BOB = "user-id:bob"


def sender(
    *rights: str, user: str = ADA, address: str | None = "q"
) -> tuple[RecordedRules, Client]:
    """Return a client with these rights that sends to `address`, and the decisions on it."""
    rules, access = recorded(access_of(SENDING, *rights))
    broker = Broker(authenticator=RuledUsers(), access=access, credit=1000)
    client = session_as(broker, user)
    client.attach_sender(address)
    rules.taken()
    return rules, client


def send(client: Client, user_id: bytes | None, number: int = 0) -> str | None:
    """Send a message with that user-id; return why it is refused, None if it is not."""
    client.transfer(number, payload=message(to="q", user_id=user_id))
    return refusal_of_message(client)


@pytest.mark.parametrize(
    ("user_id", "rights", "refused"),
    [
        pytest.param(None, (), None, id="none"),
        pytest.param(b"ada", (), None, id="its own user"),
        pytest.param(b"bob", (), refusal(f"impersonate {BOB}"), id="another user"),
        pytest.param(b"", (), refusal("impersonate user-id:"), id="an empty one"),
        pytest.param(b"Ada", (), refusal("impersonate user-id:Ada"), id="another case"),
        pytest.param(b"\xff", (), refusal("impersonate user-id:\ufffd"), id="no UTF-8"),
        pytest.param(b"bob", (f"impersonate {BOB}",), None, id="another user with the right"),
        pytest.param(
            b"eve", (f"impersonate {BOB}",), refusal("impersonate user-id:eve"), id="a third user"
        ),
    ],
)
@pytest.mark.parametrize("address", ["q", None], ids=["to a node", "by the relay"])
def test_a_user_id_is_that_of_the_client(
    address: str | None, user_id: bytes | None, rights: tuple[str, ...], refused: str | None
) -> None:
    _, client = sender(*rights, address=address)
    assert send(client, user_id) == refused


def test_an_administrator_may_name_any_user() -> None:
    assert RuledUsers().roles[OWNER] == {ADMIN}
    _, client = sender(user=OWNER)
    assert send(client, b"bob") is None


def test_a_refused_message_is_nowhere() -> None:
    broker = guarded(SENDING)
    client = session_as(broker)
    client.attach_sender("q")
    assert send(client, b"bob") is not None
    assert [each.contents() for each in broker.queues()] == [0]
    assert broker.stats.access_denied == 1


def test_the_rules_are_asked_once_for_a_user_id() -> None:
    rules, client = sender("impersonate user-id:*")
    for number, user_id in enumerate([b"bob", b"bob", b"eve", b"eve", b"ada", b"ada"]):
        assert send(client, user_id, number) is None
    asked = [right for right, _ in rules.taken() if "user-id" in right]
    assert asked == [f"impersonate {BOB}", "impersonate user-id:eve"]


def test_new_rules_count_from_the_next_message_on() -> None:
    broker = guarded(SENDING, f"impersonate {BOB}", credit=1000)
    client = session_as(broker)
    client.attach_sender("q")
    assert send(client, b"bob") is None
    broker.container.adopt_access(access_of(SENDING))
    assert send(client, b"bob", 1) == refusal(f"impersonate {BOB}")


def test_a_transaction_with_such_a_message_cannot_be_committed() -> None:
    broker = guarded(SENDING, credit=1000)
    ada = Controller(broker, client=session_as(broker))
    ada.client.attach_sender("q")
    txn = ada.declare()
    state = TransactionalState(txn_id=txn)
    ada.transfer(message(user_id=b"bob"), state=state, settled=True)
    ada.client.expect_nothing()
    assert ada.fail_to_commit(txn) == UNAUTHORIZED_ACCESS
    assert broker.queue().contents() == 0


async def test_the_user_id_of_a_large_message_is_compared_too() -> None:
    async with StreamingBroker() as streaming:
        client = streaming.broker.session()
        client.peer.identity = Identity(ADA, roles=frozenset())
        streaming.broker.container.access = access_of(SENDING)
        client.attach_sender("q")
        client.send(*pieces(large(user_id=b"bob")[0]))
        await streaming.work()
        assert refusal_of_message(client) == refusal(f"impersonate {BOB}")


@pytest.mark.parametrize(
    ("size", "accepted"), [(USER_ID_SIZE_MAX, True), (USER_ID_SIZE_MAX + 1, False)]
)
def test_a_user_id_has_a_size_limit(size: int, *, accepted: bool) -> None:
    _, client = sender("impersonate user-id:*")
    client.transfer(payload=message(user_id=bytes(size)))
    told = client.expect_last(Disposition)
    if accepted:
        assert isinstance(told.state, Accepted)
    else:
        assert isinstance(told.state, Rejected)
        assert told.state.error is not None
        assert told.state.error.condition == RESOURCE_LIMIT_EXCEEDED


def test_a_user_id_that_is_no_binary_is_refused() -> None:
    _, client = sender()
    payload = message(user_id=b"ada").replace(b"\xa0\x03ada", b"\xa1\x03ada")
    client.transfer(payload=payload)
    told = client.expect_last(Disposition)
    assert isinstance(told.state, Rejected)
    assert told.state.error is not None
    assert told.state.error.condition == DECODE_ERROR
