"""Core 2.5.1 to 2.5.5: how sessions begin, end and fail."""

from __future__ import annotations

from broker.amqp.performatives import Attach, Begin, Close, Detach, End, Error, Flow
from broker.amqp.terminus import Source, Target

from .conversation import Conversation
from .frames import Body, Disposition, Header, Transfer
from .harness import case
from .messages import message
from .steps import bodies, connected_session, must, put, received, waiting
from .verdict import Failed, Kind, NotApplicable

UNATTACHED_HANDLE = "amqp:session:unattached-handle"


def a_begin(remote_channel: int = -1) -> Begin:
    return Begin(
        remote_channel=remote_channel, next_outgoing_id=0, incoming_window=99, outgoing_window=99
    )


@case("core", "2.5.1", "A begin is answered by one that names its channel as remote-channel.")
async def begin_is_answered_with_remote_channel(peer: Conversation) -> None:
    await peer.open()
    peer.new_session(3)
    await peer.expect(Begin, remote_channel=3)


@case("core", "2.5.1", "Begins that do not wait for each other are all answered, each by its own.")
async def pipelined_begins_are_all_answered(peer: Conversation) -> None:
    await peer.open()
    sessions = [peer.new_session(channel) for channel in (0, 1, 2)]
    for _ in sessions:
        await peer.expect(Begin)
    ours = {session.remote_channel for session in sessions}
    must(-1 not in ours and len(ours) == 3, "three channels of the broker's", ours)


@case("core", "2.5.1", "A session may begin on the highest channel that channel-max allows.")
async def highest_channel_takes_a_session(peer: Conversation) -> None:
    remote = await peer.open()
    session = await peer.begin(int(remote.channel_max))
    await session.end()


@case("core", "2.5.1", "The broker's channel is within the channel-max of our open.")
async def channels_keep_within_our_channel_max(peer: Conversation) -> None:
    await peer.open(channel_max=1)
    peer.new_session(1)
    await peer.expect(Begin)
    peer.new_session(0)
    await peer.expect(Begin)
    ours = {session.remote_channel for session in peer.sessions.values()}
    must(ours == {0, 1}, "channels 0 and 1", ours)


@case("reliability", "C10", "A begin on a channel that has a session is an error.")
async def begin_on_a_used_channel_is_an_error(peer: Conversation) -> None:
    await peer.open()
    await peer.begin()
    peer.send(a_begin())
    await peer.expect_error()


@case("core", "2.5.1", "Frames may follow their begin without waiting for its answer.")
async def frames_may_follow_their_begin_at_once(peer: Conversation) -> None:
    await peer.open()
    session = peer.new_session()
    sender = session.new_sender()
    receiver = session.new_receiver()
    session.send(End())
    await peer.expect(Begin, remote_channel=0)
    await sender.expect_attached()
    await receiver.expect_attached()
    await peer.expect(End, error=None)


