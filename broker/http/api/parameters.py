"""Parameters of the URL's query: their types, and how they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.management.request import BAD_REQUEST, Refused, checked_text

TEXT: Final = "string"
NUMBER: Final = "integer"
FLAG: Final = "boolean"
TEXTS: Final = "array"

FLAGS: Final = {"true": True, "false": False}

DIGITS_MAX: Final = 19

CURSOR: Final = "cursor"
"""The one parameter that may be as long as the head of a request."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter: its name and type, and the argument of management that it becomes.

    `choices` are the only values of a text, `low` and `high` the bounds of a number.
    """

    name: str
    description: str
    type: str = TEXT
    argument: str = ""
    choices: Sequence[str] = ()
    low: int = 0
    high: int = 2**63 - 1
    required: bool = False

    def read(self, value: str) -> object:
        """Return the value of the argument; Refused if it is wrong."""
        if self.type == FLAG:
            if value not in FLAGS:
                raise Refused(BAD_REQUEST, f"{self.name} must be true or false")
            return FLAGS[value]
        if self.type == NUMBER:
            return self._number(value)
        if self.name != CURSOR:
            checked_text(self.name, value)
        if self.type == TEXTS:
            return [each for each in value.split(",") if each]
        if self.choices and value not in self.choices:
            raise Refused(BAD_REQUEST, f"{self.name} must be one of {', '.join(self.choices)}")
        return value

    def _number(self, value: str) -> int:
        if value.isascii() and value.isdigit() and len(value) <= DIGITS_MAX:
            number = int(value)
            if self.low <= number <= self.high:
                return number
        raise Refused(BAD_REQUEST, f"{self.name} must be a number from {self.low} to {self.high}")

    def schema(self) -> Mapping[str, object]:
        """Return the JSON schema of the value."""
        if self.type == TEXTS:
            return {"type": TEXTS, "items": {"type": TEXT}}
        if self.type == NUMBER:
            return {"type": NUMBER, "minimum": self.low, "maximum": self.high}
        return {"type": self.type, **({"enum": list(self.choices)} if self.choices else {})}


def read_parameters(
    pairs: Iterable[tuple[str, str]], known: Sequence[Parameter]
) -> dict[str, object]:
    """Return the arguments by name; Refused if one is unknown, twice there, wrong or missing.

    A parameter whose value is empty counts as left out.
    """
    by_name = {each.name: each for each in known}
    found: dict[str, object] = {}
    for name, value in pairs:
        parameter = by_name.get(name)
        if parameter is None:
            allowed = ", ".join(by_name) or "none"
            raise Refused(BAD_REQUEST, f"no parameter {name:.50}; known are {allowed}")
        argument = parameter.argument or name
        if argument in found:
            raise Refused(BAD_REQUEST, f"{name} is there twice")
        if value:
            found[argument] = parameter.read(value)
    for parameter in known:
        if parameter.required and (parameter.argument or parameter.name) not in found:
            raise Refused(BAD_REQUEST, f"{parameter.name} is needed")
    return found
