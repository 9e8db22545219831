"""Labels: facts of messages in a segment that their records do not hold."""

import pytest

from storage.sql.segments.labels import Label, pack_labels, unpack_labels

LABELS: list[Label] = [
    (0, "client"),
    (0x8001_3700, ""),
    (2**32 - 1, "\N{SNOWMAN} \ud800"),
    (1, "a"),
]

CASES = [
    pytest.param([], id="none"),
    *[pytest.param([label], id=f"format {label[0]:#x}") for label in LABELS],
    pytest.param(LABELS, id="several"),
]


@pytest.mark.parametrize("labels", CASES)
def test_labels_come_back_in_their_order(labels: list[Label]) -> None:
    assert unpack_labels(pack_labels(labels)) == labels


def test_no_labels_take_no_bytes() -> None:
    assert pack_labels([]) == b""


def test_damaged_labels_are_none_at_all() -> None:
    packed = pack_labels(LABELS)
    for at in range(len(packed)):
        assert unpack_labels(packed[:at] + bytes([packed[at] ^ 1]) + packed[at + 1 :]) == []
        assert unpack_labels(packed[:at]) == []
