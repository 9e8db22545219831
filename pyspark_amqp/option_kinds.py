"""Kinds of option values: each parses a text, and says which texts it allows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

LONG_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF

UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Kind:
    """A kind of option value. `allowed` tells the user which texts are allowed."""

    allowed: str

    def read(self, text: str) -> object:
        """Return the value that `text` means; raise ValueError if it is none of this kind."""
        raise NotImplementedError


class Text(Kind):
    """A text of 1 to `most` characters."""

    def __init__(self, allowed: str = "a text", most: int = 65_535) -> None:
        self.allowed = allowed
        self._most: Final = most

    def read(self, text: str) -> str:
        if not 0 < len(text) <= self._most:
            raise ValueError(text)
        return text


class Choice(Kind):
    """One of several words, in upper or lower case."""

    def __init__(self, *words: str) -> None:
        self.allowed = ", ".join(words)
        self._words: Final = {word.lower(): word for word in words}

    def read(self, text: str) -> str:
        if text.lower() not in self._words:
            raise ValueError(text)
        return self._words[text.lower()]


class Truth(Kind):
    """A boolean: true or false, in upper or lower case."""

    allowed = "true, false"

    def read(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"


class Whole(Kind):
    """A whole number from `low` to `high`."""

    def __init__(self, low: int, high: int = LONG_MAX) -> None:
        self.allowed = f"a whole number from {low} to {high}"
        self._low: Final = low
        self._high: Final = high

    def read(self, text: str) -> int:
        number = int(text)
        if not self._low <= number <= self._high:
            raise ValueError(text)
        return number


class Duration(Kind):
    """A duration with its unit, read as milliseconds; `never`, if allowed, is read as 0."""

    def __init__(self, *, never: bool = False) -> None:
        self.allowed = "a number with ms, s, m, h or d, such as 90s" + (
            ", or never" if never else ""
        )
        self._never: Final = never

    def read(self, text: str) -> int:
        if self._never and text.lower() == "never":
            return 0
        match = re.fullmatch(r"(\d{1,12})\s*(ms|s|m|h|d)", text.strip().lower())
        if match is None or int(match[1]) == 0:
            raise ValueError(text)
        return int(match[1]) * UNITS_MS[match[2]]


class Urls(Kind):
    """URLs of brokers, with commas between them; only one unless `several`."""

    def __init__(self, *schemes: str, several: bool) -> None:
        forms = " or ".join(f"{scheme}://HOST[:PORT]" for scheme in schemes)
        self.allowed = f"{forms}, several with commas between them" if several else forms
        self._schemes: Final = schemes
        self._several: Final = several

    def read(self, text: str) -> tuple[str, ...]:
        urls = tuple(url.strip().rstrip("/") for url in text.split(",")) if text else ()
        if not urls or (len(urls) > 1 and not self._several):
            raise ValueError(text)
        for url in urls:
            parts = urlsplit(url)
            # reading the port checks it
            if parts.scheme not in self._schemes or not parts.hostname or parts.port == 0:
                raise ValueError(text)
        return urls


class Position:
    """The begin or end of a read: a position (or id), a time in ms since 1970, or open."""

    def __init__(self, *, number: int | None = None, time_ms: int | None = None) -> None:
        self.number: Final = number
        self.time_ms: Final = time_ms

    @property
    def is_open(self) -> bool:
        """Return whether this is the earliest or latest position there is."""
        return self.number is None and self.time_ms is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.number, self.time_ms))

    def __repr__(self) -> str:
        return f"Position(number={self.number}, time_ms={self.time_ms})"


class Positions(Kind):
    """A word such as `earliest`, a position, or {"timestamp": milliseconds}."""

    def __init__(self, *words: str) -> None:
        self.allowed = f'{", ".join(words)}, a position, {{"timestamp": MILLISECONDS}}'
        self._words: Final = words

    def read(self, text: str) -> Position | str:
        if text.lower() in self._words:
            return text.lower()
        if re.fullmatch(r"\d{1,18}", text.strip()):
            return Position(number=int(text))
        told: object = json.loads(text)
        if not isinstance(told, Mapping) or set(told) != {"timestamp"}:
            raise ValueError(text)
        time_ms = told["timestamp"]
        if isinstance(time_ms, bool) or not isinstance(time_ms, int) or time_ms < 0:
            raise ValueError(text)
        return Position(time_ms=time_ms)
