"""Reads the end of validity of certificates and revocation lists, and warns before it.

The standard library shows the dates of verified certificates only, and those of revocation lists
never. So the few fields before a date are read here, from DER (RFC 5280 4.1 and 5.1). The files
are the operator's: nothing that a client sends is read by this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

WARNING_DAYS: Final = (1, 7, 14, 30)
"""Days before the end of validity at which the operator is warned, once each."""

DAY_S: Final = 86_400

INTEGER: Final = 0x02
SEQUENCE: Final = 0x30
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
VERSION: Final = 0xA0


@dataclass(frozen=True, kw_only=True)
class DatedFile:
    """The end of validity, in s since 1970, of what the file of one setting holds.

    `sha256` is the fingerprint of a certificate, and empty for a revocation list.
    """

    key: str
    path: Path
    content: str
    end_s: float
    sha256: str = ""

    def end(self) -> str:
        """Return the end for people to read."""
        return datetime.fromtimestamp(self.end_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def certificate_end_s(der: bytes) -> float:
    """Return the end of a certificate's validity, in s since 1970. ValueError if it is not DER."""
    fields = DerFields(der).inner(SEQUENCE).inner(SEQUENCE)
    fields.skip_optional(VERSION)
    fields.skip(INTEGER)
    fields.skip(SEQUENCE)
    fields.skip(SEQUENCE)
    validity = fields.inner(SEQUENCE)
    validity.time()
    return validity.time()


def crl_end_s(der: bytes) -> float | None:
    """Return the time of a revocation list's next update, in s since 1970; None if it has none.

    ValueError if it is not DER.
    """
    fields = DerFields(der).inner(SEQUENCE).inner(SEQUENCE)
    fields.skip_optional(INTEGER)
    fields.skip(SEQUENCE)
    fields.skip(SEQUENCE)
    fields.time()
    return fields.time() if fields.tag() in (UTC_TIME, GENERALIZED_TIME) else None


class DerFields:
    """The elements of one DER value, read in order. ValueError at any other than expected."""

    def __init__(self, data: bytes) -> None:
        self._data: Final = data
        self._at = 0

    def tag(self) -> int | None:
        """Return the tag of the next element, None at the end."""
        return self._data[self._at] if self._at < len(self._data) else None

    def inner(self, tag: int) -> DerFields:
        return DerFields(self._take(tag))

    def value(self) -> tuple[int, bytes]:
        """Return the tag and the content of the next element. ValueError at the end."""
        tag = self._byte(self._at)
        return tag, self._take(tag)

    def skip(self, tag: int) -> None:
        self._take(tag)

    def skip_optional(self, tag: int) -> None:
        if self.tag() == tag:
            self._take(tag)

    def time(self) -> float:
        """Return the time that is next, in s since 1970."""
        short = self.tag() == UTC_TIME
        text = self._take(UTC_TIME if short else GENERALIZED_TIME).decode("ascii")
        if short:  # RFC 5280 4.1.2.5.1: two digits from 50 on are years before 2000
            text = f"{'19' if text >= '5' else '20'}{text}"
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()

    def _take(self, tag: int) -> bytes:
        if self.tag() != tag:
            raise ValueError(f"expected the tag {tag:#x}, found {self.tag()}")
        length = self._byte(self._at + 1)
        begin = self._at + 2
        if length >= 0x80:
            size = length & 0x7F
            length = int.from_bytes(self._data[begin : begin + size], "big")
            begin += size
        end = begin + length
        if end > len(self._data):
            raise ValueError("an element ends behind the data")
        self._at = end
        return self._data[begin:end]

    def _byte(self, at: int) -> int:
        if at >= len(self._data):
            raise ValueError("the data end within an element")
        return self._data[at]


class DateWarnings:
    """Decides which warnings about dates are due: one for each file and threshold."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, Path], tuple[float, int]] = {}

    def due(self, files: Iterable[DatedFile], now_s: float) -> list[str]:
        """Return the warnings that are new at `now_s`, in s since 1970."""
        warnings = []
        for file in files:
            threshold = _threshold(file.end_s - now_s)
            told = self._told.get((file.key, file.path))
            if threshold is None or told == (file.end_s, threshold):
                continue
            self._told[file.key, file.path] = (file.end_s, threshold)
            warnings.append(_warning(file, now_s))
        return warnings


def _threshold(left_s: float) -> int | None:
    """Return the smallest threshold, in days, that has been reached; 0 past the end."""
    if left_s <= 0:
        return 0
    return next((days for days in WARNING_DAYS if left_s <= days * DAY_S), None)


def _warning(file: DatedFile, now_s: float) -> str:
    left_s = file.end_s - now_s
    if left_s <= 0:
        when = f"expired on {file.end()}"
    else:
        days = int(left_s // DAY_S)
        amount = f"{days} days" if days > 1 else f"{int(left_s // 3600)} hours"
        when = f"expires on {file.end()}, in {amount}"
    return f"{file.key} = '{file.path}': {file.content} {when}: replace the file, and reload"
