"""An attempt of a sink's task: which of its messages stay when its sender begins anew."""

import pytest

from broker.routing.errors import NoSuchNode, NotAsSent
from tests.support.parties import RecordingProducer
from tests.support.routing import encoded
from tests.support.staging import Staging, restarted, task


def cut_off(staging: Staging, count: int) -> list[RecordingProducer]:
    """Trim the attempt to `count` messages while two links send for it; return their senders."""
    senders = []
    for address in ("q", "r"):
        senders.append(RecordingProducer())
        staging.stage(task(), address).join(senders[-1])
    dropped = staging.trim(task(), count)
    assert dropped == 4 - count
    return senders


@pytest.mark.requirement("PIP-13")
@pytest.mark.parametrize(
    ("count", "left"),
    [
        (4, ([b"a", b"d"], [b"b", b"c"])),
        (3, ([b"a"], [b"b", b"c"])),
        (2, ([b"a"], [b"b"])),
        (1, ([b"a"], [])),
        (0, ([], [])),
    ],
)
@pytest.mark.parametrize(
    "settled",
    [
        pytest.param(b"", id="all in the store"),
        pytest.param(b"abcd", id="all in memory"),
        pytest.param(b"bc", id="those to r could have been in memory"),
        pytest.param(b"ab", id="the first two were in memory"),
    ],
)
def test_an_attempt_goes_on_behind_the_messages_that_it_knows_of(
    count: int, left: tuple[list[bytes], list[bytes]], settled: bytes
) -> None:
    """Its links are detached, so that no message comes late; others follow by new links."""
    staging = Staging()
    for body, address in ((b"a", "q"), (b"b", "r"), (b"c", "r"), (b"d", "q")):
        staging.send(task(), body, address=address, settles=body in settled)
    senders = cut_off(staging, count)
    assert [sender.lost_its_node for sender in senders] == [True, True]
    assert staging.stored() == count
    assert restarted(staging).stages.messages() == count
    assert staging.routing.queue("q").staged_bytes == sum(len(encoded(each)) for each in left[0])
    staging.send(task(), b"e", address="r")
    staging.commit((0, 0), counts=[count + 1])
    assert (staging.waiting("q"), staging.waiting("r")) == (left[0], [*left[1], b"e"])
    assert staging.stored() == 0


@pytest.mark.requirement("PIP-13")
def test_a_stop_stores_the_messages_of_an_attempt_as_they_arrived() -> None:
    staging = Staging()
    for body, address in ((b"a", "q"), (b"b", "r"), (b"c", "q")):
        staging.send(task(), body, address=address, settles=True)
    assert staging.stored() == 0
    staging = restarted(staging)
    assert staging.trim(task(), 2) == 1
    staging.commit((0, 0), counts=[2])
    assert (staging.waiting("q"), staging.waiting("r")) == ([b"a"], [b"b"])


@pytest.mark.requirement("PIP-13")
def test_an_attempt_with_fewer_messages_than_it_knows_of_is_left_as_it_is() -> None:
    staging = Staging()
    staging.send(task(), b"a")
    with pytest.raises(NotAsSent, match="sent 2 messages, 1 are staged"):
        staging.trim(task(), 2)
    with pytest.raises(NotAsSent, match="sent 1 messages, 0 are staged"):
        staging.trim(task(query="nobody"), 1)
    assert staging.trim(task(query="nobody"), 0) == 0
    chosen = staging.stages.choose("orders", 0, [(0, 0, 1)])
    assert len(chosen) == 1
    with pytest.raises(NoSuchNode, match="takes no more messages"):
        staging.trim(task(), 0)
    assert staging.stored() == 1
