"""Requests that a page of another site makes a browser send: they change nothing.

A browser on the broker's machine, or one that knows a password, would be admitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from broker.http.api.problems import Failure
from broker.management.request import FORBIDDEN

OWN_SITES: Final = ("same-origin", "none")
"""Values of Sec-Fetch-Site of requests that a page of the broker, or a person, makes."""


def check_origin(headers: Mapping[str, str]) -> None:
    """Raise Failure if another site makes this request, by what a browser says of it."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in OWN_SITES:
        raise Failure(FORBIDDEN, "a page of another site made this request")
    if origin is not None and not _is_of(origin, headers.get("host", "")):
        raise Failure(FORBIDDEN, "a page of another origin made this request")


def _is_of(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False
