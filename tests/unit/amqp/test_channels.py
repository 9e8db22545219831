"""Channel numbers: which session uses which, in both directions, and when they are free again."""

import pytest

from broker.amqp.channels import Channels
from broker.amqp.errors import FRAMING_ERROR, NOT_ALLOWED, RESOURCE_LIMIT_EXCEEDED, ConnectionFault
from broker.amqp.frames import AMQP_HEADER
from broker.amqp.limits import Limits
from broker.amqp.performatives import Attach, Begin, Close, Detach, End, Flow, Open
from tests.support.broker import Broker, Client
from tests.support.frames import (
    Body,
    Disposition,
    Header,
    Transfer,
    attach_receiver,
    attach_sender,
    body_of,
    flow,
    frame,
    message,
    raw_frame,
)

CHANNEL_MAX = 7
BEGIN = Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10)

OF_A_SESSION = [
    pytest.param(attach_sender(), id="attach"),
    pytest.param(flow(), id="flow"),
    pytest.param(Transfer(), id="transfer"),
    pytest.param(Disposition(), id="disposition"),
    pytest.param(Detach(handle=0), id="detach"),
    pytest.param(End(), id="end"),
]


def connected(*, channel_max: int = 65535) -> Client:
    """Connect a client with this `channel_max` to a broker of eight channels, 0 to CHANNEL_MAX."""
    return Broker(limits=Limits(channel_max=CHANNEL_MAX)).connect(channel_max=channel_max)


def begin(client: Client, channel: int) -> int:
    """Begin a session on `channel`; return the channel on which the broker answers."""
    client.send(BEGIN, channel=channel)
    ours, answer = client.expect_frame(Begin)
    assert answer.remote_channel == channel
    client.expect_nothing()
    return ours


def end(client: Client, channel: int) -> int:
    """End the session on `channel`; return the channel on which the broker answers."""
    client.send(End(), channel=channel)
    ours, answer = client.expect_frame(End)
    assert answer.error is None
    client.expect_nothing()
    return ours


def breaking_session(channel_max: int = 65535) -> Client:
    """Return a client that has not yet answered the broker's end of its session on channel 0."""
    client = connected(channel_max=channel_max)
    begin(client, 0)
    client.send(flow(handle=5))
    ended = client.expect_last(End)
    assert ended.error is not None
    assert ended.error.condition == "amqp:session:unattached-handle"
    return client


# -- channel numbers


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        pytest.param([0], [0], id="the first"),
        pytest.param([5, 0, 7], [5, 0, 7], id="the same where that is free"),
        pytest.param(list(range(8)), list(range(8)), id="as many as there are"),
    ],
)
def test_a_session_is_answered_on_its_own_number(theirs: list[int], ours: list[int]) -> None:
    client = connected()
    assert [begin(client, channel) for channel in theirs] == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        pytest.param([2], [2], id="the highest that the peer takes"),
        pytest.param([7], [0], id="a number that the peer itself does not take"),
        pytest.param([7, 6], [0, 1], id="two of them"),
        pytest.param([7, 0], [0, 1], id="a number that is taken"),
        pytest.param([1, 7, 0], [1, 0, 2], id="the lowest that is free"),
    ],
)
def test_a_peer_with_few_channels_is_answered_on_those(theirs: list[int], ours: list[int]) -> None:
    client = connected(channel_max=2)
    assert [begin(client, channel) for channel in theirs] == ours


def test_no_more_sessions_than_the_peer_has_channels() -> None:
    client = connected(channel_max=1)
    begin(client, 6)
    begin(client, 7)
    client.send(BEGIN, channel=0)
    client.expect_close(RESOURCE_LIMIT_EXCEEDED)


def test_a_number_is_free_again_when_its_session_has_ended() -> None:
    client = connected(channel_max=0)
    for channel in (7, 3, 7, 0):
        assert begin(client, channel) == 0
        assert end(client, channel) == 0


@pytest.mark.parametrize(
    ("claimed", "channel", "condition"),
    [
        pytest.param([], 8, FRAMING_ERROR, id="above what we take"),
        pytest.param([], 65535, FRAMING_ERROR, id="the highest of all"),
        pytest.param([0, 1, 2], 3, RESOURCE_LIMIT_EXCEEDED, id="one more than the peer has"),
    ],
)
def test_a_channel_cannot_be_claimed(claimed: list[int], channel: int, condition: str) -> None:
    channels = Channels(CHANNEL_MAX)
    channels.remote_channel_max = 2
    for each in claimed:
        channels.claim(each)
    with pytest.raises(ConnectionFault) as caught:
        channels.claim(channel)
    assert caught.value.condition == condition


def test_a_begin_above_our_channel_max_closes_the_connection() -> None:
    client = connected()
    client.send(BEGIN, channel=CHANNEL_MAX + 1)
    client.expect_close(FRAMING_ERROR)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(frame(Open(container_id="client"), 1), id="open"),
        pytest.param(raw_frame(b"", 1), id="an empty frame"),
    ],
)
def test_before_open_there_is_only_channel_0(data: bytes) -> None:
    client = Broker().dial()
    client.send_bytes(AMQP_HEADER + data)
    client.expect(Header)
    client.expect(Open)
    client.expect_close(FRAMING_ERROR)


