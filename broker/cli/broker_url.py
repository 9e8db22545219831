"""The URL of a broker as typed: what may be one, and how it is shown."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

SCHEMES: Final = ("amqp", "amqps")


class URLError(ValueError):
    """A URL that names no broker, with what to type instead."""


def split_url(url: str) -> SplitResult:
    """Return the parts of `url`, of which a host alone means amqp://; raise URLError if it names
    no broker."""
    try:
        parts = urlsplit(url if "://" in url else f"amqp://{url}")
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise URLError(_refusal(url, str(error))) from None
    if parts.scheme not in SCHEMES:
        raise URLError(_refusal(url, f"{parts.scheme}:// is not AMQP"))
    if not host:
        raise URLError(_refusal(url, "it names no host"))
    return parts


def without_password(url: str) -> str:
    """Return `url` as a terminal or log may show it."""
    return re.sub(r"(//[^/@:]*|^[^/@:]*):[^/]*@", r"\1:***@", url)


def _refusal(url: str, reason: str) -> str:
    return (
        f"{without_password(url)!r} is no URL of a broker: {reason}."
        " Write amqp://USER:PASSWORD@HOST:PORT, or amqps:// for TLS"
    )
