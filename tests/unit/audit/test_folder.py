"""The files of audit records: names, the head, and the end of a file."""

from datetime import date
from pathlib import Path

import pytest

from broker.audit.folder import (
    HEAD,
    TAIL_BYTES,
    FileEnd,
    end_of,
    file_for,
    files_in,
    link_of,
    read_head,
    write_head,
)
from broker.audit.record import ChainLink, hash_of

LINK = ChainLink(7, "a" * 64)


def test_files_are_in_the_order_of_their_records(tmp_path: Path) -> None:
    made = [file_for(tmp_path, first, date(2026, 11, 24)) for first in (900, 1, 10**12)]
    for file in made:
        file.path.touch()
    for other in ("head", "audit-1-20261124.jsonl", "audit-000000000001-20261399.jsonl", "x"):
        (tmp_path / other).touch()
    assert files_in(tmp_path) == [made[1], made[0], made[2]]


def test_the_head_is_read_back(tmp_path: Path) -> None:
    assert read_head(tmp_path) is None
    write_head(tmp_path, ChainLink(10**15, "b" * 64))
    write_head(tmp_path, LINK)
    assert read_head(tmp_path) == LINK


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"7 abc\n", id="too short"),
        pytest.param(b"x" * 86, id="something else"),
    ],
)
def test_a_head_that_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / HEAD).write_bytes(content)
    assert read_head(tmp_path) is None


ENDS = [
    pytest.param(b"", FileEnd(None, 0, b""), id="an empty file"),
    pytest.param(b"one\n", FileEnd(b"one", 4, b""), id="one line"),
    pytest.param(b"one\ntwo\n", FileEnd(b"two", 8, b""), id="two lines"),
    pytest.param(b"one\ntw", FileEnd(b"one", 4, b"tw"), id="a torn line"),
    pytest.param(b"on", FileEnd(None, 0, b"on"), id="nothing but a torn line"),
]


@pytest.mark.parametrize(("content", "expected"), ENDS)
def test_the_end_of_a_file(tmp_path: Path, content: bytes, expected: FileEnd) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert end_of(file) == expected


def test_the_end_of_a_large_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    line = b"x" * 99 + b"\n"
    count = 3 * TAIL_BYTES // 100
    file.write_bytes(line * count + b"torn")
    assert end_of(file) == FileEnd(line[:-1], 100 * count, b"torn")


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"seq":"1"}', b"\xff", b"[" * 9999])
def test_a_line_that_is_no_record(line: bytes) -> None:
    assert link_of(line) is None


def test_the_link_of_a_record() -> None:
    assert link_of(b'{"seq":3}') == ChainLink(3, hash_of(b'{"seq":3}'))
