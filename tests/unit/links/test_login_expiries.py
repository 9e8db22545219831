"""Connections whose login ends: they are closed then, unless the login is renewed."""

from __future__ import annotations

import pytest

from broker.amqp.errors import CONNECTION_FORCED, UNAUTHORIZED_ACCESS
from broker.amqp.performatives import Close, Detach
from broker.links.login_expiries import AT_ONCE_MAX, EXPIRED, LOOK_MS, STALE_MAX
from broker.security.identity import FOREVER, Identity
from tests.support.broker import Broker, Client, Doorman
from tests.support.frames import attach_sender

pytestmark = pytest.mark.requirement("SEC-07")

LIFE_MS = 5 * 60_000


class TokenUsers(Doorman):
    """An authenticator whose users' logins end `life_ms` after they began."""

    def __init__(self, life_ms: int = LIFE_MS) -> None:
        super().__init__()
        self.life_ms = life_ms
        self.broker: Broker | None = None

    def current(self, identity: Identity) -> Identity | None:
        return identity if identity.issuer else self.login()

    def login(self, *roles: str, scopes: tuple[str, ...] = ()) -> Identity:
        assert self.broker is not None
        until_ms = int(self.broker.clock.wall_ms()) + self.life_ms
        return Identity(
            "ada",
            roles=frozenset(roles or {"application"}),
            valid_until_ms=int(FOREVER) if self.life_ms < 0 else until_ms,
            issuer="i",
            scopes=scopes,
        )


@pytest.fixture
def users() -> TokenUsers:
    return TokenUsers()


@pytest.fixture
def broker(users: TokenUsers) -> Broker:
    users.broker = Broker(authenticator=users)
    return users.broker


def expect_expired(client: Client) -> None:
    close = client.expect(Close)
    assert close.error is not None
    assert close.error.condition == CONNECTION_FORCED
    assert close.error.description == EXPIRED


def pass_time(broker: Broker, milliseconds: int) -> None:
    """Let time pass in steps, as the timers of an idle connection do."""
    for _ in range(milliseconds // 1000):
        broker.advance(1000)


def test_a_connection_is_closed_when_its_login_ends(broker: Broker) -> None:
    client = broker.connect()
    broker.clock.advance(LIFE_MS - 1)
    broker.container.login_expiries.due(broker.clock.now_ms())
    assert client.peer.is_live()
    broker.clock.advance(1)
    broker.container.login_expiries.due(broker.clock.now_ms())
    broker.container.run_round()
    expect_expired(client)
    assert broker.stats.logins_expired == 1


def test_a_timer_does_that(users: TokenUsers, broker: Broker) -> None:
    users.life_ms = 500
    client = broker.connect()
    broker.advance(499)
    assert client.peer.is_live()
    broker.advance(1)
    expect_expired(client)


def test_one_timer_serves_all(users: TokenUsers, broker: Broker) -> None:
    """A login that ends earlier than all others is closed in time, too."""
    clients = []
    for life_ms in (900, 300, 600):
        users.life_ms = life_ms
        clients.append(broker.connect(f"c{life_ms}"))
    for at_ms, client in ((300, clients[1]), (300, clients[2]), (300, clients[0])):
        assert client.peer.is_live()
        broker.advance(at_ms)
        expect_expired(client)


def test_the_wall_clock_decides_within_a_minute(users: TokenUsers, broker: Broker) -> None:
    users.life_ms = 3_600_000
    client = broker.connect()
    broker.clock.set_wall(3_600_000)
    broker.container.tick()
    assert client.peer.is_live(), "nothing has told of the change"
    broker.clock.advance(int(LOOK_MS))
    broker.container.login_expiries.due(broker.clock.now_ms())
    broker.container.run_round()
    expect_expired(client)


def test_a_login_without_an_end_needs_no_timer(users: TokenUsers, broker: Broker) -> None:
    users.life_ms = -1
    client = broker.connect()
    assert len(broker.container.login_expiries) == 0
    pass_time(broker, 10_000)
    assert client.peer.is_live()


def test_a_renewed_login_ends_later(users: TokenUsers, broker: Broker) -> None:
    users.life_ms = 2000
    client = broker.connect()
    broker.advance(1000)
    broker.container.login_expiries.renewed(client.peer, users.login())
    broker.advance(1999)
    assert client.peer.is_live()
    broker.advance(1)
    expect_expired(client)
    assert broker.stats.logins_renewed == 1


def test_a_login_may_be_renewed_without_an_end(users: TokenUsers, broker: Broker) -> None:
    users.life_ms = 1000
    client = broker.connect()
    users.life_ms = -1
    broker.container.login_expiries.renewed(client.peer, users.login())
    broker.advance(2000)
    assert client.peer.is_live()


def test_a_connection_that_has_ended_leaves_nothing(users: TokenUsers, broker: Broker) -> None:
    users.life_ms = 10_000_000
    expiries = broker.container.login_expiries
    for _ in range(3 * STALE_MAX):
        broker.connect().hang_up()
    assert len(expiries) == 0
    assert len(expiries._heap) <= STALE_MAX + 1


def test_many_logins_that_end_at_once_are_closed_in_several_turns(
    users: TokenUsers, broker: Broker
) -> None:
    users.life_ms = 1000
    count = int(AT_ONCE_MAX) + 1
    clients = [broker.connect(f"c{number}") for number in range(count)]
    broker.advance(1000)
    assert sum(client.peer.is_live() for client in clients) == 1
    broker.container.tick()
    assert not any(client.peer.is_live() for client in clients)


def test_a_link_that_the_renewed_login_has_no_right_for_is_detached(users: TokenUsers) -> None:
    """Links of other connections of that user are not judged: their login is another one."""
    users.broker = broker = Broker(authenticator=users)
    sender, other = broker.session("sender"), broker.session("other")
    for client in (sender, other):
        client.attach(attach_sender())
        client.bodies()
    broker.container.login_expiries.renewed(sender.peer, users.login("monitor"))
    broker.container.tick()
    detach = sender.expect_detach(UNAUTHORIZED_ACCESS)
    assert isinstance(detach, Detach)
    other.expect_nothing()


def test_a_link_ends_with_the_scope_that_gave_its_right(users: TokenUsers) -> None:
    users.broker = broker = Broker(authenticator=users)
    client = broker.connect()
    may_send = ("connect:connection:*", "produce:queue:q")
    broker.container.login_expiries.renewed(client.peer, users.login("none", scopes=may_send))
    client.begin()
    client.attach(attach_sender("q"))
    client.bodies()
    broker.container.login_expiries.renewed(
        client.peer, users.login("none", scopes=("connect:connection:*", "produce:queue:other"))
    )
    broker.container.tick()
    client.expect_detach(UNAUTHORIZED_ACCESS)
    assert client.peer.is_live()