def test_an_empty_frame_may_come_on_any_channel_that_we_take() -> None:
    client = connected()
    client.send_bytes(raw_frame(b"", CHANNEL_MAX))
    client.expect_nothing()
    client.send_bytes(raw_frame(b"", CHANNEL_MAX + 1))
    client.expect_close(FRAMING_ERROR)


def test_a_channel_has_one_session_at_a_time() -> None:
    client = connected()
    begin(client, 3)
    client.send(BEGIN, channel=3)
    client.expect_close(NOT_ALLOWED)


# -- frames of a session


@pytest.mark.parametrize("body", OF_A_SESSION)
@pytest.mark.parametrize(
    ("channel", "condition"),
    [
        pytest.param(0, NOT_ALLOWED, id="below the only one"),
        pytest.param(2, NOT_ALLOWED, id="above the only one"),
        pytest.param(CHANNEL_MAX, NOT_ALLOWED, id="the highest"),
        pytest.param(CHANNEL_MAX + 1, FRAMING_ERROR, id="one that we do not take"),
        pytest.param(65535, FRAMING_ERROR, id="the highest of all"),
    ],
)
def test_a_channel_without_a_session(body: Body, channel: int, condition: str) -> None:
    """A channel above the broker's channel-max is a framing-error (2.7.1, channel-max)."""
    client = connected()
    begin(client, 1)
    client.send(body, channel=channel)
    client.expect_close(condition)


@pytest.mark.parametrize("body", OF_A_SESSION)
def test_behind_its_end_nothing_comes_on_a_channel(body: Body) -> None:
    client = connected()
    begin(client, 0)
    end(client, 0)
    client.send(body)
    client.expect_close(NOT_ALLOWED)


def test_frames_go_to_the_session_of_their_channel() -> None:
    client = connected()
    begin(client, 0)
    begin(client, 4)
    client.send(attach_sender("q"), channel=0)
    assert client.expect_frame(Attach)[0] == 0
    client.expect(Flow)
    client.send(attach_receiver("q"), channel=4)
    assert client.expect_frame(Attach)[0] == 4
    client.flow(channel=4, handle=0, credit=1, delivery_count=0)
    client.send(Transfer(settled=True, payload=message(b"across")), channel=0)
    channel, delivery = client.expect_frame(Transfer)
    assert channel == 4
    assert body_of(delivery.payload) == b"across"
    assert end(client, 4) == 4
    assert client.broker.container.link_count() == 1


def test_the_answers_go_out_on_our_number() -> None:
    client = connected(channel_max=0)
    begin(client, 7)
    client.send(attach_receiver("q"), channel=7)
    assert client.expect_frame(Attach)[0] == 0
    client.send(flow(echo=True), channel=7)
    assert client.expect_frame(Flow)[0] == 0
    client.send(Detach(handle=0, closed=True), channel=7)
    assert client.expect_frame(Detach)[0] == 0


# -- sessions that the broker ends


@pytest.mark.parametrize(
    "body", [*OF_A_SESSION[:-1], pytest.param(flow(handle=5), id="the same mistake again")]
)
def test_until_the_peer_has_heard_of_our_end_its_frames_are_ignored(body: Body) -> None:
    """The peer may have sent them before it received the end (2.5.5, end sent)."""
    client = breaking_session()
    client.send(body)
    client.expect_nothing()
    client.send(End())
    client.expect_nothing()


def test_until_the_peer_has_answered_our_end_the_channel_is_not_free() -> None:
    client = breaking_session()
    client.send(BEGIN)
    client.expect_close(NOT_ALLOWED)


def test_the_answer_to_our_end_frees_the_channel_on_both_sides() -> None:
    client = breaking_session(channel_max=0)
    client.send(End())
    client.expect_nothing()
    assert begin(client, 0) == 0
    client.send(End())
    assert client.expect_last(End).error is None


def test_the_others_do_not_notice_that_one_ends() -> None:
    client = breaking_session()
    begin(client, 1)
    client.send(attach_receiver("q"), channel=1)
    assert client.expect_frame(Attach)[0] == 1


# -- the end of the connection


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(frame(Close()), id="its close"),
        pytest.param(frame(BEGIN, 0), id="its mistake"),
        pytest.param(b"\xff" * 8, id="garbage"),
        pytest.param(None, id="its socket's end"),
    ],
)
def test_all_sessions_end_with(data: bytes | None) -> None:
    client = connected()
    for channel in (0, 3, 7):
        begin(client, channel)
        client.send(attach_receiver(name=f"of {channel}"), channel=channel)
        client.expect_last(Attach)
    assert client.broker.container.link_count() == 3
    if data is None:
        client.hang_up()
    else:
        client.send_bytes(data)
        client.expect_last(Close)
    assert client.broker.container.link_count() == 0
