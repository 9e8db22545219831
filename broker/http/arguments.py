"""Arguments of a request, from the query of its URL. Every value is checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from broker.management.request import BAD_REQUEST, Refused, checked_text

NUMBER_MAX: Final = 2**63 - 1

NUMBER_DIGITS: Final = 19


@final
class Arguments:
    """The arguments of a request by name. Raises Refused for unknown or repeated ones."""

    def __init__(self, pairs: Iterable[tuple[str, str]], *known: str) -> None:
        self._values: Final[dict[str, str]] = {}
        for name, value in pairs:
            if name not in known:
                allowed = ", ".join(known) or "none"
                raise Refused(BAD_REQUEST, f"no argument {name:.50}; known are {allowed}")
            if name in self._values:
                raise Refused(BAD_REQUEST, f"{name} is there twice")
            self._values[name] = checked_text(name, value)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text, `default` if it is missing or empty; Refused if there is no `default`."""
        value = self._values.get(name, "")
        if value:
            return value
        if default is None:
            raise Refused(BAD_REQUEST, f"{name} is needed")
        return default

    def number(
        self, name: str, default: int | None = None, *, low: int = 0, high: int = NUMBER_MAX
    ) -> int:
        """Return a whole number from `low` to `high`, `default` if it is missing; else Refused."""
        value = self._values.get(name)
        if value is None and default is not None:
            return default
        digits = value or ""
        if digits.isascii() and digits.isdigit() and len(digits) <= NUMBER_DIGITS:
            number = int(digits)
            if low <= number <= high:
                return number
        raise Refused(BAD_REQUEST, f"{name} must be a number from {low} to {high}")

    def one_of(self, name: str, allowed: Iterable[str]) -> str:
        """Return the value, empty if it is missing; Refused if it is not one of `allowed`."""
        value = self._values.get(name, "")
        if value and value not in allowed:
            raise Refused(BAD_REQUEST, f"no {name} {value:.50}; known are {', '.join(allowed)}")
        return value
