"""Deliveries that outlive their link: resumed, settled or sent anew by the next one (2.6.13)."""

from __future__ import annotations

import pytest

from broker.amqp.limits import Limits
from broker.amqp.outcomes import ACCEPTED, RELEASED, Modified, Rejected, State, TransactionalState
from broker.amqp.performatives import SND_SETTLED, Detach
from broker.amqp.terminus import CONNECTION_CLOSE, LINK_DETACH, NEVER, SESSION_END, Source
from tests.conformance.resuming import unsettled_map
from tests.support.broker import Broker
from tests.support.endings import close, detach, detach_closed, end, hang_up
from tests.support.frames import Disposition, Transfer, body_of
from tests.support.resuming import (
    FAILED,
    LASTING,
    PART,
    come_back,
    counts,
    holding,
    resting,
    suspended,
    tags_of,
)
from tests.support.routing import encoded
from tests.support.unsettled_maps import EMPTY, told

pytestmark = pytest.mark.requirement("RCV-08")

# -- granted


GRANTED = [
    (SESSION_END, 0, LINK_DETACH, 0),
    (SESSION_END, 30, LINK_DETACH, 0),
    (LINK_DETACH, 0, LINK_DETACH, 0),
    (LINK_DETACH, 30, LINK_DETACH, 30),
    (LINK_DETACH, 4000, LINK_DETACH, 300),
    (CONNECTION_CLOSE, 0, CONNECTION_CLOSE, 0),
    (CONNECTION_CLOSE, 4000, CONNECTION_CLOSE, 300),
    (NEVER, 0, CONNECTION_CLOSE, 300),
]


@pytest.mark.parametrize(("asked", "timeout", "policy", "granted"), GRANTED)
def test_the_source_of_a_queue_gets_terms_of_a_bounded_time(
    asked: str, timeout: int, policy: str, granted: int
) -> None:
    client = Broker().session()
    source = Source(address="q", expiry_policy=asked, timeout=timeout)
    answer = client.attach_receiver(source=source)
    assert answer.source is not None
    assert (answer.source.expiry_policy, answer.source.timeout) == (policy, granted)
    assert not answer.has_unsettled


def test_without_the_setting_nothing_is_granted() -> None:
    client = holding(broker=Broker(limits=Limits(resume_max_s=0)))
    resting(client)
    assert counts(client) == (3, 0)


KEPT = [
    pytest.param(Source(address="q", expiry_policy=LINK_DETACH, timeout=9), id="detach, 9 s"),
    pytest.param(Source(address="q", expiry_policy=CONNECTION_CLOSE), id="connection"),
    pytest.param(Source(address="q", expiry_policy=NEVER), id="never"),
]


@pytest.mark.parametrize("source", KEPT)
def test_deliveries_outlive_a_detach_where_their_source_does(source: Source) -> None:
    client = holding(source=source)
    resting(client)
    assert (counts(client), suspended(client)) == ((0, 3), 1)


@pytest.mark.parametrize("source", [Source(address="q"), Source(address="q", timeout=30)])
def test_by_default_deliveries_end_with_their_link(source: Source) -> None:
    client = holding(source=source)
    resting(client)
    assert (counts(client), suspended(client)) == ((3, 0), 0)


ENDS = [
    pytest.param(LINK_DETACH, 9, hang_up, True, id="detach 9 s, lost"),
    pytest.param(CONNECTION_CLOSE, 0, end, True, id="connection, session ended"),
    pytest.param(CONNECTION_CLOSE, 0, close, False, id="connection, closed"),
    pytest.param(CONNECTION_CLOSE, 0, hang_up, False, id="connection, lost"),
    pytest.param(CONNECTION_CLOSE, 9, close, True, id="connection 9 s, closed"),
    pytest.param(NEVER, 0, hang_up, True, id="never, lost"),
    pytest.param(NEVER, 0, detach_closed, False, id="never, detached for good"),
]


