"""Exclusive use of a container-id ("Enforcing Connection Uniqueness 1.0")."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from broker.amqp.errors import INVALID_FIELD, RESOURCE_LOCKED
from broker.amqp.frames import AMQP_HEADER
from broker.amqp.performatives import Close, Open
from broker.amqp.types import Integer, Symbol, UInt

from .conversation import Conversation
from .harness import case
from .steps import must
from .verdict import Failed, Kind, NotApplicable

SOLE_CONNECTION: Final = "sole-connection-for-container"
ENFORCEMENT_POLICY: Final = "sole-connection-enforcement-policy"
DETECTION_POLICY: Final = "sole-connection-detection-policy"
ESTABLISHMENT_FAILED: Final = "amqp:connection-establishment-failed"

REFUSE: Final = 0
CLOSE_EXISTING: Final = 1
STRONG: Final = 0
WEAK: Final = 1


def claiming(policy: int | None = None, detection: int | None = None) -> dict[str, object]:
    """Return the fields of an open that claims its container-id."""
    properties: dict[str, object] = {}
    if policy is not None:
        properties[ENFORCEMENT_POLICY] = UInt(policy)
    if detection is not None:
        properties[DETECTION_POLICY] = UInt(detection)
    return {"desired_capabilities": [SOLE_CONNECTION], "properties": properties}


async def hold(peer: Conversation, fields: dict[str, object]) -> Open:
    """Open `peer` as the holder of the container-id; raise NotApplicable if it is not offered."""
    opened = await peer.open(container_id=peer.name("sole"), **fields)
    if fields and SOLE_CONNECTION not in opened.offered_capabilities:
        raise NotApplicable(f"the broker does not offer {SOLE_CONNECTION}", Kind.NOT_OFFERED)
    return opened


async def hold_as(other: Conversation, peer: Conversation) -> None:
    """Open another connection as the holder.

    `peer` is left unused: some brokers hang up on it.
    """
    opened = await other.open(container_id=peer.name("sole"), **claiming())
    if SOLE_CONNECTION not in opened.offered_capabilities:
        raise NotApplicable(f"the broker does not offer {SOLE_CONNECTION}", Kind.NOT_OFFERED)


def policy_in(opened: Open, name: str) -> int:
    """Return the policy in the broker's open; 0, the default, if there is none."""
    value = opened.properties.get(name)
    if value is None:
        return 0
    if not isinstance(value, Integer):
        raise Failed(f"{name} as a uint", repr(value))
    return value.value


@asynccontextmanager
async def newcomer(peer: Conversation, fields: dict[str, object]) -> AsyncIterator[Conversation]:
    """Yield a second connection that has sent an open with the same container-id.

    Its answers have not been read, except the header.
    """
    async with peer.another() as other:
        await other.login()
        other.send_bytes(AMQP_HEADER)
        other.send(other.our_open(container_id=peer.name("sole"), **fields))
        await other.expect_header(AMQP_HEADER)
        yield other


async def check_refused(other: Conversation) -> tuple[Open, Close]:
    """Check that the newcomer receives an open and then a close with an error; return both."""
    opened = await other.expect(Open)
    closed = await other.expect(Close)
    must(closed.error is not None, "a close with an error", "one without")
    return opened, closed


async def check_admitted(other: Conversation) -> None:
    """Check that the newcomer is admitted, so that it can begin a session."""
    other.remote_open = await other.expect(Open)
    await (await other.begin()).end()


async def check_undisturbed(peer: Conversation) -> None:
    """Check that the holder can still begin a session."""
    await (await peer.begin(channel=1)).end()


@case(
    "soleconn", "2.1", "A broker that knows of sole connections offers them when they are desired."
)
async def sole_connections_are_offered(peer: Conversation) -> None:
    await hold(peer, claiming())
    await check_undisturbed(peer)


@case("soleconn", "2.2", "A second connection that claims a claimed container-id is refused.")
async def a_second_claim_is_refused(peer: Conversation) -> None:
    await hold(peer, claiming())
    async with newcomer(peer, claiming()) as other:
        await check_refused(other)


@case("soleconn", "2.2", "The open of a refused connection says that its establishment has failed.")
async def the_open_of_a_refused_connection_says_so(peer: Conversation) -> None:
    await hold(peer, claiming())
    async with newcomer(peer, claiming()) as other:
        opened, _ = await check_refused(other)
        value = opened.properties.get(ESTABLISHMENT_FAILED)
        must(value is True, f"{ESTABLISHMENT_FAILED}=true", repr(value))


@case("soleconn", "2.2", "The close of a refused connection blames the container-id, by symbols.")
async def the_close_of_a_refused_connection_says_why(peer: Conversation) -> None:
    await hold(peer, claiming())
    async with newcomer(peer, claiming()) as other:
        _, closed = await check_refused(other)
        assert closed.error is not None
        must(closed.error.condition == INVALID_FIELD, INVALID_FIELD, closed.error.condition)
        blamed = closed.error.info.get("invalid-field")
        must(blamed == Symbol("container-id"), "invalid-field=container-id, a symbol", repr(blamed))


@case("soleconn", "2.2", "The holder of a container-id does not notice that another was refused.")
async def the_holder_is_not_disturbed(peer: Conversation) -> None:
    await hold(peer, claiming())
    async with newcomer(peer, claiming()) as other:
        await check_refused(other)
    await check_undisturbed(peer)


