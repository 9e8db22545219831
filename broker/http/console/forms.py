"""Forms that browsers send to the console: they are read up to a limit of bytes and time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, final
from urllib.parse import parse_qsl

from starlette.requests import Request

from broker.http.limits import (
    CONSOLE_FORM_BYTES_MAX,
    CONSOLE_FORM_FIELDS_MAX,
    CONSOLE_FORM_MAX_S,
)
from broker.management.request import BAD_REQUEST, Refused

TYPE: Final = "application/x-www-form-urlencoded"

TOO_LARGE: Final = 413
TIMEOUT: Final = 408


@final
class Form:
    """The fields of a form, or of a URL's query, in their order; a name may occur twice."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs: Final = list(pairs)

    def text(self, name: str) -> str:
        """Return the first value of a field, without blanks around it; empty if it is missing."""
        return next((value.strip() for each, value in self.pairs if each == name), "")

    def exact(self, name: str) -> str:
        """Return the first value of a field as it was sent, empty if it is missing."""
        return next((value for each, value in self.pairs if each == name), "")

    def texts(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for each, value in self.pairs if each == name]

    def flag(self, name: str) -> bool:
        """Return whether a checkbox was set."""
        return bool(self.text(name))


async def read_form(request: Request) -> Form:
    """Return the form in a request; raise Refused if it is none, is too large, or comes late."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != TYPE:
        raise Refused(BAD_REQUEST, f"the console takes forms only: content-type {TYPE}")
    try:
        async with asyncio.timeout(CONSOLE_FORM_MAX_S):
            body = await _gathered(request)
    except TimeoutError:
        raise Refused(TIMEOUT, f"a form must arrive within {CONSOLE_FORM_MAX_S} s") from None
    try:
        pairs = parse_qsl(
            body.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=CONSOLE_FORM_FIELDS_MAX,
        )
    except ValueError:
        text = f"a form is UTF-8, with at most {CONSOLE_FORM_FIELDS_MAX} fields"
        raise Refused(BAD_REQUEST, text) from None
    return Form(pairs)


async def _gathered(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > CONSOLE_FORM_BYTES_MAX:
            raise Refused(TOO_LARGE, f"a form has at most {CONSOLE_FORM_BYTES_MAX} bytes")
    return bytes(body)
