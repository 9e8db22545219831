"""A quick, seeded run through every entry point, and tests that the fuzzer would find bugs."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.amqp.decode import take_value
from broker.amqp.errors import INTERNAL_ERROR, WINDOW_VIOLATION, Fault
from broker.amqp.frames import AMQP_HEADER, EMPTY_FRAME
from broker.amqp.limits import DEPTH_MAX
from broker.amqp.outcomes import Error
from broker.amqp.performatives import Begin, Close, Detach, End
from tests.fuzz import runs, seeds
from tests.fuzz.__main__ import QUICKEST_FIRST
from tests.fuzz.conversing import scene
from tests.fuzz.keep import shrunk
from tests.fuzz.manners import Manners
from tests.fuzz.mutation import KINDS_OF_NESTING, SIZE_MAX, Mutator, frames_of, nested, sized
from tests.fuzz.structure import values_of
from tests.fuzz.targets import ENTRY_POINTS
from tests.support.frames import Body, Transfer, attach_sender, flow, frame
from tests.wire.golden_messages import MESSAGES

COUNT = 500
CORPUS_SIZE_MAX = 200 * 1024


def test_nothing_is_found_in_a_quick_run(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """All seeds and the corpus run, and some mutations of them."""
    run = runs.mutations(
        list(ENTRY_POINTS),
        compiled=request.config.getoption("--compiled"),
        count=COUNT,
        seconds=60,
        seed=1,
        found_in=tmp_path,
    )
    assert run.finding is None, f"{run.finding.how}: {run.finding.file}\n{run.finding.words}"
    assert [(each["entry_point"], each["inputs"]) for each in run.figures] == [
        (name, COUNT) for name in ENTRY_POINTS
    ]


@pytest.mark.parametrize(
    ("name", "how", "words"),
    [
        pytest.param("crash", "died of SIGSEGV", "", id="a crash"),
        pytest.param("raise_something", "raised", "IndexError", id="an exception"),
        pytest.param("spin", "more than 1 s of CPU time", "", id="an endless loop"),
        pytest.param(
            "take_memory", "raised", "TooMuchMemoryError", id="memory that no size explains"
        ),
        pytest.param("want_gigabytes", "raised", "MemoryError", id="memory beyond the limit"),
    ],
)
def test_what_ends_badly_is_found(name: str, how: str, words: str, tmp_path: Path) -> None:
    run = runs.mutations(
        [name], compiled=False, count=17, seconds=30, seed=0, script="worst.py", found_in=tmp_path
    )
    assert run.finding is not None
    assert (run.finding.entry_point, run.finding.how) == (name, how)
    assert words in run.finding.words
    assert run.finding.file.read_bytes() == b"bad"
    assert run.finding.file.parent == tmp_path


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_a_seed_makes_the_same_inputs_again(name: str) -> None:
    entry_point = ENTRY_POINTS[name]
    one, other = [Mutator(entry_point.seeds(), seed=7, framed=entry_point.framed) for _ in range(2)]
    inputs = [one.next() for _ in range(500)]
    assert inputs == [other.next() for _ in range(500)]
    assert max(map(len, inputs)) <= SIZE_MAX
    assert len(set(inputs)) > 400


@pytest.mark.parametrize("kind", range(KINDS_OF_NESTING))
def test_nested_values_are_whole(kind: int) -> None:
    """Nested values are refused because of their depth, not because of their sizes."""
    flat = nested(kind, b"\x40", 3)
    assert take_value(flat, 0, len(flat))[1] == len(flat)
    deep = nested(kind, b"\x40", DEPTH_MAX + 1)
    with pytest.raises(Fault, match="deep"):
        take_value(deep, 0, len(deep))


def test_frames_are_cut_apart_and_sized() -> None:
    begin = frame(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    data = AMQP_HEADER + begin + EMPTY_FRAME + b"\x00\x00\x00\xff"
    assert frames_of(data) == [AMQP_HEADER, begin, EMPTY_FRAME, b"\x00\x00\x00\xff"]
    longer = begin + b"\x41"
    assert sized(longer) == len(longer).to_bytes(4) + longer[4:]
    assert sized(AMQP_HEADER) == AMQP_HEADER


def test_values_are_read_and_written_as_trees() -> None:
    messages = [each.data for each in MESSAGES]
    for data in messages:
        values, rest = values_of(data)
        assert rest == b""
        again = b"".join(value.encoded() for value in values)
        assert values_of(again)[0][-1].encoded() == values[-1].encoded()
        assert [take_value(again, 0, len(again))[0]] == [take_value(data, 0, len(data))[0]]
    assert values_of(messages[0] + b"\xc0\x09\x01")[1] == b"\xc0\x09\x01"
    assert values_of(b"\x00\x53")[1] == b"\x00\x53"


def test_an_input_is_shrunk_to_what_matters() -> None:
    assert shrunk(b"xxaxxxxbxx", lambda data: b"a" in data and b"b" in data) == b"ab"


def test_the_parts_are_a_whole() -> None:
    assert sum(each.share for each in ENTRY_POINTS.values()) == 100
    assert sorted(QUICKEST_FIRST) == sorted(ENTRY_POINTS)


def test_the_corpus_is_small_and_in_order() -> None:
    files = sorted(seeds.CORPUS.iterdir())
    assert [file.stem for file in files] == sorted(ENTRY_POINTS)
    assert sum(file.stat().st_size for file in files) < CORPUS_SIZE_MAX
    for file in files:
        lines = file.read_text().split()
        assert lines == sorted(set(lines), key=lambda line: (len(line), line))


def test_the_scene_is_set() -> None:
    broker, client, neighbour = scene()
    assert client.peer.is_live()
    assert neighbour.peer.is_live()
    assert broker.container.link_count() == 4
    assert broker.queue("p").backlogs.waiting == 0, "all three are with the client"
    client.hang_up()
    assert broker.queue("p").backlogs.waiting == 3


BEGIN = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)


@pytest.mark.parametrize(
    "bodies",
    [
        pytest.param([BEGIN, BEGIN], id="a channel begins twice"),
        pytest.param([End()], id="an end without a session"),
        pytest.param([flow()], id="a flow without a session"),
        pytest.param([BEGIN, End(), flow()], id="a flow behind end"),
        pytest.param([BEGIN, Transfer()], id="a transfer on no link"),
        pytest.param([BEGIN, flow(handle=0)], id="a flow of no link"),
        pytest.param([BEGIN, attach_sender(), attach_sender()], id="a handle attached twice"),
        pytest.param([BEGIN, Detach(handle=0)], id="a detach of no link"),
        pytest.param([Close(), Close()], id="a frame behind close"),
        pytest.param([Close(error=Error(condition=INTERNAL_ERROR))], id="an internal error"),
        pytest.param(
            [Close(error=Error(condition=WINDOW_VIOLATION))], id="a session's error in close"
        ),
        pytest.param([BEGIN, Transfer(payload=bytes(600))], id="a frame that is too large"),
    ],
)
def test_bad_manners_are_seen(bodies: list[Body]) -> None:
    with pytest.raises(AssertionError):
        Manners(frame_size_max=512).check(b"".join(frame(body) for body in bodies))


def test_good_manners_are_borne() -> None:
    bodies: list[Body] = [BEGIN, attach_sender(), flow(handle=0), Transfer(), Detach(handle=0)]
    manners = Manners(frame_size_max=512)
    manners.check(b"".join(frame(body) for body in [*bodies, End(), BEGIN, Close()]))
    assert manners.closed
