"""Checksums of rows."""

from storage.sql.rows import checksum


def test_a_checksum_tells_place_and_content() -> None:
    assert len({checksum(1, b"x"), checksum(2, b"x"), checksum(1, b"y")}) == 3
