"""Core 2.5.6: how many transfer frames a session may have under way, in both directions."""

from __future__ import annotations

from typing import Final

from broker.amqp import serial
from broker.amqp.performatives import Flow

from .conversation import Conversation
from .frames import Disposition, Transfer
from .harness import case
from .messages import body_of, message
from .session import Session
from .steps import (
    bodies,
    connected_session,
    echo,
    expect_harmless,
    must,
    put,
    received,
    settled_all,
    waiting,
)
from .verdict import Failed, Kind, NotApplicable

WINDOW_WORTH_FILLING: Final = 10_000
NEARLY_ROUND: Final = 0xFFFF_FFFE
"""A transfer-id near the maximum: the second one after it is 0."""


async def with_messages(peer: Conversation, count: int, **fields: object) -> Session:
    """Return a session begun with `fields`, after `count` messages were put into the queue."""
    await peer.open()
    maker = await peer.begin(1)
    await put(maker, *[str(each).encode() for each in range(count)])
    return await peer.begin(0, **fields)


async def expect_echo(session: Session, field: str, wanted: int) -> None:
    """Send an echo; check that the session's flow has the value `wanted` in `field` in the end."""
    session.flow(echo=True)
    said = getattr(await echo(session.peer), field)
    while said != wanted:
        try:
            said = getattr(await session.peer.expect(Flow), field)
        except Failed as failed:
            raise Failed(f"a flow with {field} {wanted}", f"{said}, then {failed.got}") from None


@case("core", "2.5.6", "No more transfers come than the incoming-window of our begin allows.")
async def our_first_window_is_kept(peer: Conversation) -> None:
    session = await with_messages(peer, 5, incoming_window=2)
    receiver = await session.attach_receiver()
    receiver.grant(5, incoming_window=2)
    for _ in range(2):
        await receiver.receive()
    await peer.expect_nothing()


@case("core", "2.5.6", "A window that is opened again lets the next transfers come, and no more.")
async def window_opened_again_is_used_and_kept(peer: Conversation) -> None:
    session = await with_messages(peer, 5, incoming_window=2)
    receiver = await session.attach_receiver()
    receiver.grant(5, incoming_window=2)
    came = [await receiver.receive() for _ in range(2)]
    session.flow(incoming_window=1)
    came.append(await receiver.receive())
    await peer.expect_nothing()
    session.flow(incoming_window=10)
    came += [await receiver.receive() for _ in range(2)]
    must(bodies(came) == [b"0", b"1", b"2", b"3", b"4"], "five messages in order", bodies(came))


@case("core", "2.5.6", "A begin with incoming-window 0 gets no transfer until a flow opens it.")
async def window_of_zero_stops_all_transfers(peer: Conversation) -> None:
    session = await with_messages(peer, 2, incoming_window=0)
    receiver = await session.attach_receiver()
    receiver.grant(5, incoming_window=0)
    await peer.expect_nothing()
    session.flow(incoming_window=5)
    for _ in range(2):
        await receiver.receive()