@case("core", "2.5.2", "An end is answered by an end without error, on the same channel.")
async def end_is_answered_by_end(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.send(End())
    came = await peer.receive()
    must(isinstance(came.body, End) and came.body.error is None, "end", came.body)
    must(came.channel == session.remote_channel, "the session's channel", came.channel)
    await peer.expect_nothing()


@case("core", "2.5.2", "An end with an error is answered like any other.")
async def end_with_an_error_is_answered(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.send(End(error=Error(condition="amqp:internal-error", description="it gives up")))
    await peer.expect(End, error=None)
    await peer.expect_nothing()


@case("core", "2.5.2", "A channel may be used again as soon as its session has been ended.")
async def channel_may_be_used_again_at_once(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.send(End(), a_begin(), End(), a_begin())
    for kind in (End, Begin, End, Begin):
        await peer.expect(kind)


@case("core", "2.5.2", "Nothing of an ended session is left for the next one on its channel.")
async def new_session_has_no_links_of_the_last_one(peer: Conversation) -> None:
    session = await connected_session(peer)
    await session.attach_sender()
    await session.end()
    session = await peer.begin()
    session.flow(handle=0)
    error = await peer.expect_error(UNATTACHED_HANDLE)
    must(isinstance(error, End), "end", error)


@case("jms", "13.22", "An end takes all links with it, and their unsettled deliveries go back.")
async def end_returns_unsettled_deliveries(peer: Conversation) -> None:
    session = await connected_session(peer)
    await put(session, b"one", b"two")
    receiver = await session.attach_receiver()
    await received(receiver, 2)
    await session.attach_sender()
    session.send(End())
    await peer.expect(End, error=None)
    del peer.sessions[0]
    left = await waiting(await peer.begin())
    must(sorted(left) == [b"one", b"two"], "both messages again", left)


@case("core", "2.5.2", "A delivery of which not all frames had come ends with its session.")
async def end_drops_an_unfinished_delivery(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await sender.send(message(b"whole"))
    await sender.credit()
    sender.transfer(message(b"unfinished")[:5], more=True)
    await session.end()
    left = await waiting(await peer.begin())
    must(left == [b"whole"], "the whole message alone", left)


@case("core", "2.5.3", "An end that crosses the broker's is its answer, and not answered again.")
async def ends_that_cross_answer_each_other(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.flow(handle=7)
    session.send(End())
    await peer.expect(End, error=lambda error: error is not None)
    await peer.expect_nothing()


@case("core", "2.5.4", "After a session error the session's frames are discarded until its end.")
async def frames_after_a_session_error_are_discarded(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.flow(handle=7)
    session.new_sender()
    session.flow(echo=True)
    session.send(Detach(handle=9, closed=True))
    await peer.expect(End, error=lambda error: error is not None)
    await peer.expect_nothing(but=())
    session.send(End(), a_begin())
    await peer.expect(Begin)


@case("core", "2.5.4", "An error of one session leaves the others of its connection alone.")
async def session_error_leaves_other_sessions_alone(peer: Conversation) -> None:
    first = await connected_session(peer)
    second = await peer.begin(1)
    sender = await second.attach_sender()
    first.flow(handle=7)
    await peer.expect_until(End, lambda end: end.error is not None)
    first.send(End())
    await sender.send(message(b"goes on"))


@case("core", "2.5.4", "Two sessions do not share handles, delivery-ids or links.")
async def sessions_do_not_share_ids(peer: Conversation) -> None:
    first = await connected_session(peer)
    second = await peer.begin(1)
    one = await first.attach_sender(name=peer.name("one"))
    two = await second.attach_sender(name=peer.name("two"))
    await one.send(message(b"1"))
    await two.send(message(b"2"))
    receiver = await first.attach_receiver()
    deliveries = await received(receiver, 2)
    must(sorted(bodies(deliveries)) == [b"1", b"2"], "both messages", bodies(deliveries))
    lowest, highest = deliveries[0].delivery_id or 0, deliveries[1].delivery_id
    second.send(Disposition(first=lowest, last=highest, state=None))
    await receiver.detach()
    left = await waiting(first)
    must(len(left) == 2, "two messages that the other session could not settle", left)


STRAYS: list[tuple[str, Body]] = [
    ("attach", Attach(name="stray", handle=0, role=False, initial_delivery_count=0)),
    ("flow", Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1)),
    ("transfer", Transfer(payload=message())),
    ("disposition", Disposition(state=None)),
    ("detach", Detach(handle=0)),
    ("end", End()),
]


@case("reliability", "C10", "A frame on a channel without a session closes with a proper error.")
async def frames_without_a_session_are_errors(peer: Conversation) -> None:
    for name, body in STRAYS:
        async with peer.another() as other:
            await other.open()
            other.send(body, channel=1)
            error = await other.expect_closed()
            condition = error.error.condition if error and error.error else ""
            must(condition != "amqp:internal-error", f"an error for a stray {name}", condition)


@case("reliability", "C10", "A second end, when there is no session any more, closes properly.")
async def second_end_is_an_error(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.send(End(), End())
    await peer.expect(End)
    await peer.expect_closed()


@case("core", "2.7.2", "A begin that answers one that was never sent is an error.")
async def begin_with_a_remote_channel_is_an_error(peer: Conversation) -> None:
    await peer.open()
    peer.send(a_begin(remote_channel=0))
    await peer.expect_error()


@case("core", "2.7.2", "The broker's handles are within the handle-max of our begin.")
async def handles_keep_within_our_handle_max(peer: Conversation) -> None:
    await peer.open()
    session = await peer.begin(handle_max=0)
    sender = await session.attach_sender(handle=3)
    must(sender.remote_handle == 0, "handle 0", sender.remote_handle)
    session.new_sender(handle=4)
    peer.new_session(1)
    came = (await peer.receive()).body
    while not isinstance(came, Begin | End | Close):
        if isinstance(came, Attach) and came.handle > 0:
            raise Failed("no handle above 0", f"handle {came.handle}")
        came = (await peer.receive()).body


@case("core", "2.7.2", "The highest handle of the broker's handle-max may be used.")
async def highest_handle_may_be_used(peer: Conversation) -> None:
    session = await connected_session(peer)
    assert session.remote_begin is not None
    highest = int(session.remote_begin.handle_max)
    sender = await session.attach_sender(handle=highest)
    await sender.send(message(b"on the highest handle"))
    await sender.detach()


@case("core", "2.7.2", "A handle above handle-max closes the connection with framing-error.")
async def handle_above_handle_max_closes(peer: Conversation) -> None:
    session = await connected_session(peer)
    assert session.remote_begin is not None
    highest = int(session.remote_begin.handle_max)
    if highest == 0xFFFF_FFFF:
        raise NotApplicable("the broker allows every handle there is", Kind.DID_NOT_HAPPEN)
    peer.goes_beyond_limits = True
    session.new_sender(handle=highest + 1)
    await peer.expect_closed("amqp:connection:framing-error")


@case("core", "2.7.2", "Capabilities and properties of a begin that nobody knows are let pass.")
async def unknown_capabilities_of_a_begin_are_let_pass(peer: Conversation) -> None:
    await peer.open()
    session = await peer.begin(
        offered_capabilities=["x-conformance"],
        desired_capabilities=["x-conformance", "x-more"],
        properties={"x-conformance": "yes"},
    )
    assert session.remote_begin is not None
    await session.end()


@case("core", "2.5.1", "Open, begin, attach, detach, end and close may come in one piece.")
async def whole_conversation_may_come_in_one_piece(peer: Conversation) -> None:
    await peer.login()
    attach = Attach(
        name=peer.name("all"),
        handle=0,
        role=False,
        source=Source(address="conformance"),
        target=Target(address=peer.address, capabilities=["queue"]),
        initial_delivery_count=0,
    )
    peer.send_bytes(b"AMQP\x00\x01\x00\x00")
    peer.send(peer.our_open(), a_begin(), attach, Detach(handle=0, closed=True), End(), Close())
    await peer.expect(Header)
    await peer.expect_until(Begin)
    await peer.expect_until(End, lambda end: end.error is None)
    await peer.expect(Close, error=None)
    await peer.expect_eof()
