"""Outcomes that outlive their link: a sender that settles second resumes them (2.6.13)."""

from __future__ import annotations

import gc

import pytest

from broker.amqp.limits import UNSETTLED_MAP_MAX, Limits
from broker.amqp.outcomes import ACCEPTED, Rejected, State, TransactionalState
from broker.amqp.performatives import RCV_FIRST, RCV_SECOND, SENDER, Attach, Detach
from broker.amqp.received_outcomes import ReceivedOutcomes
from broker.amqp.terminus import CONNECTION_CLOSE, LINK_DETACH, NEVER, SESSION_END, Target
from broker.routing.addresses.policy import REJECT, AddressPolicy
from broker.routing.termini.suspended import SuspendedTerminus
from tests.conformance.resuming import unsettled_map
from tests.support.broker import Broker, Client
from tests.support.endings import detach_closed, end, hang_up
from tests.support.frames import Disposition, Transfer, message
from tests.support.resuming import resting
from tests.support.transactions import Controller
from tests.support.unsettled_maps import told

LASTING = Target(address="q", expiry_policy=CONNECTION_CLOSE, timeout=60)


def sending(broker: Broker | None = None, *, target: Target = LASTING) -> Client:
    """Return a client with a link on which it settles second, at handle 0."""
    client = (broker or Broker()).session()
    come_back(client, None, target=target)
    return client


def come_back(
    client: Client,
    states: dict[bytes, State | None] | None,
    *,
    target: Target = LASTING,
    incomplete: bool = False,
    mode: int = RCV_SECOND,
) -> Attach:
    return client.attach_sender(
        target=target,
        rcv_settle_mode=mode,
        unsettled=None if states is None else unsettled_map(states),
        incomplete_unsettled=incomplete,
    )


def away_with_two() -> Client:
    """Return a client that has detached its link, and holds the outcomes of `one` and `two`."""
    client = sending()
    client.transfer(0, tag=b"one")
    client.transfer(1, tag=b"two")
    client.frames()
    resting(client)
    return client


def settle(client: Client, first: int, last: int | None = None) -> None:
    client.send(Disposition(first=first, last=last, role=SENDER))


def waiting(client: Client) -> int:
    return int(client.broker.queue().backlogs.waiting)


def resume(client: Client, number: int, tag: bytes, *, settled: bool = False) -> None:
    client.transfer(number, tag=tag, resume=True, settled=settled)


GRANTED = [
    (SESSION_END, 0, LINK_DETACH, 0),
    (LINK_DETACH, 30, LINK_DETACH, 30),
    (CONNECTION_CLOSE, 4000, CONNECTION_CLOSE, 300),
    (NEVER, 0, CONNECTION_CLOSE, 300),
]


@pytest.mark.parametrize(("asked", "timeout", "policy", "granted"), GRANTED)
@pytest.mark.parametrize("mode", [RCV_FIRST, RCV_SECOND])
def test_a_target_lasts_where_its_sender_settles_second(
    mode: int, asked: str, timeout: int, policy: str, granted: int
) -> None:
    client = Broker().session()
    target = Target(address="q", expiry_policy=asked, timeout=timeout)
    answer = client.attach_sender(target=target, rcv_settle_mode=mode)
    assert isinstance(answer.target, Target)
    expected = (policy, granted) if mode == RCV_SECOND else (LINK_DETACH, 0)
    assert (answer.target.expiry_policy, answer.target.timeout) == expected


@pytest.mark.parametrize("ending", [None, hang_up], ids=["detached", "lost"])
def test_a_delivery_that_is_resumed_is_not_routed_again(ending: object) -> None:
    client = sending()
    client.transfer(0, tag=b"one")
    client.transfer(1, tag=b"two")
    assert client.expect(Disposition).settled is False
    client.frames()
    if callable(ending):
        ending(client)
        client = client.broker.session()
    else:
        resting(client)
    answer = come_back(client, {b"one": None, b"two": ACCEPTED, b"new": None})
    assert told(answer) == {b"one": "accepted", b"two": "accepted"}
    number = 0 if callable(ending) else 2
    resume(client, number, b"one")
    outcome = client.expect_last(Disposition)
    assert (outcome.first, outcome.settled, outcome.state) == (number, False, ACCEPTED)
    resume(client, number + 1, b"two", settled=True)
    client.expect_nothing()
    settle(client, number)
    assert waiting(client) == 2
    resting(client)
    assert client.broker.router.termini.count() == 0


def test_a_target_that_is_stolen_leaves_its_outcomes_to_the_other_link() -> None:
    client = sending()
    client.transfer(0, tag=b"one")
    client.expect_last(Disposition)
    other = client.broker.session()
    assert told(come_back(other, {b"one": None})) == {b"one": "accepted"}
    client.expect_detach("amqp:link:stolen")
    resume(other, 0, b"one")
    assert other.expect_last(Disposition).state == ACCEPTED
    assert (waiting(other), other.broker.router.termini.count()) == (1, 0)


