"""Types of settings that several tables of settings have: numbers, and their limits."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BeforeValidator, Field

UINT_MAX: Final = 2**32 - 1


def _no_flag(value: object) -> object:
    """Raise ValueError for a boolean: Python counts `true` as 1, an operator does not."""
    if isinstance(value, bool):
        raise ValueError("Input should be a number")  # noqa: TRY004 - pydantic reports no other
    return value


Number = Annotated[int, BeforeValidator(_no_flag)]
Uint = Annotated[Number, Field(ge=0, le=UINT_MAX)]
Factor = Annotated[float, BeforeValidator(_no_flag), Field(ge=1, le=100)]
Count = Annotated[Number, Field(ge=0, le=2**53)]
Window = Annotated[Number, Field(ge=0, le=1_000_000)]