@pytest.mark.parametrize(("policy", "timeout", "ending", "stays"), ENDS)
def test_deliveries_outlive_what_their_source_outlives(
    policy: str, timeout: int, ending: object, stays: bool
) -> None:
    client = holding(source=Source(address="q", expiry_policy=policy, timeout=timeout))
    assert callable(ending)
    ending(client)
    assert counts(client) == ((0, 3) if stays else (3, 0))
    assert suspended(client) == int(stays)


def test_deliveries_return_when_the_time_of_their_source_is_over() -> None:
    client = holding()
    client.hang_up()
    client.broker.advance(59_999)
    assert counts(client) == (0, 3)
    client.broker.advance(1)
    assert (counts(client), suspended(client)) == ((3, 0), 0)
    other = client.broker.session("other")
    other.attach_receiver(credit=3)
    other.expect_deliveries(b"0", b"1", b"2")


def test_deliveries_return_with_the_connection_of_a_suspended_source() -> None:
    client = holding(source=Source(address="q", expiry_policy=CONNECTION_CLOSE))
    resting(client)
    client.hang_up()
    assert (counts(client), suspended(client)) == ((3, 0), 0)


# -- resumed


def test_tags_name_messages_by_their_places() -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach_receiver(source=LASTING, credit=2)
    deliveries = client.expect_deliveries(b"0", b"1")
    assert [each.tag for each in deliveries] == tags_of(2)


@pytest.mark.parametrize("ending", [detach, hang_up], ids=["detached", "lost"])
def test_a_delivery_of_both_maps_is_resumed(ending: object) -> None:
    client = holding(2)
    assert callable(ending)
    ending(client)
    if ending is hang_up:
        client = client.broker.session()
    else:
        client.expect_last(Detach)
    one, two = tags_of(2)
    answer = come_back(client, {one: None, two: None})
    assert told(answer) == {one: None, two: None}
    assert not answer.incomplete_unsettled
    deliveries = client.expect_deliveries(b"0", b"1")
    assert [(each.tag, each.resume, each.settled) for each in deliveries] == [
        (one, True, False),
        (two, True, False),
    ]
    client.send(Disposition(first=deliveries[0].delivery_id or 0, last=deliveries[1].delivery_id))
    assert counts(client) == (0, 0)
    assert client.broker.router.termini.resumed == 2


def test_a_resumed_delivery_needs_credit() -> None:
    client = holding(2)
    resting(client)
    one, two = tags_of(2)
    come_back(client, {one: None, two: None}, credit=1)
    client.expect_deliveries(b"0")
    client.flow(handle=0, credit=1, delivery_count=1)
    client.expect_deliveries(b"1")


def test_new_messages_come_behind_resumed_ones() -> None:
    client = holding(1)
    resting(client)
    client.broker.fill(count=2)
    come_back(client, {tags_of(1)[0]: None})
    deliveries = client.expect_deliveries(b"0", b"0", b"1")
    assert [each.resume for each in deliveries] == [True, False, False]


def test_a_large_delivery_is_resumed_frame_by_frame() -> None:
    broker = Broker()
    sender = broker.session("filler")
    sender.attach_sender()
    sender.transfer(body=b"x" * 3000, settled=True)
    client = broker.session(max_frame_size=1024)
    client.attach_receiver(source=LASTING, credit=1)
    first = client.frames()
    resting(client)
    (tag,) = tags_of(1)
    come_back(client, {tag: None}, credit=1)
    frames = [each.body for each in client.frames()]
    assert len(frames) == len(first) > 2
    assert all(isinstance(each, Transfer) and each.tag == tag for each in frames)
    assert [getattr(each, "resume", None) for each in frames] == [True] + [False] * (
        len(frames) - 1
    )
    payload = b"".join(each.payload for each in frames if isinstance(each, Transfer))
    assert body_of(payload) == b"x" * 3000


