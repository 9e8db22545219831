"""Identifiers of selectors, which are also the names that a property may have (JMS 2.0 3.8.1.1)."""

from __future__ import annotations

from typing import Final

RESERVED: Final = frozenset(
    {
        *("NULL", "TRUE", "FALSE", "NOT", "AND", "OR"),
        *("BETWEEN", "LIKE", "IN", "IS", "ESCAPE"),
    }
)
"""Words that are no identifiers, in any case."""

NAME_CATEGORIES: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"})
"""Unicode categories of the characters that may begin a Java identifier."""

NAME_PART_CATEGORIES: Final = NAME_CATEGORIES | {"Nd", "Mn", "Mc"}


def is_reserved(name: str) -> bool:
    return name.upper() in RESERVED


def is_identifier(name: str) -> bool:
    """Return whether a selector can name `name`: a Java identifier that is not reserved."""
    return name != "" and first_wrong(name) < 0 and not is_reserved(name)


def first_wrong(name: str) -> int:
    """Return the index of the first character that a Java identifier cannot have there; -1 if none.

    The empty string has none.
    """
    # Python's identifiers of ASCII are Java's, except for the dollar sign
    if name.isascii() and name.replace("$", "_").isidentifier():
        return -1
    # imported here: a broker whose names are all ASCII does not load it
    import unicodedata

    for at, character in enumerate(name):
        allowed = NAME_PART_CATEGORIES if at > 0 else NAME_CATEGORIES
        if unicodedata.category(character) not in allowed:
            return at
    return -1
