"""RENEW of the type `login`: a client renews its own login by a new token, without any right."""

from __future__ import annotations

from collections.abc import Coroutine

import pytest

from broker.links.authenticator import LoginRefused
from broker.management.later import LATER_MAX
from broker.management.management import Management
from broker.management.request import Request
from broker.management.response import Response
from broker.oauth_settings import TOKEN_BYTES_MAX
from broker.security.identity import APPLICATION, Identity
from broker.security.turns import TooManyLogins
from tests.support.broker import Broker, Doorman
from tests.support.frames import Transfer
from tests.support.management import Manager, Reply, read_reply, request
from tests.unit.management.test_configuration import caller

pytestmark = pytest.mark.requirement("SEC-07")

END_MS = 5_000_000_000_000


class TokenUsers(Doorman):
    """An authenticator whose users are applications, and that takes the token `good`."""

    async def renew(self, identity: Identity, token: str) -> Identity:
        if token == "unknown":
            raise TooManyLogins("the issuer was not reached")
        if token != "good":
            raise LoginRefused("the token is of another user")
        return Identity(identity.user, roles=identity.roles | {"new"}, valid_until_ms=END_MS)


class Office:
    """A broker with management, and a client of it without rights on it."""

    def __init__(self, authenticator: Doorman | None = None) -> None:
        self.broker = Broker(authenticator=authenticator or TokenUsers())
        self.beside: list[Coroutine[None, None, None]] = []
        container = self.broker.container
        container.service = self.management = Management(container, None, self.beside.append)
        self.manager = Manager(self.broker, user="ada")

    def send(self, operation: str = "RENEW", **arguments: object) -> None:
        self.manager.send(request(operation, "login", "own", body=arguments))

    async def work(self) -> None:
        while self.beside:
            await self.beside.pop(0)

    def replies(self) -> list[Reply]:
        bodies = self.manager.client.bodies()
        return [read_reply(each.payload) for each in bodies if isinstance(each, Transfer)]

    async def ask(self, operation: str = "RENEW", **arguments: object) -> Reply:
        self.send(operation, **arguments)
        await self.work()
        (found,) = self.replies()
        return found


@pytest.fixture
def office() -> Office:
    return Office()


async def test_a_token_renews_the_login(office: Office) -> None:
    reply = await office.ask(token="good")
    assert (reply.status, reply.map) == (200, {"valid_until_at": END_MS})
    assert office.manager.client.peer.identity.roles == {APPLICATION, "new"}
    assert office.broker.stats.logins_renewed == 1
    assert not any("good" in event for event in office.broker.watcher.events)


async def test_a_token_that_is_refused_changes_nothing(office: Office) -> None:
    before = office.manager.client.peer.identity
    reply = await office.ask(token="bad")
    assert reply.status == 401
    assert "another user" not in reply.description, "the operator learns why, from the log"
    assert office.manager.client.peer.identity is before
    denied = "not renewed manager: the token is of another user"
    assert denied in office.broker.watcher.events


async def test_a_token_that_cannot_be_checked_may_be_sent_again(office: Office) -> None:
    assert (await office.ask(token="unknown")).status == 503
    assert (await office.ask(token="good")).status == 200


async def test_an_authenticator_without_tokens_renews_nothing() -> None:
    assert (await Office(Doorman()).ask(token="good")).status == 401


WRONG = [
    pytest.param("RENEW", {}, 400, id="no token"),
    pytest.param("RENEW", {"token": 1}, 400, id="a number"),
    pytest.param("RENEW", {"token": "x" * (TOKEN_BYTES_MAX + 1)}, 400, id="a huge token"),
    pytest.param("RENEW", {"token": "good", "user": "eve"}, 400, id="another user"),
    pytest.param("READ", {}, 501, id="another operation"),
]


@pytest.mark.parametrize(("operation", "arguments", "status"), WRONG)
async def test_other_requests_are_refused(
    office: Office, operation: str, arguments: dict[str, object], status: int
) -> None:
    assert (await office.ask(operation, **arguments)).status == status
    assert office.broker.stats.logins_renewed == 0


async def test_a_token_of_the_largest_size_is_read(office: Office) -> None:
    assert (await office.ask(token="x" * TOKEN_BYTES_MAX)).status == 401


async def test_tokens_take_no_place_of_requests_for_the_store(office: Office) -> None:
    for _ in range(LATER_MAX + 1):
        office.send(token="good")
        office.manager.client.flow(handle=1, credit=1000, delivery_count=0)
    (busy,) = office.replies()
    assert busy.status == 503
    asked = Request(
        operation="EXPLAIN", type="acl", arguments={"verb": "send", "resource": "queue:a"}
    )
    found = office.management.perform(caller(), asked)
    assert not isinstance(found, Response), "it is answered later"
    await office.work()
    assert [each.status for each in office.replies()] == [200] * LATER_MAX


async def test_a_client_that_has_gone_gets_no_response(office: Office) -> None:
    office.send(token="good")
    office.manager.client.hang_up()
    await office.work()
    assert office.broker.stats.logins_renewed == 0


def test_a_request_that_came_by_another_way_has_no_login_to_renew(office: Office) -> None:
    asked = Request(operation="RENEW", type="login", arguments={"token": "good"})
    found = office.management.perform(caller(), asked)
    assert isinstance(found, Response)
    assert found.status == 409