async def check_claimed(peer: Conversation) -> None:
    """Check that a further claim on the container-id is refused."""
    async with newcomer(peer, claiming()) as other:
        await check_refused(other)


@case("soleconn", "2.2", "A container-id is free again when its holder has closed.")
async def a_container_id_is_free_after_close(peer: Conversation) -> None:
    async with peer.another() as first:
        await hold_as(first, peer)
        await check_claimed(peer)
        await first.close()
    async with peer.another() as second:
        await hold_as(second, peer)
        await check_undisturbed(second)


@case("jms", "2.4", "A container-id is free again when its holder's socket is lost.")
async def a_container_id_is_free_after_a_lost_socket(peer: Conversation) -> None:
    async with peer.another() as first:
        await hold_as(first, peer)
        await check_claimed(peer)
        await first.lose_socket()
    async with peer.another() as second:
        await hold_as(second, peer)
        await check_undisturbed(second)


@case("jms", "2.4", "Connections that do not claim their container-id may share it.")
async def a_container_id_may_be_shared(peer: Conversation) -> None:
    await hold(peer, {})
    async with newcomer(peer, {}) as other:
        await check_admitted(other)
    await check_undisturbed(peer)


@case("soleconn", "2.3", "Strong detection refuses who shares a claimed container-id unasked.")
async def a_plain_newcomer_is_detected(peer: Conversation) -> None:
    opened = await hold(peer, claiming())
    if policy_in(opened, DETECTION_POLICY) == WEAK:
        raise NotApplicable("the broker's open says that it detects weakly", Kind.NOT_OFFERED)
    async with newcomer(peer, {}) as other:
        await check_refused(other)


@case("soleconn", "2.3", "Strong detection refuses a claim on a container-id that others use.")
async def a_plain_holder_is_detected(peer: Conversation) -> None:
    await hold(peer, {})
    async with newcomer(peer, claiming()) as other:
        opened = await other.expect(Open)
        if SOLE_CONNECTION not in opened.offered_capabilities and not opened.properties.get(
            ESTABLISHMENT_FAILED
        ):
            raise NotApplicable(f"the broker does not offer {SOLE_CONNECTION}", Kind.NOT_OFFERED)
        if policy_in(opened, DETECTION_POLICY) == WEAK:
            raise NotApplicable("the broker's open says that it detects weakly", Kind.NOT_OFFERED)
        closed = await other.expect(Close)
        must(closed.error is not None, "a close with an error", "one without")


@case(
    "soleconn", "2.3", "Weak detection lets connections share an id that only one of them claims."
)
async def weak_detection_admits_who_does_not_claim(peer: Conversation) -> None:
    opened = await hold(peer, claiming(detection=WEAK))
    if policy_in(opened, DETECTION_POLICY) != WEAK:
        raise NotApplicable("the broker's open says that it detects strongly", Kind.NOT_OFFERED)
    async with newcomer(peer, {}) as other:
        await check_admitted(other)
    await check_undisturbed(peer)


@case("soleconn", "2.3", "Weak detection, too, keeps a second claim out.")
async def weak_detection_refuses_a_second_claim(peer: Conversation) -> None:
    opened = await hold(peer, claiming(detection=WEAK))
    if policy_in(opened, DETECTION_POLICY) != WEAK:
        raise NotApplicable("the broker's open says that it detects strongly", Kind.NOT_OFFERED)
    async with newcomer(peer, claiming(detection=WEAK)) as other:
        await check_refused(other)


async def hold_closing(peer: Conversation) -> None:
    """Hold the container-id until another connection claims it.

    Raise NotApplicable if the broker does not agree to close the holder's connection then.
    """
    opened = await hold(peer, claiming(CLOSE_EXISTING))
    if policy_in(opened, ENFORCEMENT_POLICY) != CLOSE_EXISTING:
        raise NotApplicable(
            "the broker does not agree to close existing connections", Kind.NOT_OFFERED
        )


@case(
    "soleconn", "2.2", "Where close-existing was agreed, the newcomer gets in and the holder out."
)
async def close_existing_closes_the_holder(peer: Conversation) -> None:
    await hold_closing(peer)
    async with newcomer(peer, claiming(CLOSE_EXISTING)) as other:
        await check_admitted(other)
        closed = await peer.expect_closed(RESOURCE_LOCKED)
        assert closed is not None
        assert closed.error is not None
        enforced = closed.error.info.get("sole-connection-enforcement")
        must(enforced is True, "info with sole-connection-enforcement=true", repr(enforced))


@case("soleconn", "2.2", "The policy that was agreed with the holder counts: it is closed.")
async def the_policy_of_the_holder_closes_it(peer: Conversation) -> None:
    await hold_closing(peer)
    async with newcomer(peer, claiming(REFUSE)) as other:
        await check_admitted(other)
        await peer.expect_closed(RESOURCE_LOCKED)


@case("soleconn", "2.2", "The policy that was agreed with the holder counts: it stays.")
async def the_policy_of_the_holder_keeps_it(peer: Conversation) -> None:
    await hold(peer, claiming(REFUSE))
    async with newcomer(peer, claiming(CLOSE_EXISTING)) as other:
        await check_refused(other)
    await check_undisturbed(peer)
