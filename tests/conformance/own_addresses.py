"""Addresses with settings: queues that move dead letters, queues that discard duplicates."""

from __future__ import annotations

from broker.amqp.outcomes import Rejected

from .conversation import Conversation
from .exchange import properties, receive_one, send_all, state_in_words, take_all
from .harness import case
from .jms_sharing import fill_until_rejected
from .jms_transactions import coordinator, declared, ended, send_within
from .messages import message
from .steps import connected_session, must


@case("own", "dead letters", "A dead letter is moved to its queue, even if that is full.")
async def a_dead_letter_is_moved_to_a_full_queue(peer: Conversation) -> None:
    address, dead_letters = peer.dead_letter_addresses
    session = await connected_session(peer)
    reader = await session.attach_receiver(dead_letters)
    await take_all(reader)
    sender = await session.attach_sender(dead_letters)
    count, state = await fill_until_rejected(sender)
    must(isinstance(state, Rejected), "a small queue that rejects", state_in_words(state))
    await send_all(await session.attach_sender(address), message(b"dead letter"))
    consumer = await session.attach_receiver(address)
    consumer.settle(await receive_one(consumer), Rejected())
    await peer.expect_nothing()
    found = await take_all(reader)
    expected = [*(b"%d" % each for each in range(count)), b"dead letter"]
    must(found == expected, "what filled the queue, and the dead letter", found)


@case("own", "duplicates", "A message that was rolled back is no duplicate when it is sent again.")
async def a_message_that_was_rolled_back_may_be_sent_again(peer: Conversation) -> None:
    address = peer.deduplicating_address
    session = await connected_session(peer)
    link = await coordinator(session)
    sender = await session.attach_sender(address)
    payload = message(b"once", properties(message_id=peer.name("id")))
    txn_id = await declared(link)
    await send_within(sender, txn_id, payload)
    await ended(link, txn_id, fail=True)
    await send_all(sender, payload, payload)
    found = await take_all(await session.attach_receiver(address))
    must(found == [b"once"], "the message, once", found)
