"""Core 2.6.12 to 2.6.14, 2.7.5, deliveries to the broker: ids, tags, frames, settle modes."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter

from broker.amqp.encode import put_value
from broker.amqp.outcomes import Accepted
from broker.amqp.performatives import RCV_FIRST, RCV_SECOND, RECEIVER, SENDER, Flow
from broker.amqp.types import Described, Map, ULong

from .conversation import Conversation
from .frames import Disposition, described
from .harness import case
from .messages import message
from .session import Sender
from .steps import connected_session, expect_harmless, must, settled_all, waiting
from .verdict import Failed, Kind, NotApplicable

MESSAGE_SIZE_EXCEEDED: Final = "amqp:link:message-size-exceeded"
SIZE_WORTH_EXCEEDING: Final = 8 * 1024 * 1024


async def sender_with_credit(peer: Conversation, **fields: object) -> Sender:
    """Return a link to send on, in a session of its own, that has credit."""
    sender = await (await connected_session(peer)).attach_sender("", **fields)
    await sender.credit()
    return sender


async def expect_left(sender: Sender, *wanted: bytes) -> None:
    """Check that exactly these messages are in the queue of the case."""
    left = await waiting(sender.session)
    must(left == list(wanted), f"the messages {list(wanted)}", left)


# -- outcomes


@case("jms", "13.3", "An unsettled delivery gets a disposition: settled, with an outcome.")
async def unsettled_delivery_gets_an_outcome(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    delivery_id = sender.transfer(message(b"1"))
    answer = await sender.settled(delivery_id)
    must(answer.settled and isinstance(answer.state, Accepted), "settled, accepted", answer)
    await expect_left(sender, b"1")


@case("core", "2.6.12", "A delivery that is sent settled is not settled again.")
async def settled_delivery_gets_no_disposition(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    sender.transfer(message(b"1"), settled=True)
    await peer.expect_nothing()
    await expect_left(sender, b"1")


@case("core", "2.6.12", "Every delivery of a burst gets its outcome, in ranges or one by one.")
async def every_delivery_of_a_burst_gets_an_outcome(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    await sender.credit(10)
    sent = [sender.transfer(message(b"%d" % each)) for each in range(10)]
    answers = await settled_all(sender, sent)
    for answer in answers:
        must(isinstance(answer.state, Accepted), "accepted", answer)
    await expect_left(sender, *[b"%d" % each for each in range(10)])


@case("core", "2.7.5", "A delivery that is batchable gets its outcome, too.")
async def batchable_delivery_gets_an_outcome(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    delivery_id = sender.transfer(message(b"1"), batchable=True)
    await sender.settled(delivery_id)
    await expect_left(sender, b"1")


@case("jms", "13.13", "A delivery-tag may be used again once its delivery is settled.")
async def tag_may_be_used_again_when_settled(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    for body in (b"1", b"2", b"3"):
        await sender.send(message(body), tag=b"same")
    await expect_left(sender, b"1", b"2", b"3")


@case("jms", "13.13", "Deliveries that are sent settled may all have the empty tag.")
async def settled_deliveries_may_share_the_empty_tag(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    await sender.credit(3)
    for body in (b"1", b"2", b"3"):
        sender.transfer(message(body), tag=b"", settled=True)
    await expect_left(sender, b"1", b"2", b"3")


@case("jms", "13.8", "Delivery-ids count over all links of a session, from any number, and wrap.")
async def delivery_ids_count_over_all_links(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.next_delivery_id = 0xFFFF_FFFE
    one, two = await session.attach_sender(), await session.attach_sender()
    for body in (b"1", b"2"):
        await one.send(message(body))
        await two.send(message(body + b"'"))
    left = await waiting(session)
    must(sorted(left) == [b"1", b"1'", b"2", b"2'"], "four messages", left)


# -- invalid ids and tags


@case("core", "2.7.5", "A delivery whose first transfer has no delivery-id is an error.")
async def first_transfer_without_delivery_id_is_an_error(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    sender.transfer(message(), delivery_id=None)
    await peer.expect_error()


@case("core", "2.7.5", "A delivery whose first transfer has no delivery-tag is an error.")
async def first_transfer_without_delivery_tag_is_an_error(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    sender.transfer(message(), tag=None)
    await peer.expect_error()


@case("core", "2.8.7", "A delivery-tag of 32 bytes is taken; one of 33 does no harm.")
async def delivery_tag_has_32_bytes_at_most(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    await sender.send(message(), tag=b"t" * 32)
    sender.transfer(message(), tag=b"t" * 33)
    await expect_harmless(peer)


@case("reliability", "C12", "A delivery-id that is used twice is an error, or both are answered.")
async def delivery_id_used_twice_is_not_lost(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    await sender.credit(2)
    sender.transfer(message(b"1"), delivery_id=0)
    sender.transfer(message(b"2"), delivery_id=0)
    for _ in range(2):
        came = await peer.receive()
        while isinstance(came.body, Flow):
            came = await peer.receive()
        if not isinstance(came.body, Disposition):
            must(getattr(came.body, "error", None) is not None, "an error", described(came.raw))
            return


@case("core", "2.6.12", "A tag used twice while unsettled is an error, or both are answered.")
async def tag_used_twice_while_unsettled_is_not_lost(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    await sender.credit(2)
    sent = [sender.transfer(message(body), tag=b"same") for body in (b"1", b"2")]
    try:
        await settled_all(sender, sent)
    except Failed as failed:
        must("error" in failed.got, "two outcomes, or an error", failed.got)
        return
    await expect_left(sender, b"1", b"2")


# -- deliveries of several frames


@case("core", "2.6.14", "The frames of a delivery are put together in their order.")
async def frames_of_a_delivery_are_joined(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    whole = message(b"0123456789" * 50)
    delivery_id = sender.transfer(whole[:100], more=True)
    sender.go_on(whole[100:101], more=True)
    sender.go_on(whole[101:])
    await sender.settled(delivery_id)
    await expect_left(sender, b"0123456789" * 50)


@case("core", "2.7.5", "Later frames may repeat the delivery-id, the tag and the format.")
async def later_frames_may_repeat_the_ids(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    whole = message(b"repeated")
    delivery_id = sender.transfer(whole[:4], tag=b"t", settled=False, more=True)
    again = {"delivery_id": delivery_id, "tag": b"t", "message_format": 0, "settled": False}
    sender.go_on(whole[4:9], more=True, **again)
    sender.go_on(whole[9:], **again)
    await sender.settled(delivery_id)
    await expect_left(sender, b"repeated")


@case("core", "2.6.14", "Frames without payload add nothing, first, between or last.")
async def frames_without_payload_add_nothing(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    delivery_id = sender.transfer(b"", more=True)
    sender.go_on(message(b"between"), more=True)
    sender.go_on(b"", more=True)
    sender.go_on(b"")
    await sender.settled(delivery_id)
    await expect_left(sender, b"between")


@case("core", "2.6.14", "Deliveries on different links may be interleaved.")
async def deliveries_of_different_links_may_be_interleaved(peer: Conversation) -> None:
    session = await connected_session(peer)
    one, two = await session.attach_sender(), await session.attach_sender()
    await one.credit()
    await two.credit()
    first, second = message(b"first" * 9), message(b"second" * 9)
    ids = [one.transfer(first[:9], more=True), two.transfer(second[:9], more=True)]
    one.go_on(first[9:20], more=True)
    two.go_on(second[9:20], more=True)
    two.go_on(second[20:])
    one.go_on(first[20:])
    await settled_all(one, ids)
    left = await waiting(session)
    must(sorted(left) == [b"first" * 9, b"second" * 9], "both messages, each whole", left)


@case("core", "2.6.14", "A delivery inside of another one on the same link is an error.")
async def deliveries_of_one_link_may_not_be_interleaved(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    await sender.credit(2)
    sender.transfer(message(b"outer")[:6], more=True)
    sender.transfer(message(b"inner"))
    await peer.expect_error()


@case("core", "2.7.5", "A delivery-id that changes within its delivery is an error.")
async def delivery_id_may_not_change_within_a_delivery(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    delivery_id = sender.transfer(message()[:6], more=True)
    sender.go_on(message()[6:], delivery_id=delivery_id + 1)
    await peer.expect_error()


@case("core", "2.7.5", "A delivery-tag that changes within its delivery is an error.")
async def delivery_tag_may_not_change_within_a_delivery(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    sender.transfer(message()[:6], tag=b"one", more=True)
    sender.go_on(message()[6:], tag=b"two")
    await peer.expect_error()


@case("core", "2.7.5", "A message-format that changes within its delivery is an error.")
async def message_format_may_not_change_within_a_delivery(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    sender.transfer(message()[:6], more=True)
    sender.go_on(message()[6:], message_format=1)
    await peer.expect_error()


@case("core", "2.7.5", "Settled on any frame of a delivery means that the delivery is settled.")
async def settled_on_any_frame_counts(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    whole = message(b"settled in between")
    sender.transfer(whole[:5], more=True)
    sender.go_on(whole[5:10], settled=True, more=True)
    sender.go_on(whole[10:])
    await peer.expect_nothing()
    await expect_left(sender, b"settled in between")


# -- aborted


@case("core", "2.6.14", "An aborted delivery leaves nothing behind.")
async def aborted_delivery_leaves_nothing(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    sender.transfer(message(b"aborted")[:8], more=True)
    sender.go_on(b"", aborted=True)
    await sender.send(message(b"next"))
    await expect_left(sender, b"next")


@case("core", "2.7.5", "An aborted delivery is settled: there is no outcome for it.")
async def aborted_delivery_gets_no_outcome(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    sender.transfer(message(b"aborted")[:8], more=True)
    sender.go_on(b"", aborted=True)
    await peer.expect_nothing()


@case("core", "2.7.5", "What a frame that aborts carries is ignored, and so is its more.")
async def payload_and_more_of_an_aborting_frame_are_ignored(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    whole = message(b"aborted")
    sender.transfer(whole[:8], more=True)
    sender.go_on(whole[8:], aborted=True, more=True)
    await sender.send(message(b"next"))
    await expect_left(sender, b"next")


@case("core", "2.7.5", "A delivery whose only frame aborts it leaves nothing behind.")
async def delivery_may_be_aborted_by_its_only_frame(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    sender.transfer(message(b"aborted"), aborted=True)
    await sender.send(message(b"next"))
    await expect_left(sender, b"next")


@case("core", "2.7.5", "Aborting uses credit up, which the broker renews.")
async def credit_for_aborted_deliveries_is_renewed(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    for _ in range(min(sender.link_credit, 2000) + 5):
        await sender.credit()
        sender.transfer(b"", aborted=True)
    await sender.send(message(b"next"))
    await expect_left(sender, b"next")


# -- settle modes


async def second_mode(peer: Conversation) -> Sender:
    """Return a sender's link with credit on which the broker agreed to settle second."""
    sender = await sender_with_credit(peer, rcv_settle_mode=RCV_SECOND)
    assert sender.remote_attach is not None
    if sender.remote_attach.rcv_settle_mode != RCV_SECOND:
        raise NotApplicable(
            "the broker answers rcv-settle-mode second with first", Kind.NOT_OFFERED
        )
    return sender


