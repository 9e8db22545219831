"""Users with rights of their own, for attacks of one user on another: files, clients and steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from broker.amqp.errors import UNAUTHORIZED_ACCESS
from broker.amqp.frames import AMQP_HEADER
from broker.amqp.outcomes import Accepted, DeliveryState, Rejected
from broker.amqp.performatives import Open
from broker.security.users import Users
from tests.attacks.plan import PASSWORD, USER, Reached, Site
from tests.conformance.conversation import Conversation, connected
from tests.conformance.exchange import PROPERTIES, receive_all
from tests.conformance.frames import Transfer
from tests.conformance.messages import sections
from tests.conformance.session import Link, Sender, Session
from tests.conformance.verdict import Failed, Options

HEALTHY: Final = USER
"""The user of the healthy client, and of the clients that are attacked."""

MALLORY: Final = "mallory"
"""The user that attacks."""

REPLIER: Final = "replier"
"""The user of an application that answers requests."""

PLAIN: Final = "PLAIN"
HELD_ID: Final = "client-healthy"
"""The container-id of the healthy client that runs all the time (`probes.py`)."""

RESERVED_ID: Final = "reserved"
"""A container-id that a rule keeps for HEALTHY."""

PRIVATE: Final = "healthy.private"
"""A queue that no other user may use."""

USERS_FILE: Final = "jms-broker.users"
RULES_FILE: Final = "acl.toml"

SETTINGS: Final = f"""\
users_file = "{USERS_FILE}"
acl_file = "{RULES_FILE}"

[[address]]
pattern = "mallory.failing"
dead_letter = "dead"
expiry = "late"

[[queue]]
name = "{PRIVATE}"
"""

RULES: Final = """\
[[rule]]
id = "everybody"
who = ["authenticated"]
can = ["connect", "create", "subscribe"]
on = ["connection:*", "temporary:*", "topic:news", "topic:other"]

[[rule]]
id = "names"  # so that nothing but their owner protects subscriptions
who = ["authenticated"]
can = ["use", "share", "create", "end"]
on = ["subscription:*"]

[[rule]]
id = "requests"
who = ["authenticated"]
can = ["produce"]
on = ["queue:requests"]

[[rule]]
id = "healthy"
who = ["user:healthy"]
can = ["produce", "consume"]
on = ["queue:healthy.#", "queue:dead", "queue:late"]

[[rule]]
id = "healthy-topics"
who = ["user:healthy"]
can = ["send", "use", "share", "create"]
on = ["topic:news", "global-subscription:*"]

[[rule]]
id = "reserved"
who = ["user:healthy"]
can = ["use"]
on = ["client-id:reserved"]

[[rule]]
id = "mallory"
who = ["user:mallory"]
can = ["produce", "consume"]
on = ["queue:mallory.#"]

[[rule]]
id = "replier"
who = ["user:replier"]
can = ["receive", "send"]
on = ["queue:requests", "temporary:queue"]
"""

ROLE: Final = "crossing"
"""A role to which no rule gives anything: else a user would have the role `application`."""


def write_users(folder: Path) -> None:
    """Write the files of users and rules."""
    users = Users(folder / USERS_FILE)
    for name in (HEALTHY, MALLORY, REPLIER):
        users.add(name, PASSWORD, roles=[ROLE])
    (folder / RULES_FILE).write_text(RULES)


PATIENCE_S: Final = 30.0


@asynccontextmanager
async def logged_in(site: Site, user: str) -> AsyncIterator[Conversation]:
    """Yield a connection of `user` that has logged in, and sent no open."""
    options = Options(
        host="127.0.0.1",
        port=site.port,
        user=user,
        password=PASSWORD,
        timeout_s=PATIENCE_S,
        mechanism=PLAIN,
    )
    async with connected(options, address=user, lines=[]) as peer:
        await peer.login()
        yield peer


@asynccontextmanager
async def client_of(
    site: Site, user: str, container_id: str, **fields: object
) -> AsyncIterator[Session]:
    """Yield a session of `user` on a connection of that container-id."""
    async with logged_in(site, user) as peer:
        _say_open(peer, container_id, fields)
        await peer.expect_header(AMQP_HEADER)
        peer.remote_open = await peer.expect(Open)
        yield await peer.begin()


async def be_refused(site: Site, reached: Reached, container_id: str, **fields: object) -> None:
    """Open a connection of MALLORY; raise Failed unless the broker refuses its container-id."""
    async with logged_in(site, MALLORY) as peer:
        _say_open(peer, container_id, fields)
        close = await peer.expect_closed(UNAUTHORIZED_ACCESS)
        assert close is not None
        assert close.error is not None
        reached.hear(close.error.condition, close.error.description or "")


def _say_open(peer: Conversation, container_id: str, fields: dict[str, object]) -> None:
    peer.send_bytes(AMQP_HEADER)
    peer.send(peer.our_open(container_id=container_id, **fields))


async def hear_refusal(link: Link, reached: Reached, condition: str = UNAUTHORIZED_ACCESS) -> None:
    """Record the refusal of a link; raise Failed if it is attached, or refused otherwise."""
    detach = await link.expect_refused(condition)
    assert detach.error is not None
    reached.hear(detach.error.condition, detach.error.description or "")


async def send(sender: Sender, payload: bytes) -> None:
    """Send a message; raise Failed unless it is accepted."""
    state = (await sender.send(payload)).state
    if not isinstance(state, Accepted):
        raise Failed("accepted", repr(state))


def hear_rejection(state: DeliveryState | None, reached: Reached) -> None:
    """Record why a message was rejected; raise Failed unless its sender lacked a right."""
    error = state.error if isinstance(state, Rejected) else None
    if error is None or error.condition != UNAUTHORIZED_ACCESS:
        raise Failed(UNAUTHORIZED_ACCESS, repr(state))
    reached.hear(error.condition, error.description or "")


async def taken(session: Session, address: str, **fields: object) -> list[Transfer]:
    """Receive and accept all messages of a queue, or those that `fields` of an attach say."""
    receiver = await session.attach_receiver(address, **fields)
    found: list[Transfer] = []
    while part := await receive_all(receiver):
        for each in part:
            receiver.settle(each)
        found += part
    await receiver.detach(closed="source" not in fields)
    return found


def field_of(delivery: Transfer, name: str) -> object:
    """Return a field of the properties of a message; None if it has none."""
    values = next((fields for code, fields in sections(delivery.payload) if code == 0x73), [])
    assert isinstance(values, list)
    return dict(zip(PROPERTIES, values, strict=False)).get(name)


async def again_and_again(site: Site, attempt: Callable[[], Awaitable[None]]) -> int:
    """Make one attempt after another until the attack is over; return their number."""
    deadline = site.deadline()
    count = 0
    while not count or not deadline.is_over():
        await attempt()
        count += 1
    return count