def test_a_resumed_delivery_in_many_frames_is_not_routed_again() -> None:
    client = sending()
    client.transfer(0, tag=b"one")
    client.expect_last(Disposition)
    resting(client)
    come_back(client, {b"one": None})
    payload = message(b"x" * 3000)
    client.send(
        Transfer(delivery_id=1, tag=b"one", resume=True, more=True, payload=payload[:900]),
        Transfer(delivery_id=1, tag=b"one", more=True, payload=payload[900:1800]),
        Transfer(delivery_id=None, tag=None, payload=payload[1800:]),
    )
    assert client.expect_last(Disposition).first == 1
    assert waiting(client) == 1


def test_a_resumed_delivery_has_only_so_many_frames() -> None:
    limits = Limits(max_message_size=1000)
    client = sending(Broker(limits=limits))
    client.transfer(0, tag=b"one")
    client.expect_last(Disposition)
    resting(client)
    come_back(client, {b"one": None})
    client.send(Transfer(delivery_id=1, tag=b"one", resume=True, more=True))
    for _ in range(1, int(limits.transfers_per_delivery())):
        client.send(Transfer(delivery_id=None, tag=None, more=True))
    client.frames()
    client.send(Transfer(delivery_id=None, tag=None, more=True))
    client.expect_detach("amqp:resource-limit-exceeded")


def test_an_unknown_delivery_that_is_resumed_is_ignored() -> None:
    client = sending()
    client.transfer(0, tag=b"one")
    client.expect_last(Disposition)
    resting(client)
    come_back(client, {b"one": None, b"other": None})
    resume(client, 1, b"other")
    client.expect_nothing()
    client.transfer(2, tag=b"other")
    assert client.expect_last(Disposition).first == 2
    assert waiting(client) == 2


def test_a_rejection_is_repeated_too() -> None:
    broker = Broker(policy=AddressPolicy(max_messages=1, full=REJECT))
    client = sending(broker)
    client.transfer(0, tag=b"one")
    client.transfer(1, tag=b"two")
    client.frames()
    resting(client)
    answer = come_back(client, {b"one": None, b"two": None})
    assert told(answer) == {b"one": "accepted", b"two": "rejected"}
    resume(client, 2, b"two")
    assert isinstance(client.expect_last(Disposition).state, Rejected)


def test_what_the_sender_has_settled_is_forgotten() -> None:
    client = sending()
    for number in range(3):
        client.transfer(number, tag=b"%d" % number)
    client.frames()
    settle(client, 0, 1)
    resting(client)
    assert told(come_back(client, {b"2": None})) == {b"2": "accepted"}


def test_what_a_complete_map_lacks_was_settled() -> None:
    client = away_with_two()
    assert told(come_back(client, {b"two": None})) == {b"two": "accepted"}
    client.transfer(2, tag=b"one")
    assert client.expect_last(Disposition).first == 2
    assert waiting(client) == 3


def test_an_incomplete_map_settles_nothing() -> None:
    client = away_with_two()
    answer = come_back(client, {b"two": None}, incomplete=True)
    assert told(answer) == {b"one": "accepted", b"two": "accepted"}


def refused_until_the_next_attach(client: Client) -> None:
    """Check that the last transfer has ended the link, but not its target, and answer that."""
    refused = client.expect_last(Detach)
    assert not refused.closed
    assert refused.error is not None
    assert refused.error.condition == "amqp:illegal-state"
    client.send(Detach(handle=0))


@pytest.mark.parametrize("mode", [RCV_FIRST, RCV_SECOND])
def test_a_sender_whose_map_was_incomplete_sends_nothing_new(mode: int) -> None:
    client = Broker().session()
    come_back(client, {}, incomplete=True, mode=mode)
    client.transfer(0, tag=b"new")
    refused_until_the_next_attach(client)
    assert waiting(client) == 0
    come_back(client, {}, mode=mode)
    client.transfer(1, tag=b"new")
    assert client.expect_last(Disposition).state == ACCEPTED
    assert waiting(client) == 1


def test_a_sender_whose_map_was_incomplete_resumes_what_it_lists() -> None:
    client = away_with_two()
    come_back(client, {b"two": None}, incomplete=True)
    resume(client, 2, b"two")
    assert client.expect_last(Disposition).first == 2
    client.transfer(3, tag=b"new")
    client.transfer(4, tag=b"newer")  # this one was on its way
    refused_until_the_next_attach(client)
    answer = come_back(client, {b"one": None, b"two": None})
    assert told(answer) == {b"one": "accepted", b"two": "accepted"}
    assert waiting(client) == 2


def test_after_an_incomplete_map_of_the_broker_nothing_new_is_taken() -> None:
    tags = [b"%032d" % number for number in range(20)]
    client = Broker().session(max_frame_size=512)
    come_back(client, {})
    for number, tag in enumerate(tags):
        client.transfer(number, tag=tag)
    client.frames()
    resting(client)
    answer = come_back(client, dict.fromkeys(tags))
    assert answer.incomplete_unsettled
    listed = list(told(answer) or {})
    assert 0 < len(listed) < len(tags)
    resume(client, 20, listed[0])
    assert client.expect_last(Disposition).first == 20
    client.transfer(21, tag=b"new")
    refused_until_the_next_attach(client)
    # the others are settled, by their absence: then the rest fits
    answer = come_back(client, {tags[-1]: None, tags[-2]: None})
    assert not answer.incomplete_unsettled
    assert told(answer) == {tags[-1]: "accepted", tags[-2]: "accepted"}
    client.transfer(22, tag=b"new")
    assert client.expect_last(Disposition).first == 22