@case("core", "2.7.5", "With rcv-settle-mode second the broker does not settle before us.")
async def second_mode_waits_for_our_settlement(peer: Conversation) -> None:
    sender = await second_mode(peer)
    delivery_id = sender.transfer(message(b"1"))
    answer = await peer.expect(Disposition, role=RECEIVER)
    must(not answer.settled and isinstance(answer.state, Accepted), "accepted, unsettled", answer)
    sender.session.send(
        Disposition(role=SENDER, first=delivery_id, settled=True, state=answer.state)
    )
    await peer.expect_nothing(but=(Flow, Disposition))
    await expect_left(sender, b"1")


@case("core", "2.7.5", "A delivery may be settled first on a link of the mode second.")
async def first_mode_of_a_delivery_overrides_the_link(peer: Conversation) -> None:
    sender = await second_mode(peer)
    delivery_id = sender.transfer(message(b"1"), rcv_settle_mode=RCV_FIRST)
    answer = await sender.settled(delivery_id)
    must(answer.settled, "a settled disposition", answer)


@case("core", "2.7.5", "A delivery of mode second is illegal on a link of the mode first.")
async def second_mode_is_illegal_on_a_first_link(peer: Conversation) -> None:
    sender = await sender_with_credit(peer, rcv_settle_mode=RCV_FIRST)
    sender.transfer(message(b"1"), rcv_settle_mode=RCV_SECOND)
    await peer.expect_error()


