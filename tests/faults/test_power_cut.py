"""F3: whatever a power cut leaves of a broker's store, the promises hold (P1, P3, P4)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults import power_trace
from tests.faults.power_check import Held, Judge
from tests.faults.power_cut import run
from tests.faults.power_image import Cut, Disk
from tests.faults.power_trace import (
    Event,
    Heard,
    Opened,
    Removed,
    Said,
    SyncBegan,
    Synced,
    Truncate,
    Write,
    events_of,
)
from tests.faults.power_wire import Copy, History, Transaction, without_header
from tests.support.frames import message
from tests.unit.storage.test_batch import stored

IMAGES = 100


@pytest.mark.slow
@pytest.mark.requirement("PRD-03", "DST-02")
async def test_what_was_promised_outlives_a_power_cut() -> None:
    reason = power_trace.reason_not_to()
    if reason is not None:
        pytest.skip(reason)
    result = await run(images=IMAGES, seed=1, size=2)
    print(result.line())
    assert result.images == IMAGES
    assert result.several > IMAGES // 2
    assert result.acknowledged > 1000
    assert result.findings.examples == {}


# -- what strace tells

FOLDER = "".join(f"\\x{byte:02x}" for byte in b"/d")
FILE = FOLDER + "".join(f"\\x{byte:02x}" for byte in b"/f")
SOCKET = "7<TCP:[127.0.0.1:5->127.0.0.1:6]>"
NAME = "TCP:[127.0.0.1:5->127.0.0.1:6]"

TRACES = [
    pytest.param(
        [f'1 openat(AT_FDCWD<{FOLDER}>, "f", O_RDWR|O_CREAT, 0644) = 3<{FILE}>'],
        [Opened("f")],
        id="a file is opened",
    ),
    pytest.param(
        [f'1 pwrite64(3<{FILE}>, "\\x41\\x42", 2, 512) = 2', f"1 ftruncate(3<{FILE}>, 9) = 0"],
        [Write("f", 512, b"AB"), Truncate("f", 9)],
        id="a file is written",
    ),
    pytest.param(
        [f"1 fdatasync(3<{FILE}>) = 0", f"1 fsync(4<{FOLDER}>) = 0", f'1 unlink("{FILE}") = 0'],
        [SyncBegan("f", 1), Synced("f", 1), SyncBegan("", 2), Synced("", 2), Removed("f")],
        id="a file and its folder are synced",
    ),
    pytest.param(
        [
            f"1 fdatasync(3<{FILE}> <unfinished ...>",
            f'2 write({SOCKET}, "\\x41", 1) = 1',
            "1 <... fdatasync resumed>) = 0",
        ],
        [SyncBegan("f", 1), Said(NAME, b"A"), Synced("f", 1)],
        id="something is said while a sync is under way",
    ),
    pytest.param(
        [
            f"2 read({SOCKET},  <unfinished ...>",
            f'1 pwrite64(3<{FILE}>, "\\x41", 1, 0 <unfinished ...>',
            '2 <... read resumed>"\\x42\\x43", 100) = 2',
            "1 <... pwrite64 resumed>) = 1",
        ],
        [Write("f", 0, b"A"), Heard(NAME, b"BC")],
        id="a write counts from its beginning, what is read from its end",
    ),
    pytest.param(
        [
            f"1 fdatasync(3<{FILE}> <unfinished ...>",
            "1 <... fdatasync resumed>) = ?",
            "1 +++ killed by SIGKILL +++",
        ],
        [SyncBegan("f", 1)],
        id="a sync that a kill cuts short has not happened",
    ),
    pytest.param(
        [
            f'2 sendto({SOCKET}, "\\x41\\x42\\x43", 3, 0, NULL, 0) = 2',
            f"2 read({SOCKET}, 0x55, 100) = -1 EAGAIN (Resource temporarily unavailable)",
            '2 write(1</dev/null>, "\\x41", 1) = 1',
            f'1 pwrite64(3<{FILE}\\x2d\\x73\\x68\\x6d>, "\\x41", 1, 0) = 1',
        ],
        [Said(NAME, b"AB")],
        id="what was not done, or concerns nobody, is left out",
    ),
]


@pytest.mark.parametrize(("lines", "events"), TRACES)
def test_a_trace_tells(tmp_path: Path, lines: list[str], events: list[Event]) -> None:
    trace = tmp_path / "trace"
    trace.write_text("".join(line + "\n" for line in lines))
    assert events_of(trace, Path("/d")) == events


def test_a_trace_with_something_unforeseen_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    for line in (
        f'1 rename("{FILE}", "{FILE}") = 0',
        f"1 fallocate(3<{FILE}>, 0, 0, 9) = 0",
        f"1 fdatasync(3<{FILE}>) = -1 EIO (Input/output error)",
    ):
        trace.write_text(line + "\n")
        with pytest.raises(power_trace.TraceError):
            events_of(trace, Path("/d"))


# -- what a power cut leaves

OPENED = [Opened("f"), SyncBegan("", 1), Synced("", 1)]
BASE = [*OPENED, Write("f", 0, b"a" * 1024), SyncBegan("f", 2), Synced("f", 2)]
LATER = [*BASE, Write("f", 0, b"b" * 1024), Write("f", 1024, b"c" * 512)]

IMAGES_LEFT = [
    pytest.param([Opened("f")], Cut.DROPPED, [{}], id="a file whose folder was not synced"),
    pytest.param(OPENED, Cut.DROPPED, [{"f": b""}], id="a file that nothing was written to"),
    pytest.param(BASE, Cut.DROPPED, [{"f": b"a" * 1024}], id="what was synced stays"),
    pytest.param(LATER, Cut.DROPPED, [{"f": b"a" * 1024}], id="what was not synced goes"),
    pytest.param(LATER, Cut.KEPT, [{"f": b"b" * 1024 + b"c" * 512}], id="or stays"),
    pytest.param(
        LATER,
        Cut.SOME,
        [
            {"f": first + second}
            for first in (b"a" * 1024, b"b" * 1024)
            for second in (b"", b"c" * 512)
        ],
        id="or some of it does, in any order",
    ),
    pytest.param(
        LATER,
        Cut.TORN,
        [
            {"f": first + second + third}
            for first in (b"a" * 512, b"b" * 512)
            for second in (b"a" * 512, b"b" * 512)
            for third in (b"", b"c" * 512)
        ],
        id="or sectors of it do",
    ),
    pytest.param(
        [*BASE, SyncBegan("f", 3), Write("f", 1024, b"b"), Synced("f", 3)],
        Cut.DROPPED,
        [{"f": b"a" * 1024}],
        id="what was written after a sync began is not synced",
    ),
    pytest.param(
        [*BASE, Truncate("f", 1), Removed("f")],
        Cut.SOME,
        [{}, {"f": b"a"}, {"f": b"a" * 1024}],
        id="a file that was cut and removed may still be there",
    ),
    pytest.param(
        [*BASE, Write("f", 1030, b"b")],
        Cut.KEPT,
        [{"f": b"a" * 1024 + bytes(6) + b"b"}],
        id="a gap reads as zeros",
    ),
]


@pytest.mark.parametrize(("events", "cut", "possible"), IMAGES_LEFT)
def test_a_power_cut_leaves(
    events: list[Event], cut: Cut, possible: list[dict[str, bytes]]
) -> None:
    """Only the possible images occur, and each of them occurs."""
    disk = Disk()
    for event in events:
        disk.apply(event)
    left = [disk.image(cut, random.Random(seed)) for seed in range(200)]
    assert all(image in possible for image in left)
    assert all(image in left for image in possible)


# -- what may be said of it

PROMISED = 10
DISCHARGED = 20
CUTS = [
    pytest.param(5, 1, {}, id="one of two was stored before the cut, neither was promised"),
    pytest.param(15, 1, {"lost": 1, "torn": 1}, id="one of two is missing that were promised"),
    pytest.param(15, 2, {}, id="both are there before the discharge"),
    pytest.param(25, 2, {}, id="both are there, the discharge had no effect yet"),
    pytest.param(25, 1, {"torn": 1}, id="one of two is gone after the discharge"),
    pytest.param(25, 0, {}, id="both are gone after the discharge"),
]


@pytest.mark.parametrize(("cut", "there", "counts"), CUTS)
def test_a_transaction_that_retires_two_messages_is_judged(
    cut: int, there: int, counts: dict[str, int]
) -> None:
    history = History([])
    retired = [
        history.add(Copy("q", number, b"x", 1, 1, promised=PROMISED, taken=DISCHARGED))
        for number in (1, 2)
    ]
    history.transactions.append(Transaction(discharged=DISCHARGED, retired=retired))
    held = Held(first_number=100)
    for copy in retired[:there]:
        held.messages[copy.queue, copy.number] = stored(copy.number).with_bytes(b"x")
    assert Judge(history, []).judge(cut, held).counts == counts


def test_a_store_keeps_what_follows_the_header() -> None:
    whole, bare = message(b"x", durable=True), message(b"x")
    assert without_header(whole) == bare
    assert without_header(bare) == bare
