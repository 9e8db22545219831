"""URLs of brokers as users type them: parsing, and text without the password."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import SplitResult, urlsplit

SCHEMES: Final = ("amqp", "amqps")

HTTP_SCHEMES: Final = ("http", "https")

MANAGEMENT_SCHEMES: Final = (*SCHEMES, *HTTP_SCHEMES)
"""The schemes of URLs at which a broker can be managed."""


NOT_ENCODED: Final = (
    "its host or port cannot be read; write / # ? @ in a user name or a password as %2F %23 %3F %40"
)


class URLError(ValueError):
    """An error because a URL names no broker; the text says what to type instead."""


def split_url(url: str, schemes: Collection[str] = SCHEMES) -> SplitResult:
    """Return `url`'s parts; a host alone means amqp://. Raise URLError if it names no broker."""
    try:
        parts = urlsplit(url if "://" in url else f"amqp://{url}")
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        # the error quotes what it takes for the port, which may be a part of the password
        reason = str(error) if "@" not in url else NOT_ENCODED
        raise URLError(_refusal(url, reason)) from None
    if parts.scheme not in schemes:
        # over HTTP, a broker is only managed
        raise URLError(_refusal(url, f"{parts.scheme}:// is not AMQP"))
    if not host:
        raise URLError(_refusal(url, "it names no host"))
    return parts


def without_password(url: str) -> str:
    """Return `url` for a terminal or a log, with *** in place of its password.

    In a URL that is none, too: what stands between the first colon and the last @ is left out.
    """
    begin = url.find("//") + len("//") if "//" in url else 0
    colon, at = url.find(":", begin), url.rfind("@")
    return f"{url[:colon]}:***{url[at:]}" if 0 <= colon < at else url


def _refusal(url: str, reason: str) -> str:
    return (
        f"{without_password(url)!r} is no URL of a broker: {reason}."
        " Write amqp://USER:PASSWORD@HOST:PORT, or amqps:// for TLS"
    )