def test_an_incomplete_map_of_the_broker_begins_with_what_the_sender_lists() -> None:
    tags = [b"%032d" % number for number in range(20)]
    client = Broker().session(max_frame_size=512)
    come_back(client, {})
    for number, tag in enumerate(tags):
        client.transfer(number, tag=tag)
    client.frames()
    resting(client)
    answer = come_back(client, dict.fromkeys(tags[15:18]), incomplete=True)
    assert answer.incomplete_unsettled
    assert list(told(answer) or {})[:4] == [*tags[15:18], tags[0]]


def test_a_transaction_fails_with_a_new_delivery_after_an_incomplete_map() -> None:
    broker = Broker()
    client = broker.session()
    controller = Controller(broker, client=client)
    come_back(client, {}, incomplete=True)
    txn_id = controller.declare()
    controller.transfer(message(b"x"), state=TransactionalState(txn_id=txn_id))
    refused_until_the_next_attach(client)
    assert controller.fail_to_commit(txn_id) == "amqp:illegal-state"


def test_without_a_map_all_is_forgotten() -> None:
    client = sending()
    client.transfer(0, tag=b"one")
    client.expect_last(Disposition)
    resting(client)
    assert not come_back(client, None).has_unsettled
    client.transfer(1, tag=b"one")
    client.expect_last(Disposition)
    assert waiting(client) == 2


def test_a_tag_of_an_unsettled_delivery_is_refused() -> None:
    client = sending()
    client.transfer(0, tag=b"one")
    client.expect_last(Disposition)
    client.transfer(1, tag=b"one")
    client.expect_detach("amqp:not-allowed")
    assert waiting(client) == 1


def test_a_resumed_delivery_that_is_aborted_is_given_up() -> None:
    client = sending()
    client.transfer(0, tag=b"one")
    client.expect_last(Disposition)
    resting(client)
    come_back(client, {b"one": None})
    client.send(Transfer(delivery_id=1, tag=b"one", resume=True, aborted=True))
    client.transfer(2, tag=b"one")
    assert client.expect_last(Disposition).first == 2


@pytest.mark.parametrize("ending", [detach_closed, end], ids=["detached for good", "session"])
def test_outcomes_last_as_long_as_their_target(ending: object) -> None:
    client = sending(target=Target(address="q", expiry_policy=CONNECTION_CLOSE))
    client.transfer(0, tag=b"one")
    client.expect_last(Disposition)
    assert callable(ending)
    ending(client)
    assert client.broker.router.termini.count() == int(ending is end)
    client.hang_up()
    assert client.broker.router.termini.count() == 0


def test_a_link_without_outcomes_makes_no_terminus() -> None:
    client = sending()
    gc.disable()
    try:
        before = termini_in_memory()  # of other tests
        client.send(Detach(handle=0))
        assert termini_in_memory() == before
    finally:
        gc.enable()


def termini_in_memory() -> int:
    return sum(isinstance(each, SuspendedTerminus) for each in gc.get_objects())


def test_outcomes_are_forgotten_when_their_time_is_over() -> None:
    client = sending()
    client.transfer(0, tag=b"one")
    client.hang_up()
    client.broker.advance(60_000)
    again = client.broker.session()
    assert not come_back(again, {b"one": None}).has_unsettled


def test_a_link_that_settles_first_takes_over_nothing() -> None:
    client = sending()
    client.transfer(0, tag=b"one")
    client.expect_last(Disposition)
    resting(client)
    assert not come_back(client, {b"one": None}, mode=RCV_FIRST).has_unsettled
    resume(client, 1, b"one")
    client.expect_nothing()


def test_a_target_of_another_address_takes_over_nothing() -> None:
    client = sending()
    client.transfer(0, tag=b"one")
    client.expect_last(Disposition)
    resting(client)
    target = Target(address="other", expiry_policy=NEVER)
    assert not come_back(client, {b"one": None}, target=target).has_unsettled


def test_deliveries_in_transactions_are_not_kept() -> None:
    broker = Broker()
    client = broker.session()
    controller = Controller(broker, client=client)
    come_back(client, None)
    txn_id = controller.declare()
    controller.transfer(message(b"x"), state=TransactionalState(txn_id=txn_id))
    client.frames()
    resting(client)
    assert broker.router.termini.count() == 0


def test_a_target_keeps_only_so_many_outcomes() -> None:
    kept = ReceivedOutcomes()
    for number in range(UNSETTLED_MAP_MAX):
        kept.arrived(number.to_bytes(4, "big"))
    with pytest.raises(Exception, match="at most 65536 deliveries"):
        kept.arrived(b"more")