OUTCOMES = [
    pytest.param(ACCEPTED, (0, 0), id="accepted"),
    pytest.param(RELEASED, (1, 0), id="released"),
    pytest.param(FAILED, (1, 0), id="failed"),
    pytest.param(Rejected(), (0, 0), id="rejected"),
]


@pytest.mark.parametrize(("outcome", "left"), OUTCOMES)
def test_an_outcome_in_the_map_is_taken_and_settled(outcome: State, left: tuple[int, int]) -> None:
    client = holding(1)
    resting(client)
    (tag,) = tags_of(1)
    come_back(client, {tag: outcome}, credit=0)
    client.expect_nothing()
    assert counts(client) == left
    client.flow(handle=0, credit=1, delivery_count=0)
    settled = client.expect(Transfer)
    assert (settled.tag, settled.resume, settled.settled, settled.payload) == (tag, True, True, b"")
    assert type(settled.state) is type(outcome)
    client.expect_nothing()


def test_annotations_of_an_outcome_count_for_its_message_alone() -> None:
    client = holding(1)
    resting(client)
    (tag,) = tags_of(1)
    annotations = b"\xc1\x0a\x02\xa3\x06x-opt1\x41"
    come_back(client, {tag: Modified(message_annotations=annotations)}, credit=0)
    resting(client)
    (terminus,) = client.broker.router.termini.all()
    assert terminus.deliveries is not None
    assert (terminus.count(), int(terminus.deliveries.bytes)) == (1, 0)


def test_an_outcome_is_repeated_until_the_peer_has_been_told() -> None:
    client = holding(1)
    resting(client)
    (tag,) = tags_of(1)
    come_back(client, {tag: ACCEPTED}, credit=0)
    resting(client)
    answer = come_back(client, {tag: ACCEPTED}, credit=1)
    assert told(answer) == {tag: "accepted"}
    assert client.expect_last(Transfer).settled
    resting(client)
    assert told(come_back(client, {})) is None


@pytest.mark.parametrize("source", [LASTING, Source(address="q")], ids=["lasting", "default"])
def test_without_a_map_all_returns_in_order(source: Source) -> None:
    client = holding()
    resting(client)
    answer = come_back(client, None, source=source)
    assert not answer.has_unsettled
    deliveries = client.expect_deliveries(b"0", b"1", b"2")
    assert not any(each.resume for each in deliveries)


def test_what_a_complete_map_lacks_is_sent_anew() -> None:
    client = holding()
    resting(client)
    one, two, three = tags_of(3)
    answer = come_back(client, {two: None})
    assert told(answer) == {one: None, two: None, three: None}
    deliveries = client.expect_deliveries(b"1", b"0", b"2")
    assert [each.resume for each in deliveries] == [True, False, False]


def test_what_only_the_peer_has_is_ignored() -> None:
    client = holding(1)
    resting(client)
    (tag,) = tags_of(1)
    answer = come_back(client, {b"other": None, tag: None, b"third": ACCEPTED})
    assert told(answer) == {tag: None}
    client.expect_deliveries(b"0")


def test_a_part_of_a_delivery_is_aborted_and_sent_anew() -> None:
    client = holding(2)
    resting(client)
    one, two = tags_of(2)
    come_back(client, {one: PART, two: None})
    aborted = client.expect(Transfer)
    assert (aborted.tag, aborted.resume, aborted.aborted, aborted.payload) == (one, True, True, b"")
    deliveries = client.expect_deliveries(b"1", b"0")
    assert [(each.tag, each.resume) for each in deliveries] == [(two, True), (one, False)]


def test_a_state_within_a_transaction_counts_as_null() -> None:
    client = holding(1)
    resting(client)
    (tag,) = tags_of(1)
    come_back(client, {tag: TransactionalState(txn_id=b"gone", outcome=ACCEPTED)})
    (delivery,) = client.expect_deliveries(b"0")
    assert delivery.resume