@case("core", "2.7.5", "The rcv-settle-mode of a delivery that is sent settled is ignored.")
async def mode_of_a_settled_delivery_is_ignored(peer: Conversation) -> None:
    sender = await sender_with_credit(peer, rcv_settle_mode=RCV_FIRST)
    sender.transfer(message(b"1"), settled=True, rcv_settle_mode=RCV_SECOND)
    await peer.expect_nothing()
    await expect_left(sender, b"1")


# -- sizes, and resumed deliveries


@case("core", "2.7.3", "A message above the broker's max-message-size is message-size-exceeded.")
async def message_above_the_maximum_is_refused(peer: Conversation) -> None:
    await peer.open(max_frame_size=1024 * 1024)
    session = await peer.begin()
    sender = await session.attach_sender()
    assert sender.remote_attach is not None
    assert peer.remote_open is not None
    most = int(sender.remote_attach.max_message_size)
    if not 0 < most <= SIZE_WORTH_EXCEEDING:
        raise NotApplicable(
            f"a max-message-size of {most} is none, or more than is worth sending",
            Kind.DID_NOT_HAPPEN,
        )
    await sender.credit()
    step = min(int(peer.remote_open.max_frame_size), 65_536) - 100
    peer.goes_beyond_limits = True
    sender.transfer(message(b"x" * (step - 100))[:step], more=True)
    for _ in range(most // step + 1):
        sender.go_on(b"x" * step, more=True)
    await peer.expect_error(MESSAGE_SIZE_EXCEEDED)


@case("core", "2.7.5", "A resumed delivery that the broker does not know is ignored.")
async def unknown_resumed_delivery_is_ignored(peer: Conversation) -> None:
    sender = await sender_with_credit(peer)
    sender.transfer(message(b"resumed"), resume=True)
    sender.transfer(message(b"resumed, too")[:6], resume=True, more=True)
    sender.go_on(message(b"resumed, too")[6:])
    await peer.expect_nothing(but=(Flow, Disposition))
    await sender.send(message(b"new"))
    await expect_left(sender, b"new")


@case("core", "2.6.13", "An unsettled map of deliveries that nobody knows does no harm.")
async def unknown_unsettled_map_does_no_harm(peer: Conversation) -> None:
    session = await connected_session(peer)
    unsettled = BytesWriter()
    put_value(unsettled, Map([(b"unknown", Described(ULong(0x24), []))]))
    sender = session.new_sender(unsettled=unsettled.getvalue())
    while sender.remote_attach is None:
        await peer.receive()
    if sender.remote_attach.target is None:
        await peer.expect_error()
        return
    told = sender.remote_attach.unsettled
    must(told is None or b"unknown" not in told, "no unknown delivery in the answer", told)
    await sender.send(message(b"new"))
    await expect_left(sender, b"new")
