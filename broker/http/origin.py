"""Recognizes requests that a page of another site makes a browser send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

OWN_SITES: Final = ("same-origin", "none")
"""Values of Sec-Fetch-Site of requests that a page of the broker, or a person, makes."""


def foreign_page(headers: Mapping[str, str]) -> str:
    """Return "site" or "origin" if, by what a browser says, a page of another one asks; else ""."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in OWN_SITES:
        return "site"
    if origin is not None and not _is_of(origin, headers.get("host", "")):
        return "origin"
    return ""


def _is_of(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False
