"""Memory is given back to the system when a broker that was busy is quiet."""

import pytest

from broker.net.trim import QUIET, WORTH_TRIMMING, Trimmer, trim_function
from broker.stats import Stats

MOMENTS = {
    # name: bytes received since the last trim, messages since the last look, whether it trims
    "nothing has come": (0, 0, False),
    "little has come": (WORTH_TRIMMING - 1, 0, False),
    "much has come, and it is quiet": (WORTH_TRIMMING, 0, True),
    "much has come, and a few messages go on": (WORTH_TRIMMING, QUIET, True),
    "much has come, and it is still busy": (WORTH_TRIMMING, QUIET + 1, False),
}


@pytest.mark.parametrize(("size", "messages", "trims"), MOMENTS.values(), ids=MOMENTS.keys())
def test_when_memory_goes_back(size: int, messages: int, trims: bool) -> None:
    stats = Stats()
    trimmed: list[int] = []

    def trim(pad: int) -> int:
        trimmed.append(pad)
        return 1

    trimmer = Trimmer(stats, lambda: trim)
    trimmer.look()
    stats.published_bytes += size
    stats.delivered += messages
    assert trimmer.look() is trims
    assert trimmed == ([0] if trims else [])


def test_it_trims_once_for_what_came() -> None:
    stats = Stats()
    trimmer = Trimmer(stats, lambda: lambda _: 1)
    stats.published_bytes += WORTH_TRIMMING
    assert [trimmer.look(), trimmer.look()] == [True, False]


def test_a_c_library_without_it_is_left_alone() -> None:
    stats = Stats()
    stats.published_bytes += WORTH_TRIMMING
    assert not Trimmer(stats, lambda: None).look()


def test_the_c_library_of_this_machine_can_be_asked() -> None:
    trim = trim_function()
    assert trim is None or trim(0) in (0, 1)
