"""AMQP values as hex, in their short forms, to compose input for decoder tests by hand."""

from typing import Final

NULL: Final = "40"
TRUE: Final = "41"
FALSE: Final = "42"
EMPTY: Final = "45"
"""An empty list in its shortest form."""


def section(code: int, value: str) -> str:
    """Return a section, or any described value, with an encoded value."""
    return f"0053{code:02x}{value}"


def listed(*fields: str) -> str:
    """Return a short list of encoded fields."""
    content = "".join(fields).replace(" ", "")
    return f"c0{len(content) // 2 + 1:02x}{len(fields):02x}{content}"


def mapped(*keys_and_values: str) -> str:
    """Return a short map."""
    return "c1" + listed(*keys_and_values)[2:]


def symbol(text: str) -> str:
    return f"a3{len(text):02x}{text.encode().hex()}"


def string(text: str) -> str:
    return f"a1{len(text):02x}{text.encode().hex()}"
