"""`$cbs`: a client renews its login by a new token, and every other request is refused."""

from __future__ import annotations

from collections.abc import Coroutine

import pytest

from broker.amqp.errors import NOT_FOUND
from broker.amqp.terminus import Target
from broker.links.authenticator import LoginRefused
from broker.links.service import CLAIMS
from broker.management.claims import ClaimsService
from broker.management.later import LATER_MAX
from broker.oauth_settings import TOKEN_BYTES_MAX
from broker.security.identity import Identity
from broker.security.turns import TooManyLogins
from tests.support.broker import Broker, Doorman
from tests.support.frames import Disposition, Transfer, attach_receiver, attach_sender
from tests.support.management import Reply, read_reply, request

pytestmark = pytest.mark.requirement("SEC-07")


class RenewingUsers(Doorman):
    """An authenticator that takes the tokens `good` and `later`, and never knows of `unknown`."""

    async def renew(self, identity: Identity, token: str) -> Identity:
        if token == "unknown":
            raise TooManyLogins("the issuer was not reached")
        if token not in ("good", "later"):
            raise LoginRefused("the token is of another user")
        return identity.with_roles(identity.roles | {token})


class Office:
    """A broker with the service, and a client with a link to it in each direction."""

    def __init__(
        self, authenticator: Doorman | None = None, *, receiver: Target | None = None
    ) -> None:
        self.broker = Broker(authenticator=authenticator or RenewingUsers())
        self.beside: list[Coroutine[None, None, None]] = []
        container = self.broker.container
        container.claims_service = ClaimsService(container, self.beside.append)
        self.client = self.broker.session()
        self.client.attach_sender(CLAIMS)
        target = receiver or Target(address="here")
        self.client.attach(attach_receiver(CLAIMS, handle=1, target=target))
        self.client.flow(handle=1, credit=1000, delivery_count=0)
        self._sent = 0

    def send(self, payload: bytes) -> None:
        number = self._sent
        self._sent += 1
        self.client.send(Transfer(delivery_id=number, tag=b"%d" % number, payload=payload))

    async def work(self) -> None:
        while self.beside:
            await self.beside.pop(0)

    async def ask(self, payload: bytes) -> Reply:
        self.send(payload)
        await self.work()
        (found,) = self.replies()
        return found

    def replies(self) -> list[Reply]:
        bodies = self.client.bodies()
        return [read_reply(each.payload) for each in bodies if isinstance(each, Transfer)]

    async def put(self, token: object, kind: str = "jwt", **fields: object) -> Reply:
        return await self.ask(request("put-token", kind, "amqp://here/q", body=token, **fields))  # type: ignore[arg-type]


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.mark.parametrize("kind", ["jwt", "amqp:jwt"])
async def test_a_token_renews_the_login(office: Office, kind: str) -> None:
    reply = await office.put("good", kind, message_id="m")
    assert (reply.status, reply.correlation_id) == (202, "m")
    assert "good" in office.client.peer.identity.roles
    assert office.broker.stats.logins_renewed == 1


async def test_a_token_that_is_refused_changes_nothing(office: Office) -> None:
    before = office.client.peer.identity
    reply = await office.put("bad")
    assert reply.status == 401
    assert "another user" not in reply.description, "the operator learns why, from the log"
    assert office.client.peer.identity is before
    assert office.client.peer.is_live()
    assert office.broker.stats.authentication_failures == 1
    denied = "not renewed client: the token is of another user"
    assert denied in office.broker.watcher.events


async def test_a_token_that_cannot_be_checked_may_be_sent_again(office: Office) -> None:
    assert (await office.put("unknown")).status == 503
    assert (await office.put("good")).status == 202


REFUSED = [
    # operation, type, body; status
    pytest.param("delete-token", "jwt", "good", 501, id="another operation"),
    pytest.param(None, "jwt", "good", 501, id="no operation"),
    pytest.param("put-token", "servicebus.windows.net:sastoken", "good", 400, id="another type"),
    pytest.param("put-token", None, "good", 400, id="no type"),
    pytest.param("put-token", "jwt", {"a": 1}, 400, id="a map"),
    pytest.param("put-token", "jwt", "x" * (TOKEN_BYTES_MAX + 1), 400, id="a huge token"),
]


@pytest.mark.parametrize(("operation", "kind", "body", "status"), REFUSED)
async def test_other_requests_are_refused(
    office: Office, operation: str | None, kind: str | None, body: object, status: int
) -> None:
    reply = await office.ask(request(operation, kind, properties={"x": 1}, body=body))
    assert reply.status == status
    assert office.broker.stats.logins_renewed == 0


async def test_a_token_of_the_largest_size_is_read(office: Office) -> None:
    assert (await office.put("x" * TOKEN_BYTES_MAX)).status == 401


async def test_a_request_without_a_body_is_refused(office: Office) -> None:
    reply = await office.ask(request("put-token", "jwt", without_body=True))
    assert reply.status == 400


async def test_few_tokens_are_checked_at_once(office: Office) -> None:
    for _ in range(LATER_MAX + 1):
        office.send(request("put-token", "jwt", body="good"))
        office.client.flow(handle=1, credit=1000, delivery_count=0)
    (busy,) = office.replies()
    assert busy.status == 503
    await office.work()
    assert [each.status for each in office.replies()] == [202] * LATER_MAX
    assert (await office.put("later")).status == 202


async def test_a_client_that_has_gone_gets_no_response(office: Office) -> None:
    office.send(request("put-token", "jwt", body="good"))
    office.client.hang_up()
    await office.work()
    assert office.broker.stats.logins_renewed == 0


async def test_a_response_goes_to_the_only_link_if_the_request_names_none() -> None:
    """Azure's client for Python names neither a target nor a reply-to."""
    office = Office(receiver=Target())
    reply = await office.put("good", reply_to=None)
    assert (reply.status, reply.to) == (202, CLAIMS)


async def test_a_request_without_a_way_back_is_not_taken(office: Office) -> None:
    office.send(request("put-token", "jwt", body="good", reply_to="elsewhere"))
    assert not office.beside
    rejected = [each for each in office.client.bodies() if isinstance(each, Disposition)]
    assert len(rejected) == 1


def test_without_the_service_there_is_no_such_node() -> None:
    broker = Broker()
    client = broker.session()
    for handle, attach in enumerate((attach_sender(CLAIMS), attach_receiver(CLAIMS, handle=1))):
        client.attach(attach)
        client.expect_detach(NOT_FOUND, handle=handle)


async def test_an_authenticator_without_tokens_renews_nothing() -> None:
    assert (await Office(Doorman()).put("good")).status == 401