def test_the_default_outcome_decides_about_what_does_not_return() -> None:
    source = Source(
        address="q", expiry_policy=CONNECTION_CLOSE, timeout=60, default_outcome=ACCEPTED
    )
    client = holding(source=source)
    resting(client)
    come_back(client, {}, source=source)
    assert counts(client) == (0, 0)
    client.expect_nothing()


# -- who resumes


def test_a_link_that_is_stolen_leaves_its_deliveries_to_the_other() -> None:
    client = holding(2)
    other = client.broker.session()
    one, two = tags_of(2)
    answer = come_back(other, {one: None, two: ACCEPTED})
    assert told(answer) == {one: None, two: None}
    client.expect_detach("amqp:link:stolen")
    assert [other.expect(Transfer).tag for _ in range(2)] == [one, two]
    assert (counts(client), suspended(client)) == ((0, 1), 0)


def test_another_name_role_or_container_resumes_nothing() -> None:
    client = holding(1)
    resting(client)
    client.attach_receiver(source=LASTING, name="other", unsettled=EMPTY, credit=1)
    client.attach_sender(name="receiver", handle=1)
    other = client.broker.session("other")
    other.attach_receiver(source=LASTING, unsettled=EMPTY, credit=1)
    assert counts(client) == (0, 1)


def test_a_link_to_another_queue_ends_the_source() -> None:
    client = holding(1)
    resting(client)
    answer = client.attach_receiver(
        source=Source(address="other", expiry_policy=NEVER),
        unsettled=unsettled_map({tags_of(1)[0]: None}),
    )
    assert not answer.has_unsettled
    assert counts(client) == (1, 0)


def test_the_fault_of_a_link_ends_its_source() -> None:
    client = holding(1)
    client.flow(handle=0, credit=5, delivery_count=99)
    client.expect_detach("amqp:invalid-field")
    assert (counts(client), suspended(client)) == ((1, 0), 0)


def test_a_queue_that_is_deleted_takes_its_suspended_sources_along() -> None:
    client = holding(2)
    resting(client)
    queue = client.broker.queue()
    client.broker.router.delete(queue, client.broker.journal.batch)
    client.broker.container.run_round()
    assert (suspended(client), int(queue.state.acquired)) == (0, 0)
    assert client.broker.router.memory.held == 0


def test_settled_deliveries_leave_no_source_behind() -> None:
    client = holding(1)
    client.send(Disposition(first=0))
    resting(client)
    assert suspended(client) == 0


def test_messages_that_are_sent_settled_are_not_kept() -> None:
    broker = Broker()
    broker.fill(count=1)
    client = broker.session()
    answer = client.attach_receiver(source=LASTING, snd_settle_mode=SND_SETTLED, credit=1)
    assert answer.source is not None
    assert answer.source.expiry_policy == LINK_DETACH
    client.expect_deliveries(b"0")
    resting(client)
    assert suspended(client) == 0


def test_a_group_stays_with_the_consumer_that_comes_back() -> None:
    broker = Broker()
    fill_group(broker, 3)
    client = broker.session()
    client.attach_receiver(source=LASTING, credit=1)
    client.expect_deliveries(b"0")
    resting(client)
    other = broker.session("other")
    other.attach_receiver(credit=9)
    other.expect_nothing()
    come_back(client, {tags_of(1)[0]: None}, credit=9)
    client.expect_deliveries(b"0", b"1", b"2")
    client.send(Disposition(first=1, last=3))
    assert counts(client) == (0, 0)


def fill_group(broker: Broker, count: int) -> None:
    """Send messages of one group to `q`."""
    sender = broker.session("filler")
    sender.attach_sender()
    for number in range(count):
        payload = encoded(b"%d" % number, group="g")
        sender.send(Transfer(delivery_id=number, settled=True, payload=payload))
    sender.hang_up()
