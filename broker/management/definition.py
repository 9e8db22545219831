"""The common parts of all kinds of definitions: readers of values, and outcomes of an import.

Definitions come from a file that an operator may have changed: nothing in them is trusted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, NoReturn, TypeVar

from broker.amqp.types import Integer, Map, Symbol
from broker.management.entity import Caller
from broker.management.request import BAD_REQUEST, Refused

T = TypeVar("T")

Definition = Mapping[str, object]

ImportResult = Literal["added", "changed", "unchanged", "refused"]

ADDED: Final[ImportResult] = "added"
CHANGED: Final[ImportResult] = "changed"
UNCHANGED: Final[ImportResult] = "unchanged"
REFUSED: Final[ImportResult] = "refused"
RESULTS: Final[Sequence[ImportResult]] = (ADDED, CHANGED, UNCHANGED, REFUSED)

TYPE_WORDS: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


class DefinitionError(ValueError):
    """A definition that cannot be imported. The text says what to change."""


@dataclass(frozen=True, kw_only=True)
class ImportOutcome:
    """The outcome for one definition: its name, the result, and a note to the operator or ""."""

    name: str
    result: ImportResult
    note: str = ""

    def as_map(self) -> dict[str, object]:
        """Return the outcome as a response has it."""
        return {"name": self.name, "result": self.result, "note": self.note}


@dataclass(frozen=True, kw_only=True)
class ImportTerms:
    """The terms of an import: of which client, whether as a trial only, and with verifiers."""

    caller: Caller
    dry_run: bool
    secrets: bool


class DefinitionKind(ABC):
    """One kind of definitions. `part` is the part of management that its rights are about.

    `has_secrets` is whether there is more to export with secrets than without.
    """

    name: str
    part: str
    has_secrets: bool = False

    @abstractmethod
    def page(self, offset: int, count: int, *, secrets: bool) -> tuple[Iterable[Definition], int]:
        """Return the definitions of `count` entries from number `offset` on, and their number.

        Fewer definitions are returned for entries that have none, such as temporary nodes. They may
        be made one by one, while other work is done.
        """

    @abstractmethod
    async def take(
        self, definitions: Sequence[Definition], terms: ImportTerms
    ) -> list[ImportOutcome]:
        """Import definitions, or find out what that would do; return the outcome of each."""


class DefinitionReader:
    """Reads the values of one definition. DefinitionError names the key that is wrong."""

    def __init__(self, definition: Definition, *known: str) -> None:
        """Raise DefinitionError if there are other keys than `known`, which would be ignored."""
        self._values: Final = definition
        for key in definition:
            if key not in known:
                self.refuse(f"there is no key {key:.50}; known are {', '.join(known)}")

    def refuse(self, reason: str) -> NoReturn:
        """Raise DefinitionError for that reason."""
        raise DefinitionError(reason)

    def optional(self, key: str, kind: type[T]) -> T | None:
        """Return a value of that type, None if it is null or missing."""
        value = self._values.get(key)
        if value is None:
            return None
        if type(value) is not kind:  # in Python, true is an int
            self.refuse(f"{key} must be {TYPE_WORDS[kind]}")
        return value

    def required(self, key: str, kind: type[T]) -> T:
        """Return a value of that type, which must be there."""
        value = self.optional(key, kind)
        if value is None:
            self.refuse(f"{key} is missing")
        return value


def name_in(definition: Definition, key: str = "name") -> str:
    """Return the name of a definition for its outcome, as far as it has one."""
    value = definition.get(key)
    return value if isinstance(value, str) else "?"


def paged(entries: Iterable[T], offset: int, count: int) -> list[T]:
    """Return `count` entries from number `offset` on, in their own order.

    None are sorted: 100,000 names take 30 ms in one piece, and the client can do it.
    """
    return list(islice(entries, offset, offset + count))


def definitions_in(value: object, at_most: int) -> list[Definition]:
    """Return the definitions of a request. Refused if they are no list of maps."""
    if not isinstance(value, list) or len(value) > at_most:
        raise Refused(BAD_REQUEST, f"definitions must be a list of at most {at_most} maps")
    found: list[Definition] = []
    for each in value:
        plain = plain_value(each)
        if not isinstance(plain, dict):
            raise Refused(BAD_REQUEST, "definitions must be a list of maps")
        found.append(plain)
    return found


def plain_value(value: object) -> object:
    """Return an AMQP value as one of JSON: maps with texts as keys, lists, texts, numbers."""
    if isinstance(value, Integer):
        return value.value
    if isinstance(value, Symbol):
        return value.text
    if isinstance(value, list):
        return [plain_value(each) for each in value]
    if isinstance(value, Map | dict):
        pairs = value.pairs if isinstance(value, Map) else list(value.items())
        return {_key(key): plain_value(each) for key, each in pairs}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise Refused(BAD_REQUEST, f"a definition has a value of the type {type(value).__name__}")


def _key(key: object) -> str:
    text = key.text if isinstance(key, Symbol) else key
    if not isinstance(text, str):
        raise Refused(BAD_REQUEST, "the keys of a definition must be texts")
    return text