@case("core", "2.5.6", "A window may be shut again by a flow.")
async def window_may_be_shut(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    receiver.grant(5)
    session.flow(incoming_window=0)
    await put(await peer.begin(1), b"late")
    await peer.expect_nothing()
    session.flow(incoming_window=5)
    await receiver.receive()


@case("core", "2.5.6", "The window is one for all links of the session.")
async def window_is_shared_by_all_links(peer: Conversation) -> None:
    session = await with_messages(peer, 6, incoming_window=3)
    one = await session.attach_receiver()
    two = await session.attach_receiver()
    one.grant(6, incoming_window=3)
    two.grant(6, incoming_window=3)
    for _ in range(3):
        await peer.expect(Transfer)
    await peer.expect_nothing()


@case("core", "2.5.6", "Sessions have windows of their own.")
async def sessions_have_windows_of_their_own(peer: Conversation) -> None:
    shut = await with_messages(peer, 3, incoming_window=0)
    stuck = await shut.attach_receiver()
    stuck.grant(1, incoming_window=0)
    free = await peer.begin(2)
    receiver = await free.attach_receiver(name=peer.name("free"))
    receiver.grant(1)
    await receiver.receive()
    await peer.expect_nothing()
    must(stuck.delivery_count == 0, "no transfer on the shut session", stuck.delivery_count)


@case("core", "2.5.6", "The window counts frames: a large delivery stops in its middle.")
async def window_counts_frames_of_one_delivery(peer: Conversation) -> None:
    await peer.open(max_frame_size=512)
    large = bytes(range(256)) * 8
    await put(await peer.begin(1), large)
    session = await peer.begin(0, incoming_window=2)
    receiver = await session.attach_receiver()
    receiver.grant(1, incoming_window=2)
    payload = b""
    for _ in range(2):
        payload += (await peer.expect(Transfer, more=True)).payload
    await peer.expect_nothing()
    session.flow(incoming_window=100)
    more = True
    while more:
        part = await peer.expect(Transfer)
        payload, more = payload + part.payload, part.more
    must(body_of(payload) == large, "the whole message", len(payload))


@case("core", "2.5.6", "What is under way already is taken off the window of a flow.")
async def transfers_under_way_use_the_window_up(peer: Conversation) -> None:
    session = await with_messages(peer, 6, incoming_window=2)
    start = session.next_incoming_id
    receiver = await session.attach_receiver()
    receiver.grant(6, incoming_window=2)
    for _ in range(2):
        await receiver.receive()
    session.flow(next_incoming_id=start, incoming_window=3)
    await receiver.receive()
    await peer.expect_nothing()


@case("core", "2.5.6", "A flow from before the broker's begin was seen counts from its first id.")
async def flow_without_next_incoming_id_counts_from_the_start(peer: Conversation) -> None:
    await peer.open()
    await put(await peer.begin(1), b"one", b"two", b"three")
    session = peer.new_session(0, incoming_window=0)
    receiver = session.new_receiver()
    session.flow(next_incoming_id=-1, incoming_window=2, handle=receiver.handle, link_credit=5)
    await receiver.session.peer.expect_until(Transfer)
    await peer.expect(Transfer)
    await peer.expect_nothing()


@case("core", "2.5.6", "The broker's next-incoming-id counts our transfers, from our begin's id.")
async def next_incoming_id_counts_our_transfers(peer: Conversation) -> None:
    await peer.open()
    session = await peer.begin(next_outgoing_id=NEARLY_ROUND)
    await expect_echo(session, "next_incoming_id", NEARLY_ROUND)
    sender = await session.attach_sender()
    for _ in range(3):
        await sender.send(message())
    await expect_echo(session, "next_incoming_id", 1)


@case("core", "2.5.6", "The broker's next-outgoing-id counts its transfers, from its begin's id.")
async def next_outgoing_id_counts_its_transfers(peer: Conversation) -> None:
    session = await connected_session(peer)
    assert session.remote_begin is not None
    await put(session, b"1", b"2", b"3")
    start = int(session.remote_begin.next_outgoing_id)
    await received(await session.attach_receiver(), 3)
    await expect_echo(session, "next_outgoing_id", serial.add(start, 3))


@case("core", "2.5.6", "A next-outgoing-id of ours in a flow becomes what the broker expects.")
async def next_outgoing_id_of_a_flow_is_taken_over(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.next_outgoing_id = 7
    await expect_echo(session, "next_incoming_id", 7)


@case("core", "2.5.6", "Transfer-ids are serial numbers: they go on at 0 after 2^32-1.")
async def transfer_ids_wrap(peer: Conversation) -> None:
    await peer.open()
    session = await peer.begin(next_outgoing_id=NEARLY_ROUND)
    sender = await session.attach_sender()
    for body in (b"1", b"2", b"3", b"4"):
        await sender.send(message(body))
    left = await waiting(session)
    must(left == [b"1", b"2", b"3", b"4"], "four messages", left)


@case("reliability", "C15", "A next-outgoing-id that goes back ends the session, or does no harm.")
async def rewound_next_outgoing_id_does_no_harm(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    for _ in range(3):
        await sender.send(message())
    session.flow(next_outgoing_id=0)
    try_on = sender.transfer(message())
    came = await peer.receive()
    while isinstance(came.body, Flow):
        came = await peer.receive()
    if isinstance(came.body, Disposition):
        must(came.body.covers(try_on), f"an outcome for delivery {try_on}", came.body)
        return
    error = getattr(came.body, "error", None)
    must(
        error is not None and error.condition != "amqp:internal-error",
        "an outcome, or an error other than internal-error",
        came.body,
    )


@case("reliability", "C15", "A next-incoming-id that the broker never came to does no harm.")
async def next_incoming_id_from_the_future_does_no_harm(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.flow(next_incoming_id=serial.add(session.next_incoming_id, 1000))
    await expect_harmless(peer)


@case("reliability", "C2", "Windows of 0, 2^31-1, 2^31 and 2^32-1 are what they say.")
async def extreme_windows_are_taken(peer: Conversation) -> None:
    await peer.open()
    await put(await peer.begin(9), *[b"x"] * 3)
    for channel, window in enumerate((0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)):
        session = await peer.begin(channel, incoming_window=window, outgoing_window=window)
        receiver = await session.attach_receiver(name=peer.name(f"window-{channel}"))
        receiver.grant(1, incoming_window=window, outgoing_window=window)
        receiver.settle(await receiver.receive())


@case("jms", "13.12", "The broker's incoming-window is opened again before it stalls a sender.")
async def incoming_window_is_opened_again(peer: Conversation) -> None:
    session = await connected_session(peer)
    assert session.remote_begin is not None
    window = int(session.remote_begin.incoming_window)
    if window > WINDOW_WORTH_FILLING:
        raise NotApplicable(
            f"an incoming-window of {window} is more than is worth filling", Kind.DID_NOT_HAPPEN
        )
    sender = await session.attach_sender()
    left = window
    for _ in range(window + 10):
        while left <= 0 or sender.link_credit <= 0:
            flow = await peer.expect(Flow)
            left = serial.ahead(
                serial.add(int(flow.next_incoming_id), int(flow.incoming_window)),
                session.next_outgoing_id,
            )
        sender.transfer(message(b"x"), settled=True)
        left -= 1
    await sender.credit()
    last = sender.transfer(message(b"last"))
    await settled_all(sender, [last])
